"""Longest job first, by requested time; the source is that of `sjf`, whose word for it means duration, not size."""

from __future__ import annotations

from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job
from simulation.schedulers.ordered import OrderedQueue, OrderOptions


class LongestJobFirst(OrderedQueue):
    """Longest job first: the longest requested time."""

    def key(self, job: Job) -> float:
        return -job.planned_length


SCHEDULER = scheduler(LongestJobFirst, options=OrderOptions)
