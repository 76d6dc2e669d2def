"""Conservative backfilling on requested times.

Mu'alem and Feitelson 2001, section 3: every job is promised the earliest start that delays nobody in the queue when it
arrives. When something is released early, the waiting jobs are moved forward one by one in order of arrival and never
back ("compression"). When a running job outruns its request, or reservations change, the promises are made anew in
order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable

from simulation.machines.interface import Placement
from simulation.schedulers.interface import Job, Site
from simulation.schedulers.planner import Plan, expected_ends


class ConservativeBackfill:
    """Backfills jobs that delay nobody in the queue."""

    name = "conservative"

    def __init__(self) -> None:
        self._queue: dict[int, Job] = {}
        self._promises: dict[int, tuple[int, Placement]] = {}
        self._compress = False
        self._reservations: tuple[int, ...] = ()
        self._expected_ends: dict[int, int] = {}

    def submit(self, job: Job) -> None:
        """A job joins at the end; it is promised a start at the next decision."""
        self._queue[job.job_number] = job

    def released(self) -> None:
        """Promises may move forward."""
        self._compress = True

    def waiting(self) -> Iterable[Job]:
        """The queue in its order."""
        return iter(self._queue.values())

    def promise(self, job: Job) -> tuple[int, Placement] | None:
        """Start time in microseconds and placement promised to a waiting job, if it has been decided on."""
        return self._promises.get(job.job_number)

    def decide(self, site: Site) -> int | None:
        """Promise, move forward, and start what is promised for now."""
        now = site.now
        if not self._queue:
            self._compress = False
            self._expected_ends = {}
            return None
        plan = Plan.of_site(site)
        if self._is_broken(site):
            self._promises.clear()
        for number, (begin, placement) in self._promises.items():
            plan.book(number, begin, begin + self._queue[number].planned_length, placement)
        for number, job in self._queue.items():
            old = self._promises.get(number)
            if old is not None:
                if not self._compress:
                    continue
                plan.cancel(number)
            latest = None if old is None else old[0] - 1
            new = plan.earliest(job.request, job.planned_length, latest=latest) or old
            if new is not None:
                self._promises[number] = new
                plan.book(number, new[0], new[0] + job.planned_length, new[1])
        self._compress = False
        for number in [number for number, (begin, _) in self._promises.items() if begin <= now]:
            site.start(self._queue.pop(number), self._promises.pop(number)[1])
        self._expected_ends = expected_ends(site)
        return min((begin for begin, _ in self._promises.values()), default=None)

    def _is_broken(self, site: Site) -> bool:
        """Whether the promises rest on something that is no longer true."""
        reservations = tuple(reservation.number for reservation in site.reservations)
        changed = not set(reservations) <= set(self._reservations)
        self._reservations = reservations
        # beyond its request, a job is expected to end as the next reservation begins, and later if that is given back
        ends = expected_ends(site)
        overrun = any(ends.get(number, end) > end for number, end in self._expected_ends.items())
        return changed or overrun
