"""Availability over time and space: when, and where, does a request fit for its whole time?

A plan knows what holds the machine now and until when that is expected to last, and what is booked for later. It
answers with a start and a placement that stays clear of everything during the whole time asked for. It works on any
machine: units without identity (a flat machine's) are counted, others are compared by their bit sets and cables.

On machines with cables the search is sound but not complete: units of later bookings are hidden from the machine's
allocator, cables are compared with its one answer, and where they clash the next point in time is tried.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from simulation.machines.interface import JobRequest, Machine, NodeState, Placement
from simulation.schedulers.interface import Site

_END: Final = 0
_BEGIN: Final = 1


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
        self._present = self._machine.snapshot()
        self._now = now
        self._bookings: dict[int, tuple[int, int, Placement]] = {}
        self._edges: list[tuple[int, int, int]] = []
        for key, end, placement in holders:
            self._bookings[key] = (now, end, placement)
            self._edges.append((end, _END, key))
        self._edges.sort()

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
        self._bookings[key] = (begin, end, placement)
        insort(self._edges, (begin, _BEGIN, key))
        insort(self._edges, (end, _END, key))

    def start(self, key: int, end: int, placement: Placement) -> None:
        """Give a placement, free now, to a holder until `end`."""
        placement = replace(placement, job_id=key)
        self._machine.restore(self._present)
        self._machine.allocate(placement)
        self._present = self._machine.snapshot()
        self._bookings[key] = (self._now, end, placement)
        insort(self._edges, (end, _END, key))

    def cancel(self, key: int) -> None:
        """Take a booking back."""
        begin, end, _ = self._bookings.pop(key)
        self._edges.remove((begin, _BEGIN, key))
        self._edges.remove((end, _END, key))

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
        """Walk the machine through the plan, from end to end: between two ends no request begins to fit."""
        machine, edges = self._machine, self._edges
        machine.restore(self._present)
        position = 0
        time = not_before
        while latest is None or time <= latest:
            while position < len(edges) and edges[position][0] <= time:
                _, side, key = edges[position]
                if side == _END:
                    machine.release(key)
                else:
                    machine.allocate(replace(self._bookings[key][2], job_id=key))
                position += 1
            if machine.free >= request.size:
                placement = self._place_clear(request, time, length, position)
                if placement is not None:
                    return time, placement
            later_ends = (edge[0] for edge in edges[position:] if edge[1] == _END)
            following = next(later_ends, None)
            if following is None:
                return None
            time = following
        return None

    def _place_clear(self, request: JobRequest, time: int, length: int, position: int) -> Placement | None:
        """A placement on the machine as it stands at `time` that no later booking touches before `time + length`."""
        machine, edges = self._machine, self._edges
        upcoming = edges[position : bisect_right(edges, (time + length - 1, _BEGIN, 1 << 62))]
        later = [self._bookings[key][2] for _, side, key in upcoming if side == _BEGIN]
        if not later:
            return machine.place(request)
        if later[0].nodes == 0:
            idle = lowest = machine.free
            for _, side, key in upcoming:
                size = self._bookings[key][2].size
                idle += size if side == _END else -size
                lowest = min(lowest, idle)
            return machine.place(request) if lowest >= request.size else None
        state = machine.snapshot()
        taken = 0
        for placement in later:
            taken |= placement.nodes
        machine.set_node_state(taken, NodeState.DRAINED)
        answer = machine.place(request)
        machine.restore(state)
        if answer is not None and any(_cables_conflict(answer, placement) for placement in later):
            return None
        return answer
