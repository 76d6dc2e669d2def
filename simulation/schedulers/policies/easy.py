"""EASY backfilling on requested times.

A. W. Mu'alem and D. G. Feitelson, "Utilization, predictability, workloads, and user runtime estimates in scheduling the
IBM SP2 with backfilling", IEEE Trans. Parallel and Distributed Systems 12(6), 2001, section 3: jobs start in order
while they fit; the first that does not fit is promised the earliest time at which it will (the shadow time); a later
job may start now if that does not delay the promise. There the promise is a number of nodes. On a machine with places
it is a placement, and a backfilled job that would still run at the shadow time must stay clear of it.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from operator import itemgetter

from simulation.machines.interface import Placement
from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job, Site
from simulation.schedulers.planner import plan_of


class KindQueue:
    """Waiting jobs in order of arrival, in one line for each kind.

    Saturated queues grow to thousands of jobs, but to few kinds: when one job of a kind does not fit, none of that kind
    fits until something is released. So a pass over the queue looks at the first job of each kind only.

    Attributes:
        lines: for each kind the jobs that wait with their numbers of arrival, in order; never empty. Not to be changed.
        arrivals: jobs that have joined so far; the next one gets this number of arrival.
    """

    def __init__(self) -> None:
        self.lines: dict[Hashable, list[tuple[int, Job]]] = {}
        self.arrivals = 0
        self._size = 0
        self._first: tuple[int, Job] | None = None  # who waits longest, where that is known

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Job]:
        everyone = sorted((entry for line in self.lines.values() for entry in line), key=itemgetter(0))
        return (job for _, job in everyone)

    def append(self, job: Job) -> None:
        self.lines.setdefault(job.kind, []).append((self.arrivals, job))
        self.arrivals += 1
        self._size += 1

    def remove(self, job: Job) -> None:
        """Remove a job from any position."""
        self.remove_at(job.kind, next(index for index, entry in enumerate(self.lines[job.kind]) if entry[1] is job))

    def remove_at(self, kind: Hashable, index: int) -> None:
        """Remove the job at a position of its line."""
        line = self.lines[kind]
        entry = line.pop(index)
        self._size -= 1
        if entry is self._first:
            self._first = None
        if not line:
            del self.lines[kind]

    def first(self) -> tuple[int, Job] | None:
        """Return the job that waits longest, with its number of arrival."""
        if self._first is None and self.lines:
            self._first = min((line[0] for line in self.lines.values()), key=itemgetter(0))
        return self._first


class EasyBackfill:
    """Backfills jobs that do not delay the first one (default)."""

    def __init__(self) -> None:
        self._queue = KindQueue()
        # head, what it is promised, and how many arrivals are known to fail beside that
        self._tried: tuple[int, tuple[int, Placement] | None, int] | None = None
        self._promise: tuple[int, Placement] | None = None

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
        while (first := self._queue.first()) is not None:
            head = first[1]
            if self._tried is not None and self._tried[0] == head.job_number and not site.reservations:
                break  # nothing has been released since it failed
            placement = site.place(head)
            if placement is None:
                break
            self._queue.remove_at(head.kind, 0)
            site.start(head, placement)
        if first is not None and len(self._queue) > 1 and site.machine.free > 0:
            self._backfill(site, *first)
        return None

    def _backfill(self, site: Site, arrival: int, head: Job) -> None:
        """Start later jobs in order of arrival.

        Of each kind only jobs that can still fit are looked at: when one fails that would end by the shadow time,
        nothing of its kind fits; when one fails that would not, none does that would not either. With reservations
        only longer jobs of the kind are known to fail. A job that failed before fails again until something is released
        or the promise changes: what is free only shrinks, and so does the time to the shadow.
        """
        now, lines = site.now, self._queue.lines
        free = site.machine.free
        if all(line[0][1].request.size > free for line in lines.values()):
            return
        plan = plan_of(site)
        promise = self._standing_promise(site, head) or plan.earliest(head.request, head.planned_length)
        self._promise = promise
        room = shadow = None
        if promise is not None:
            shadow, placement = promise
            room = shadow - now
            plan.book(head.job_number, shadow, shadow + head.planned_length, placement)
        limits: dict[Hashable, int] = {}
        heap = self._untried(self._first_untried(arrival + 1, head, reserved=bool(site.reservations)))
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

    def _first_untried(self, first: int, head: Job, *, reserved: bool) -> int:
        """Number of arrival, not below `first`, before which all are known to fail beside the present promise."""
        queue, known = self._queue, self._tried
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
