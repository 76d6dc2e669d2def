"""EASY backfilling on requested times.

A. W. Mu'alem and D. G. Feitelson, "Utilization, predictability, workloads, and user runtime estimates in scheduling the
IBM SP2 with backfilling", IEEE Trans. Parallel and Distributed Systems 12(6), 2001, section 3: jobs start in order
while they fit; the first that does not fit is promised the earliest time at which it will (the shadow time); a later
job may start now if that does not delay the promise. There the promise is a number of nodes. On a machine with places
it is a placement, and a backfilled job that would still run at the shadow time must stay clear of it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable
from operator import itemgetter

from simulation.machines.interface import Machine, Placement
from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job, Site
from simulation.schedulers.ordered import OrderedQueue, OrderOptions
from simulation.schedulers.planner import plan_of

_Candidate = tuple[int, tuple[Hashable, Hashable], int]
"""Number of arrival, line, and place in it of a waiting job."""


class EasyBackfill(OrderedQueue):
    """Backfills jobs that do not delay the first one (default)."""

    def __init__(self) -> None:
        super().__init__(OrderOptions("first-fit"))  # a line for each kind of job, in order of arrival
        # head, how many arrivals are known to fail beside its promise, and whether they do so beside any
        self._tried: tuple[int, int, bool] | None = None
        self._promise: tuple[int, Placement] | None = None

    def released(self) -> None:
        """Note that every job may fit again."""
        self._tried = None

    def withdraw(self, job: Job) -> None:
        """Remove a waiting job; others may have waited for it."""
        super().withdraw(job)
        self._tried = self._promise = None

    def decide(self, site: Site) -> int | None:
        """Start heads while they fit, then backfill."""
        while self._lines:
            _, arrival, head = min((line[0] for line in self._lines.values()), key=itemgetter(1))
            tried = self._tried is not None and self._tried[0] == head.job_number and not site.reservations
            placement = None if tried else site.place(head)  # where nothing has been released since it failed
            if placement is None:
                if site.machine.free > 0:
                    self._backfill(site, head, arrival)
                break
            super().withdraw(head)
            site.start(head, placement)
        return None

    def _backfill(self, site: Site, head: Job, arrival: int) -> None:
        """Start later jobs in order of arrival.

        Of each kind only jobs that can still fit are looked at: where the machine has no place for one now, it has none
        for its kind; when one fails that would not end by the shadow time, none does that would not either. With
        reservations only longer jobs of the kind are known to fail. A job that failed before fails again until
        something is released or the promise changes: what is free only shrinks, and so does the time to the shadow.
        """
        self._promise = standing = self._standing_promise(site, head)
        untried = self._untried(site, head, standing, arrival + 1)
        place = self._first_with_room(site.machine, untried)
        self._tried = (head.job_number, self._arrivals, place is None)
        if place is None:
            return
        now = site.now
        plan = plan_of(site)
        self._promise = promise = standing or plan.earliest(head.request, head.planned_length)
        room = shadow = None
        if promise is not None:
            shadow, placement = promise
            room = shadow - now
            plan.book(head.job_number, shadow, shadow + head.planned_length, placement)
        limits: dict[tuple[Hashable, Hashable], int] = {}
        while place is not None:
            _, kind, index = untried[place]
            del untried[: place + 1]
            line = self._lines[kind]
            job = line[index][2]
            found = plan.fits_at(job.request, now, job.planned_length)
            if found is not None:
                site.start(job, found)
                plan.book(job.job_number, now, now + job.planned_length, found)
                super().withdraw(job)
            elif site.reservations:
                limits[kind] = job.planned_length
                index += 1
            elif room is None or job.planned_length <= room:
                index = len(line)
            else:
                limits[kind] = room + 1
                index += 1
            limit = limits.get(kind)
            if limit is not None:
                while index < len(line) and line[index][2].planned_length >= limit:
                    index += 1
            if index < len(line):
                insort(untried, (line[index][1], kind, index), key=itemgetter(0))
            place = self._first_with_room(site.machine, untried)

    def _standing_promise(self, site: Site, head: Job) -> tuple[int, Placement] | None:
        """Return the promise made to this head before, where nothing that it rests on has changed."""
        now = site.now
        if self._tried is None or self._tried[0] != head.job_number or site.reservations:
            return None
        if any(running.planned_end <= now for running in site.running.values()):
            return None
        return self._promise if self._promise is not None and self._promise[0] > now else None

    def _untried(self, site: Site, head: Job, standing: tuple[int, Placement] | None, first: int) -> list[_Candidate]:
        """Return each kind's first job from an arrival on that may fit behind the head, by arrival.

        Left out are those that were tried before, where the promise stands or the machine had room for none.
        """
        known = self._tried
        if known is not None and known[0] == head.job_number and not site.reservations and (standing or known[2]):
            first = known[1]
        found = []
        for kind, line in self._lines.items():
            index = bisect_left(line, first, key=itemgetter(1))
            if index < len(line):
                found.append((line[index][1], kind, index))
        return sorted(found, key=itemgetter(0))

    def _first_with_room(self, machine: Machine, untried: list[_Candidate]) -> int | None:
        """Return the place of the first job that the machine has room for now; forget those that are too large."""
        lines, free = self._lines, machine.free
        untried[:] = [each for each in untried if lines[each[1]][each[2]][2].request.size <= free]
        found = machine.place_first([lines[key][index][2].request for _, key, index in untried])
        return None if found is None else found[0]


SCHEDULER = scheduler(
    EasyBackfill,
    about="Later jobs may overtake if they do not delay the first job (default).",
    compiled_by_event="simulation.schedulers.compiled.easy:easy_event_by_event",
    compiled="simulation.schedulers.compiled.easy:easy",
)
