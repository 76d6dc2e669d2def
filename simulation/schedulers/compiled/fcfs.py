"""First come, first served on a flat machine; see the package."""

from __future__ import annotations

import heapq

import numpy as np

from simulation.compiling import compiled
from simulation.schedulers.compiled.running_jobs import NEVER, Int64Array


@compiled
def first_come_first_served(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int
) -> Int64Array:
    """Start times when only the head of the queue may start.

    Args:
        submit: submission times, ascending, shape (jobs,).
        duration: times the jobs will hold their processors, shape (jobs,).
        requested: not used; all loops have one signature.
        size: processors of each job, at most `capacity`, shape (jobs,).
        capacity: processors of the machine.

    Returns:
        Start times, shape (jobs,).
    """
    jobs = submit.size
    start = np.zeros(jobs, dtype=np.int64)
    ends = [(NEVER, 0)]
    free = capacity
    now = 0
    for job in range(jobs):
        now = max(now, int(submit[job]))
        while ends[0][0] <= now:
            free += heapq.heappop(ends)[1]
        while free < size[job]:
            end, released = heapq.heappop(ends)
            now = max(now, end)
            free += released
        while ends[0][0] <= now:
            free += heapq.heappop(ends)[1]
        start[job] = now
        free -= size[job]
        heapq.heappush(ends, (now + duration[job], size[job]))
    return start
