"""Availability over time and space: when, and where, does a request fit for its whole time?

A plan knows what holds the machine now and until when that is expected to last, and what is booked for later. It
answers with a start and a placement that stays clear of everything during the whole time asked for. It works on any
machine: on a table of what is taken when, units and cables alike (`simulation.planning.space_time`); interchangeable
units (a flat machine's) are counted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from simulation.machines.interface import JobRequest, Machine, Placement, emptied
from simulation.planning.placers import ALWAYS, placer_of
from simulation.planning.space_time import SpaceTime


class Plan:
    """Bookings over time on one machine.

    Args:
        machine: the machine; never changed.
        now: microseconds; nothing is asked about earlier times.
        bookings: key, begin, end and placement of what is known from the beginning; these may overlap.
    """

    def __init__(self, machine: Machine, now: int, bookings: Sequence[tuple[int, int, int, Placement]] = ()) -> None:
        self._now = now
        self._times = (
            CountedTime(machine, now) if machine.traits.interchangeable else SpaceTime(placer_of(machine), now)
        )
        self._bookings = {key: (begin, end, placement) for key, begin, end, placement in bookings}
        self._times.book_all(list(self._bookings.values()))

    def book(self, key: int, begin: int, end: int, placement: Placement) -> None:
        """Book a placement for [begin, end); the caller has made sure that it is free then."""
        self._bookings[key] = (begin, end, placement)
        self._times.book(begin, end, placement)

    def cancel(self, key: int) -> None:
        """Take a booking back that overlaps no other."""
        self._times.cancel(*self._bookings.pop(key))

    def fits_at(self, request: JobRequest, begin: int, length: int) -> Placement | None:
        """Return a placement that is free during [begin, begin + length), or None."""
        found = self._times.earliest(request, length, begin, begin)
        return found[1] if found is not None else None

    def earliest(
        self, request: JobRequest, length: int, not_before: int | None = None, latest: int | None = None
    ) -> tuple[int, Placement] | None:
        """Return the earliest start with a placement that stays free for the whole time.

        Args:
            request: what is asked of the machine.
            length: time it takes, microseconds.
            not_before: earliest start allowed; now by default.
            latest: latest start allowed; any by default.

        Returns:
            Start time and placement, or None.
        """
        first = self._now if not_before is None else not_before
        return self._times.earliest(request, length, first, ALWAYS if latest is None else latest)


class CountedTime:
    """How many units are taken over time, on a machine whose units have no places; as `SpaceTime` otherwise.

    Args:
        machine: the machine; never changed.
        now: microseconds; nothing is booked or looked for earlier.
    """

    def __init__(self, machine: Machine, now: int) -> None:
        self._empty = emptied(machine)
        self._times = [now]
        self._taken = [0]  # from each time until the next

    def book(self, begin: int, end: int, placement: Placement) -> None:
        """Take what a placement holds during [begin, end); earlier parts are left out."""
        self._add(begin, end, placement.size)

    def book_all(self, bookings: Sequence[tuple[int, int, Placement]]) -> None:
        """Take what many placements hold: begin, end and placement of each."""
        for begin, end, placement in bookings:
            self._add(begin, end, placement.size)

    def cancel(self, begin: int, end: int, placement: Placement) -> None:
        """Give back what a placement holds during [begin, end)."""
        self._add(begin, end, -placement.size)

    def earliest(self, request: JobRequest, length: int, not_before: int, latest: int) -> tuple[int, Placement] | None:
        """Return the earliest begin in [not_before, latest] of a `length` with enough free units, and the place.

        No begin will do before the last step of the window that is too full is over.
        """
        room = self._empty.capacity - request.size
        if room < 0:
            return None
        times, taken = self._times, self._taken
        begin = not_before
        step = bisect_right(times, begin) - 1
        while begin <= latest:
            last = bisect_left(times, begin + length) - 1
            full = next((each for each in range(last, step - 1, -1) if taken[each] > room), None)
            if full is None:
                placement = self._empty.place(request)
                return None if placement is None else (begin, placement)
            step = full + 1
            if step == len(times):
                return None
            begin = times[step]
        return None

    def _add(self, begin: int, end: int, units: int) -> None:
        for index in range(self._step_from(max(begin, self._times[0])), self._step_from(max(end, self._times[0]))):
            self._taken[index] += units

    def _step_from(self, time: int) -> int:
        """Return the step that begins at a time; split off if missing."""
        index = bisect_left(self._times, time)
        if index == len(self._times) or self._times[index] != time:
            self._times.insert(index, time)
            self._taken.insert(index, self._taken[index - 1])
        return index
