"""EASY backfilling on requested times.

A. W. Mu'alem and D. G. Feitelson, "Utilization, predictability, workloads, and user runtime estimates in scheduling the
IBM SP2 with backfilling", IEEE Trans. Parallel and Distributed Systems 12(6), 2001, section 3: jobs start in order
while they fit; the first that does not fit is promised the earliest time at which it will (the shadow time); a later
job may start now if that does not delay the promise. There the promise is a number of nodes. On a machine with places
it is a placement, and a backfilled job that would still run at the shadow time must stay clear of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from simulation.schedulers.interface import Job, Site
from simulation.schedulers.planner import Plan


class EasyBackfill:
    """Backfills jobs that do not delay the first one."""

    name = "easy"

    def __init__(self) -> None:
        self._queue: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        """A job joins at the end."""
        self._queue.append(job)

    def released(self) -> None:
        """Nothing is remembered between decisions, as the promise depends on the time."""

    def waiting(self) -> Iterable[Job]:
        """The queue in its order."""
        return iter(self._queue)

    def decide(self, site: Site) -> int | None:
        """Start heads while they fit, then backfill."""
        queue = self._queue
        while queue:
            placement = site.place(queue[0])
            if placement is None:
                break
            site.start(queue.popleft(), placement)
        if len(queue) > 1 and site.machine.free > 0:
            self._backfill(site)
        return None

    def _backfill(self, site: Site) -> None:
        now, queue = site.now, self._queue
        head = queue[0]
        plan = Plan.of_site(site)
        promise = plan.earliest(head.request, head.planned_length)
        shadow = None
        if promise is not None:
            shadow, placement = promise
            plan.book(head.job_number, shadow, shadow + head.planned_length, placement)
        kept = deque([head])
        failed: dict[tuple[object, bool], int] = {}
        for job in list(queue)[1:]:
            over_shadow = shadow is not None and now + job.planned_length > shadow
            reason = (job.kind, over_shadow)
            if job.request.size > site.machine.free or failed.get(reason, job.planned_length + 1) <= job.planned_length:
                kept.append(job)
                continue
            found = plan.fits_at(job.request, now, job.planned_length)
            if found is None:
                failed[reason] = job.planned_length
                kept.append(job)
                continue
            site.start(job, found)
            plan.start(job.job_number, now + job.planned_length, found)
        self._queue = kept
