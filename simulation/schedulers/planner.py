"""Availability over time and space: when, and where, does a request fit for its whole time?

A plan knows what holds the machine now and until when that is expected to last, and what is booked for later. It
answers with a start and a placement that stays clear of everything during the whole time asked for. It works on any
machine: units without identity (a flat machine's) are counted; where they have coordinates, the machine is asked for a
place with all taken that is held at any time of the window, units and cables alike (`simulation.planning.placers`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import replace
from math import prod

from simulation.machines.interface import GridMachine, JobRequest, Machine, Placement
from simulation.planning.placers import Placer, StateVector, placer_of
from simulation.schedulers.interface import Site


def placements_conflict(one: Placement, other: Placement) -> bool:
    """Whether two placements share a unit or a cable; never true for units without identity.

    Two placements share a cable where they hold the same label in a dimension and cross a common line of it, that is
    where their coordinates meet in all other dimensions.
    """
    if one.nodes & other.nodes:
        return True
    return _cables_conflict(one, other)


def _cables_conflict(one: Placement, other: Placement) -> bool:
    if not one.links or not other.links:
        return False
    meets = [not set(a).isdisjoint(b) for a, b in zip(one.members, other.members, strict=True)]
    for dimension, (labels, other_labels) in enumerate(zip(one.links, other.links, strict=True)):
        shared = labels and other_labels and not set(labels).isdisjoint(other_labels)
        if shared and all(meet for index, meet in enumerate(meets) if index != dimension):
            return True
    return False


def expected_ends(site: Site) -> dict[int, int]:
    """When each running job is expected to end, in microseconds after now.

    A job that has outrun its request is expected to end when the next reservation begins, if not before: a reservation
    has precedence over it.
    """
    now = site.now
    ends = {number: job.expected_end(now) for number, job in site.running.items()}
    precedence = min((one.begin_time for one in site.reservations if one.begin_time > now), default=None)
    if precedence is not None:
        for number, job in site.running.items():
            if job.start_time + job.job.planned_length <= now:
                ends[number] = min(ends[number], precedence)
    return ends


class UnitProfile:
    """Which units with identity are occupied over time: bit sets between points in time.

    Args:
        start: microseconds; nothing is asked about earlier times.
    """

    __slots__ = ("_taken", "_times")

    def __init__(self, start: int) -> None:
        self._times = [start]
        self._taken = [0]

    def flip(self, begin: int, end: int, units: int) -> None:
        """Occupy units over [begin, end) that are free then, or free them where they are occupied all that time."""
        if units:
            for index in range(self._split(begin), self._split(end)):
                self._taken[index] ^= units

    def too_full_until(self, begin: int, end: int, room: int) -> int | None:
        """Whether more than `room` units are occupied at some time of [begin, end), all together.

        Returns:
            None if not; otherwise a time until which no interval of that length can begin, at least `begin`.
        """
        index = bisect_right(self._times, begin) - 1
        occupied = 0
        blocked: int | None = None
        for later in range(index, len(self._times)):
            if self._times[later] >= end:
                break
            taken = self._taken[later]
            occupied |= taken
            if taken.bit_count() > room:
                blocked = self._times[later + 1]  # the last segment is free, so there is a next one
            elif blocked is None and occupied.bit_count() > room:
                blocked = begin
        return blocked

    def _split(self, time: int) -> int:
        index = bisect_left(self._times, time)
        if index == len(self._times) or self._times[index] != time:
            self._times.insert(index, time)
            self._taken.insert(index, self._taken[index - 1])
        return index


class Plan:
    """Bookings over time on one machine.

    Args:
        machine: the machine in its present state; copied, never changed.
        now: microseconds; no booking begins earlier.
        holders: who holds what now: (key, expected end after `now` in microseconds, placement); the key is the job id
            under which the machine holds the placement.
    """

    def __init__(self, machine: Machine, now: int, holders: Iterable[tuple[int, int, Placement]]) -> None:
        self._machine = machine.copy()
        self._empty: Machine | None = None
        self._placer: Placer | None = None
        self._unions: dict[tuple[int, ...], StateVector] = {}
        self._units = prod(machine.extents)
        self._now = now
        self._bookings: dict[int, tuple[int, int, Placement]] = {}
        self._ends: list[int] = []
        self._occupied = UnitProfile(now)
        self._holders: set[int] = set()
        for key, end, placement in holders:
            self._holders.add(key)
            self._add(key, now, end, placement)

    @classmethod
    def of_site(cls, site: Site) -> Plan:
        """The plan of what runs and of what is reserved at a site now."""
        ends = expected_ends(site)
        holders = [(number, ends[number], job.placement) for number, job in site.running.items()]
        later = []
        for reservation in site.reservations:
            if reservation.number in site.machine.running:
                holders.append((reservation.number, reservation.end_time, reservation.placement))
            else:
                later.append(reservation)
        plan = cls(site.machine, site.now, holders)
        for reservation in later:
            plan.book(reservation.number, reservation.begin_time, reservation.end_time, reservation.placement)
        return plan

    def book(self, key: int, begin: int, end: int, placement: Placement) -> None:
        """Book a placement for [begin, end); the caller has made sure that it is free then."""
        self._add(key, begin, end, placement)

    def start(self, key: int, end: int, placement: Placement) -> None:
        """Give a placement, free now, to a holder until `end`."""
        self._machine.allocate(replace(placement, job_id=key))
        self._holders.add(key)
        self._add(key, self._now, end, placement)

    def cancel(self, key: int) -> None:
        """Take a booking back."""
        begin, end, placement = self._bookings.pop(key)
        del self._ends[bisect_left(self._ends, end)]
        self._occupied.flip(begin, end, placement.nodes)
        self._unions.clear()

    def _add(self, key: int, begin: int, end: int, placement: Placement) -> None:
        self._unions.clear()
        self._bookings[key] = (begin, end, placement)
        insort(self._ends, end)
        self._occupied.flip(begin, end, placement.nodes)

    def fits_at(self, request: JobRequest, begin: int, length: int) -> Placement | None:
        """A placement that is free during [begin, begin + length), or None."""
        found = self._search(request, begin, length, begin)
        return found[1] if found is not None else None

    def earliest(
        self, request: JobRequest, length: int, not_before: int | None = None, latest: int | None = None
    ) -> tuple[int, Placement] | None:
        """The earliest start with a placement that stays free for the whole time.

        Args:
            request: what is asked of the machine.
            length: time it takes, microseconds.
            not_before: earliest start allowed; now by default.
            latest: latest start allowed; any by default.

        Returns:
            Start time and placement, or None.
        """
        return self._search(request, self._now if not_before is None else not_before, length, latest)

    def _search(
        self, request: JobRequest, not_before: int, length: int, latest: int | None
    ) -> tuple[int, Placement] | None:
        """Try the first time allowed, then every end of a booking: between two ends no request begins to fit."""
        ends = self._ends
        room = self._units - request.size
        if room < 0:
            return None
        time = not_before
        while latest is None or time <= latest:
            blocked = self._occupied.too_full_until(time, time + length, room)
            if blocked is None:
                placement = self._place_at(request, time, length)
                if placement is not None:
                    return time, placement
                blocked = time
            following = bisect_left(ends, blocked) if blocked > time else bisect_right(ends, time)
            if following == len(ends):
                return None
            time = ends[following]
        return None

    def _place_at(self, request: JobRequest, begin: int, length: int) -> Placement | None:
        """A placement that is clear of all bookings during [begin, begin + length)."""
        end = begin + length
        bookings = self._bookings
        keys = tuple([key for key, (first, last, _) in bookings.items() if first < end and last > begin])
        if begin == self._now and self._holders.issuperset(keys):
            return self._machine.place(request)
        if not keys:
            return self._empty_machine().place(request)
        overlapping = [bookings[key] for key in keys]
        if overlapping[0][2].nodes == 0:
            empty = self._empty_machine()
            return empty.place(request) if request.size <= empty.capacity - _peak(overlapping, begin) else None
        union = self._unions.get(keys)
        if union is None:
            placer = self._placer_of_places()
            union = placer.out.copy()
            for _, _, placement in overlapping:
                union |= placer.mask(placement)
            self._unions[keys] = union
        return self._placer_of_places().place(union, request)

    def _placer_of_places(self) -> Placer:
        if self._placer is None:
            assert isinstance(self._machine, GridMachine), "only these give out units with identity"
            self._placer = placer_of(self._machine)
        return self._placer

    def _empty_machine(self) -> Machine:
        if self._empty is None:
            self._empty = self._machine.copy()
            for key in list(self._empty.running):
                self._empty.release(key)
        return self._empty


def _peak(bookings: Iterable[tuple[int, int, Placement]], begin: int) -> int:
    """Most units held at one time from `begin` on."""
    steps = []
    for start, end, placement in bookings:
        steps.append((max(start, begin), placement.size))
        steps.append((end, -placement.size))
    steps.sort()  # at one time, what ends comes before what begins
    held = peak = 0
    for _, change in steps:
        held += change
        peak = max(peak, held)
    return peak
