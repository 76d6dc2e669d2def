"""EASY on a flat machine in the event order of the simulator pyss, compiled.

pyss, the Python Scheduler Simulator of the Hebrew University, whose schedules of public logs others compare theirs
with, departs from the rules of the package in three points:

1. It decides after every single event instead of once after all events of an instant.
2. Its plan counts a job as gone from its expected end on, also while that end is still to come in the same instant.
3. Of one instant it takes the submissions first, in the log's order, then the ends, in the order of the starts.

No job outruns its request: pyss cuts it there.

numba keeps compiled functions until their own file changes: after a change of running_jobs.py, touch this file.
"""

from __future__ import annotations

import heapq

import numpy as np

from simulation.compiling import compiled
from simulation.schedulers.compiled.running_jobs import NEVER, Int64Array, insert, promise, remove


@compiled
def easy_event_by_event(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int
) -> Int64Array:
    """Start times of EASY backfilling in the event order of pyss.

    Args:
        submit: submission times, ascending, shape (jobs,).
        duration: times the jobs will hold their processors, not above `requested`, shape (jobs,).
        requested: run times asked for, shape (jobs,).
        size: processors of each job, at most `capacity`, shape (jobs,).
        capacity: processors of the machine.

    Returns:
        Start times, shape (jobs,).
    """
    jobs = submit.size
    start = np.zeros(jobs, dtype=np.int64)
    behind = np.arange(1, jobs + 1)
    first = 0
    ends = [(NEVER, 0, 0)]  # time, number of the start, job
    starts = 0
    running = np.zeros(jobs + 1, dtype=np.int64)  # in order of their expected ends
    running_count = 0
    expected_end = np.zeros(jobs, dtype=np.int64)
    left = capacity
    arrived = 0
    while arrived < jobs or first < arrived:
        if arrived < jobs and submit[arrived] <= ends[0][0]:
            now = submit[arrived]
            arrived += 1
        else:
            now, _, job = heapq.heappop(ends)
            left += size[job]
            running_count = remove(running, running_count, job)
        free = left
        due = 0  # running jobs whose expected end has come: they come first
        while due < running_count and expected_end[running[due]] <= now:
            free += size[running[due]]
            due += 1
        before, job = -1, first
        shadow, extra = -1, 0
        while job < arrived and free > 0:
            if before >= 0 and shadow < 0:
                shadow, extra = promise(running[due:running_count], expected_end, size, free, size[first])
            fits = size[job] <= free
            if fits and before >= 0 and now + max(requested[job], 1) > shadow:
                fits = size[job] <= extra
                if fits:
                    extra -= size[job]
            if not fits:
                before = job
                job = behind[job]
                continue
            start[job] = now
            free -= size[job]
            left -= size[job]
            heapq.heappush(ends, (now + duration[job], starts, job))
            starts += 1
            expected_end[job] = now + max(requested[job], 1)
            insert(running, running_count, expected_end, job)
            running_count += 1
            if before < 0:
                first = behind[job]
            else:
                behind[before] = behind[job]
            job = behind[job]
    return start
