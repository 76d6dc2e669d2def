"""What is taken on a machine over time, and the earliest window in which a request has a place for its whole time.

The search is complete: a window is refused only if no place is free of all that is taken at any time of it, units and
cables alike. Taking more never makes anything fit earlier, so jobs of one kind need not be looked for before the start
that a shorter one was given (`Floors`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np

from simulation.machines.interface import JobRequest, Placement
from simulation.resource.placers import Placer, StateVector, units_of
from simulation.resource.space_time_scan import next_window, step_at, take, union_over

ALWAYS: Final = 1 << 61
"""Later than every time of a machine; sums of two still fit 64 bits."""
_FIRST_ROOM: Final = 64


@dataclass(frozen=True, slots=True)
class Booking:
    """A placement for [begin, end), microseconds."""

    begin: int
    end: int
    placement: Placement


class SpaceTime:
    """Bookings of one machine from a time on; they may overlap, what any of them holds is taken.

    Args:
        placer: of the machine.
        units: its number of units.
        now: microseconds; nothing is booked or looked for earlier.
    """

    def __init__(self, placer: Placer, units: int, now: int) -> None:
        self.now = now
        self.bookings: list[Booking] = []
        self._placer = placer
        self._units = units
        words = len(placer.out)
        self._times = np.full(_FIRST_ROOM, now, np.int64)
        self._order = np.zeros(_FIRST_ROOM, np.int64)
        self._rows = np.zeros((_FIRST_ROOM, words), np.uint64)
        self._count = 1
        self._union = np.zeros(words, np.uint64)

    def book(self, begin: int, end: int, placement: Placement) -> None:
        """Take what a placement holds during [begin, end); earlier parts are left out."""
        begin = max(begin, self.now)
        if end <= begin:
            return
        if self._count + 2 > len(self._times):
            self._grow()
        mask = self._placer.mask(placement)
        self._count = take(self._times, self._order, self._rows, self._count, begin, end, mask)
        self.bookings.append(Booking(begin, end, placement))

    def earliest(
        self, request: JobRequest, length: int, not_before: int, latest: int = ALWAYS
    ) -> tuple[int, Placement] | None:
        """The earliest begin in [not_before, latest] of a window of `length` with a place, and the place.

        Args:
            request: what is asked of the machine.
            length: microseconds, at least 1.
            not_before: microseconds.
            latest: microseconds.
        """
        time = max(not_before, self.now)
        step = step_at(self._times, self._count, time)
        placer = self._placer
        while True:
            step = next_window(
                self._times, self._order, self._rows, self._count, placer.out, placer.unit_words, self._units,
                request.size, step, time, length, latest, self._union,
            )  # fmt: skip
            if step < 0:
                return None
            time = max(time, int(self._times[step]))
            placement = placer.place(self._union, request)
            if placement is not None:
                return time, placement
            step += 1
            if step >= self._count:
                return None
            time = int(self._times[step])

    def taken_over(self, begin: int, end: int) -> StateVector:
        """All that is taken or out of service at any time of [begin, end)."""
        union = self._placer.out.copy()
        first = step_at(self._times, self._count, max(begin, self.now))
        union_over(self._times, self._order, self._rows, self._count, first, end, len(union), union)
        return union

    def units_over(self, begin: int, end: int) -> int:
        """Bit set of the units that are taken or out of service at any time of [begin, end)."""
        return units_of(self.taken_over(begin, end)[: self._placer.unit_words])

    def _grow(self) -> None:
        room = 2 * len(self._times)
        self._times = np.resize(self._times, room)
        self._order = np.resize(self._order, room)
        rows = np.zeros((room, self._rows.shape[1]), np.uint64)
        rows[: len(self._rows)] = self._rows
        self._rows = rows


class Floors:
    """Begins before which jobs of a kind and length need not be looked for, while bookings are only added."""

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[list[int], list[int]]] = {}

    def floor(self, kind: Hashable, length: int, default: int) -> int:
        """The latest begin that a job of the kind, no longer than `length`, was found to need."""
        lengths, begins = self._found.get(kind, ((), ()))
        place = bisect_right(lengths, length)
        return begins[place - 1] if place else default

    def note(self, kind: Hashable, length: int, begin: int) -> None:
        """A job of the kind and length can begin no earlier; `begin` is not before its floor."""
        lengths, begins = self._found.setdefault(kind, ([], []))
        place = bisect_left(lengths, length)
        last = place
        # both lists ascend: a longer job with an earlier begin says nothing that this one does not say better
        while last < len(begins) and begins[last] <= begin:
            last += 1
        lengths[place:last] = [length]
        begins[place:last] = [begin]
