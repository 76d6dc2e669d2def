"""Shortest job first, by requested time.

A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, introduction, name it with longest job first
and priorities beside FCFS, and speak of the jobs' duration; a queue knows the requested time only.
"""

from __future__ import annotations

from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job
from simulation.schedulers.ordered import OrderedQueue, OrderOptions


class ShortestJobFirst(OrderedQueue):
    """Shortest job first: the shortest requested time."""

    def key(self, job: Job) -> float:
        return job.planned_length


SCHEDULER = scheduler(ShortestJobFirst, options=OrderOptions)
