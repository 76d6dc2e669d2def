"""EASY backfilling on requested times.

A. W. Mu'alem and D. G. Feitelson, "Utilization, predictability, workloads, and user runtime estimates in scheduling the
IBM SP2 with backfilling", IEEE Trans. Parallel and Distributed Systems 12(6), 2001, section 3: jobs start in order
while they fit; the first that does not fit is promised the earliest time at which it will (the shadow time); a later
job may start now if that does not delay the promise. There the promise is a number of nodes. On a machine with places
it is a placement, and a backfilled job that would still run at the shadow time must stay clear of it.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable
from operator import itemgetter

from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.interface import Placement, has_cables
from simulation.planning.cabled_backfill import CabledBackfill
from simulation.planning.placers import ALWAYS
from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job, Site
from simulation.schedulers.planner import plan_of
from simulation.schedulers.waiting import KindQueue


class EasyBackfill:
    """Backfills jobs that do not delay the first one (default)."""

    def __init__(self) -> None:
        self._queue = KindQueue()
        # head, what it is promised, and how many arrivals are known to fail beside that
        self._tried: tuple[int, tuple[int, Placement] | None, int] | None = None
        self._promise: tuple[int, Placement] | None = None
        self._good_until = 0  # when the first running job should have ended; the promise rests on that none has
        self._cabled: CabledBackfill | None = None

    def submit(self, job: Job) -> None:
        """Add a job at the end."""
        self._queue.append(job)

    def released(self) -> None:
        """Note that every job may fit again."""
        self._tried = None

    def withdraw(self, job: Job) -> None:
        """Remove a waiting job; others may have waited for it."""
        self._queue.remove(job)
        self._tried = self._promise = None

    def waiting(self) -> Iterable[Job]:
        return iter(self._queue)

    def decide(self, site: Site) -> int | None:
        """Start heads while they fit, then backfill."""
        head = self._queue.first()
        while head is not None:
            if self._tried is not None and self._tried[0] == head.job_number and not site.reservations:
                break  # nothing has been released since it failed
            placement = site.place(head)
            if placement is None:
                break
            self._queue.pop_first(head.kind)
            site.start(head, placement)
            head = self._queue.first()
        if head is not None and len(self._queue) > 1 and site.machine.free > 0:
            self._backfill(site, head)
        return None

    def _backfill(self, site: Site, head: Job) -> None:
        free = site.machine.free
        if all(line[0][1].request.size > free for line in self._queue.lines.values()):
            return
        if not site.reservations and has_cables(site.machine):
            self._backfill_between_cables(site, site.machine, head)
        else:
            self._backfill_by_plan(site, head)

    def _backfill_between_cables(self, site: Site, machine: BlueGene, head: Job) -> None:
        """Do the same as `_backfill_by_plan`, without reservations, in two states of the machine instead of a plan.

        Of each kind the first job that ends by the shadow time and the first one that does not are looked at.
        """
        now, queue = site.now, self._queue
        if self._cabled is None:
            self._cabled = CabledBackfill(machine)
        cabled = self._cabled
        for number in cabled.missing(site.running):
            running = site.running[number]
            cabled.add(number, running, running.planned_from, running.planned_length, running.placement)
        if self._tried is None or self._tried[0] != head.job_number or now >= self._good_until:
            found = cabled.promise(head.request, now)
            self._promise, self._good_until = (found[::2], found[1]) if found is not None else (None, now)
            cabled.keep_clear(self._promise[1] if self._promise is not None else None)
        shadow = self._promise[0] if self._promise is not None else None
        room = ALWAYS if shadow is None else shadow - now
        candidates = queue.firsts_by_length(self._first_untried(head, reserved=False), room, machine.free)
        while candidates:
            chosen = cabled.place_first([(job.request, long) for _, long, job in candidates])
            if chosen is None:
                return
            index, placement = chosen
            arrival, long, job = candidates[index]
            site.start(job, placement)
            running = site.running[job.job_number]
            cabled.add(job.job_number, running, now, running.planned_length, placement)
            self._good_until = min(self._good_until, running.planned_end)
            free = machine.free
            # where one that would end in time has no place, none of its kind has
            failed = {other.kind for _, is_long, other in candidates[:index] if not is_long}
            candidates = [
                each for each in candidates[index + 1 :] if each[2].request.size <= free and each[2].kind not in failed
            ]
            place = queue.index_of(job.kind, arrival)
            queue.remove_at(job.kind, place)
            following = queue.next_by_length(job.kind, place, room, long)
            if following is not None and job.request.size <= free and job.kind not in failed:
                insort(candidates, following, key=itemgetter(0))

    def _backfill_by_plan(self, site: Site, head: Job) -> None:
        """Start later jobs in order of arrival, on any machine and around reservations.

        Of each kind only jobs that can still fit are looked at: when one fails that would end by the shadow time,
        nothing of its kind fits; when one fails that would not, none does that would not either. With reservations
        only longer jobs of the kind are known to fail. A job that failed before fails again until something is released
        or the promise changes: what is free only shrinks, and so does the time to the shadow.
        """
        now, lines = site.now, self._queue.lines
        free = site.machine.free
        plan = plan_of(site)
        promise = self._standing_promise(site, head) or plan.earliest(head.request, head.planned_length)
        self._promise = promise
        room = shadow = None
        if promise is not None:
            shadow, placement = promise
            room = shadow - now
            plan.book(head.job_number, shadow, shadow + head.planned_length, placement)
        limits: dict[Hashable, int] = {}
        heap = self._untried(self._first_untried(head, reserved=bool(site.reservations)))
        while heap:
            _, kind, index = heapq.heappop(heap)
            line = lines[kind]
            job = line[index][1]
            if job.request.size > free:
                continue  # nor will any other of its kind fit: what is free only shrinks
            found = plan.fits_at(job.request, now, job.planned_length)
            if found is not None:
                site.start(job, found)
                plan.book(job.job_number, now, now + job.planned_length, found)
                free = site.machine.free
                self._queue.remove_at(kind, index)
            elif site.reservations:
                limits[kind] = job.planned_length
                index += 1
            elif room is None or job.planned_length <= room:
                continue
            else:
                limits[kind] = room + 1
                index += 1
            limit = limits.get(kind)
            if limit is not None:
                while index < len(line) and line[index][1].planned_length >= limit:
                    index += 1
            if index < len(line):
                heapq.heappush(heap, (line[index][0], kind, index))

    def _standing_promise(self, site: Site, head: Job) -> tuple[int, Placement] | None:
        """Return the promise made to this head before, where nothing that it rests on has changed."""
        now = site.now
        if self._tried is None or self._tried[0] != head.job_number or site.reservations:
            return None
        if any(running.planned_end <= now for running in site.running.values()):
            return None
        return self._promise if self._promise is not None and self._promise[0] > now else None

    def _first_untried(self, head: Job, *, reserved: bool) -> int:
        """Number of arrival before which all are known to fail beside the present promise."""
        queue, known = self._queue, self._tried
        first = queue.first_arrival + 1
        if known is not None and known[:2] == (head.job_number, self._promise) and not reserved:
            first = known[2]
        self._tried = (head.job_number, self._promise, queue.arrivals)
        return first

    def _untried(self, first: int) -> list[tuple[int, Hashable, int]]:
        """Return a heap of each kind's first job from an arrival on, as arrival, kind and place in its line."""
        heap = []
        for kind, line in self._queue.lines.items():
            index = bisect_left(line, first, key=itemgetter(0))
            if index < len(line):
                heap.append((line[index][0], kind, index))
        heapq.heapify(heap)
        return heap


SCHEDULER = scheduler(
    EasyBackfill,
    about="Later jobs may overtake if they do not delay the first job (default).",
    compiled_by_event="simulation.schedulers.compiled.easy:easy_event_by_event",
    compiled="simulation.schedulers.compiled.easy:easy",
)
