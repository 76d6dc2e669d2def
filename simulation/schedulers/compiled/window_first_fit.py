"""First-fit on a flat machine, with a window of one job, of some jobs or of the whole queue; see the package."""

from __future__ import annotations

import heapq

import numpy as np

from simulation.compiling import compiled
from simulation.schedulers.compiled.running_jobs import NEVER, Int64Array
from simulation.schedulers.policies.window_first_fit import WindowCounts, WindowOptions


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
    return _start_times(submit, duration, size, capacity, 1)


def first_fit(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int
) -> Int64Array:
    """Start times when every waiting job that fits starts; arguments as of `first_come_first_served`."""
    return _start_times(submit, duration, size, capacity, submit.size)


def window_first_fit(
    submit: Int64Array,
    duration: Int64Array,
    requested: Int64Array,
    size: Int64Array,
    capacity: int,
    options: WindowOptions,
) -> Int64Array:
    """Start times of window first-fit; arguments as of `first_come_first_served`, and the scheduler's options."""
    by_index = options.window_counts is WindowCounts.INDICES
    return _start_times(submit, duration, size, capacity, options.window if by_index else -options.window)


@compiled
def _start_times(submit: Int64Array, duration: Int64Array, size: Int64Array, capacity: int, window: int) -> Int64Array:
    jobs = submit.size
    start = np.zeros(jobs, dtype=np.int64)
    behind = np.arange(1, jobs + 1)
    first = 0
    ends = [(NEVER, 0)]
    free = capacity
    arrived = 0
    while arrived < jobs or first < arrived:
        now = ends[0][0]
        if arrived < jobs:
            now = min(now, submit[arrived])
        while ends[0][0] <= now:
            free += heapq.heappop(ends)[1]
        while arrived < jobs and submit[arrived] <= now:
            arrived += 1
        # One walk is enough with an index window that does not move; it moves when the oldest job starts, and then the
        # jobs that come into view are further on in the same walk.
        before, job, seen = -1, first, 0
        while job < arrived and free > 0:
            if window > 0 and job - first >= window:
                break
            if window < 0 and seen >= -window:
                break
            if size[job] <= free:
                start[job] = now
                free -= size[job]
                heapq.heappush(ends, (now + duration[job], size[job]))
                if before < 0:
                    first = behind[job]
                else:
                    behind[before] = behind[job]
            else:
                before = job
                seen += 1
            job = behind[job]
    return start
