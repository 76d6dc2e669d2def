"""First-fit over the whole queue of a flat machine; see the package."""

from __future__ import annotations

import heapq

import numpy as np

from simulation.compiling import compiled
from simulation.schedulers.compiled.running_jobs import NEVER, Int64Array


def first_fit(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int
) -> Int64Array:
    """Start times when every waiting job that fits starts, in order of the queue; arguments as of `fcfs`.

    Jobs of one size wait in one line: if the first of them does not fit, none does.
    """
    sizes, line_of = np.unique(size, return_inverse=True)  # not in the loop: numba compiles a sort for seconds
    return _start_times(submit, duration, size, sizes, line_of.astype(np.int64), capacity)


@compiled
def _start_times(
    submit: Int64Array, duration: Int64Array, size: Int64Array, sizes: Int64Array, line_of: Int64Array, capacity: int
) -> Int64Array:
    jobs = submit.size
    start = np.zeros(jobs, dtype=np.int64)
    first = np.full(sizes.size, jobs, dtype=np.int64)
    last = np.full(sizes.size, -1, dtype=np.int64)
    behind = np.full(jobs, jobs, dtype=np.int64)
    ends = [(NEVER, 0)]
    free = capacity
    arrived = 0
    waiting = 0
    while arrived < jobs or waiting > 0:
        now = ends[0][0]
        if arrived < jobs:
            now = min(now, submit[arrived])
        while ends[0][0] <= now:
            free += heapq.heappop(ends)[1]
        while arrived < jobs and submit[arrived] <= now:
            line = line_of[arrived]
            if first[line] == jobs:
                first[line] = arrived
            else:
                behind[last[line]] = arrived
            last[line] = arrived
            arrived += 1
            waiting += 1
        while waiting > 0:
            chosen = jobs
            for line in range(sizes.size):
                if sizes[line] > free:
                    break
                chosen = min(chosen, first[line])
            if chosen == jobs:
                break
            first[line_of[chosen]] = behind[chosen]
            waiting -= 1
            start[chosen] = now
            free -= size[chosen]
            heapq.heappush(ends, (now + duration[chosen], size[chosen]))
    return start
