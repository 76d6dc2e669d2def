"""First come, first served: only the head of the queue may start."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job, Site


class FirstComeFirstServed:
    """Start jobs in order; a head that does not fit delays all jobs behind it."""

    def __init__(self) -> None:
        self._queue: deque[Job] = deque()
        self._head_fails = False

    def submit(self, job: Job) -> None:
        self._queue.append(job)

    def released(self) -> None:
        """Note that the head may fit now."""
        self._head_fails = False

    def waiting(self) -> Iterable[Job]:
        return iter(self._queue)

    def decide(self, site: Site) -> int | None:
        """Start jobs from the head while they fit."""
        while self._queue and not self._head_fails:
            placement = site.place(self._queue[0])
            if placement is None:
                self._head_fails = True
            else:
                site.start(self._queue.popleft(), placement)
        return None


SCHEDULER = scheduler(
    FirstComeFirstServed,
    about="Only the head of the queue may start.",
    compiled="simulation.schedulers.compiled.fcfs:first_come_first_served",
)
