"""Aggressive first-fit over the queue: the scheduling of the 2005 Blue Gene/L allocation study.

Y. Aridor and others, IBM J. Res. & Dev. 49(2/3), 2005, "Simulation environment": whenever a job arrives or ends, the
queue is walked in order and whatever fits is started; nothing is kept back for the head of the queue.
"""

from __future__ import annotations

from collections.abc import Iterable

from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job, Site
from simulation.schedulers.waiting import KindQueue


class AggressiveFirstFit:
    """Starts every waiting job that fits, in order of arrival."""

    def __init__(self) -> None:
        self._queue = KindQueue()

    def submit(self, job: Job) -> None:
        self._queue.append(job)

    def released(self) -> None:
        """Note that every kind may fit again."""
        self._queue.failed.clear()

    def waiting(self) -> Iterable[Job]:
        return iter(self._queue)

    def decide(self, site: Site) -> int | None:
        """Start all jobs that fit."""
        queue = self._queue
        if not queue:
            return None
        if site.reservations:
            self._decide_one_by_one(site)
            return None
        machine = site.machine
        candidates = queue.candidates(machine.free)
        while candidates:
            found = machine.place_first([job.request for job in candidates])
            if found is None:
                queue.failed.update(job.kind for job in candidates)
                return None
            index, placement = found
            queue.failed.update(job.kind for job in candidates[:index])
            chosen = candidates[index]
            queue.pop_first(chosen.kind)
            site.start(chosen, placement)
            candidates = queue.candidates(machine.free)
        return None

    def _decide_one_by_one(self, site: Site) -> None:
        """Decide job by job: beside reservations a short job may fit where a long one of its kind does not."""
        failed: dict[object, int] = {}
        for job in list(self._queue):
            if (
                job.request.size > site.machine.free
                or failed.get(job.kind, job.planned_length + 1) <= job.planned_length
            ):
                continue
            placement = site.place(job)
            if placement is None:
                failed[job.kind] = job.planned_length
            else:
                self._queue.remove(job)
                site.start(job, placement)


SCHEDULER = scheduler(
    AggressiveFirstFit,
    about="Every waiting job that fits starts, in order of arrival.",
    compiled="simulation.schedulers.compiled.window_first_fit:first_fit",
)
