"""Bookings over time on a machine whose units have coordinates: a plan that many jobs are moved about in.

The same questions as `simulation.schedulers.planner.Plan` answers, on a table of what is taken when.
"""

from __future__ import annotations

from collections.abc import Sequence

from simulation.machines.interface import GridMachine, JobRequest, Placement
from simulation.planning.placers import ALWAYS, placer_of
from simulation.planning.space_time import SpaceTime
from simulation.schedulers.interface import Site
from simulation.schedulers.planner import Plan, expected_ends


class SpacePlan:
    """Bookings over time on one machine.

    Args:
        machine: the machine; never changed.
        now: microseconds; no booking begins earlier.
        bookings: key, begin, end and placement of what is known from the beginning; these may overlap.
    """

    def __init__(self, machine: GridMachine, now: int, bookings: Sequence[tuple[int, int, int, Placement]]) -> None:
        self._space_time = SpaceTime(placer_of(machine), now)
        self._bookings = {key: (begin, end, placement) for key, begin, end, placement in bookings}
        self._space_time.book_all(list(self._bookings.values()))

    def book(self, key: int, begin: int, end: int, placement: Placement) -> None:
        """Book a placement for [begin, end); the caller has made sure that it is free then."""
        self._bookings[key] = (begin, end, placement)
        self._space_time.book(begin, end, placement)

    def cancel(self, key: int) -> None:
        """Take a booking back that overlaps no other."""
        self._space_time.cancel(*self._bookings.pop(key))

    def earliest(
        self, request: JobRequest, length: int, not_before: int | None = None, latest: int | None = None
    ) -> tuple[int, Placement] | None:
        """The earliest start with a placement that stays free for the whole time; see `Plan.earliest`."""
        first = self._space_time.now if not_before is None else not_before
        return self._space_time.earliest(request, length, first, ALWAYS if latest is None else latest)


def plan_of(site: Site, promises: Sequence[tuple[int, int, int, Placement]]) -> Plan | SpacePlan:
    """The plan of what runs, of what is reserved and of what is promised at a site now.

    Args:
        site: the site.
        promises: key, begin, end and placement of each promise; they overlap nothing.
    """
    if isinstance(site.machine, GridMachine):
        ends = expected_ends(site)
        running = [(number, site.now, ends[number], job.placement) for number, job in site.running.items()]
        reserved = [(each.number, each.begin_time, each.end_time, each.placement) for each in site.reservations]
        return SpacePlan(site.machine, site.now, [*running, *reserved, *promises])
    plan = Plan.of_site(site)
    for key, begin, end, placement in promises:
        plan.book(key, begin, end, placement)
    return plan
