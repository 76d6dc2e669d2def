"""EASY on a flat machine; see the package."""

from __future__ import annotations

import heapq

import numpy as np

from simulation.compiling import compiled
from simulation.schedulers.compiled.running_jobs import NEVER, Int64Array, doubled_end, insert, promise, remove


@compiled
def easy(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int
) -> Int64Array:
    """Start times of EASY backfilling; arguments as of `fcfs`, `requested` being the run times asked for.

    Source: A. W. Mu'alem and D. G. Feitelson, IEEE Trans. Parallel and Distributed Systems 12(6), 2001, section 3:
    shadow time and extra nodes of the first job; a later job may start if it ends by the shadow time or takes only
    extra nodes.
    """
    jobs = submit.size
    start = np.zeros(jobs, dtype=np.int64)
    behind = np.arange(1, jobs + 1)
    first = 0
    ends = [(NEVER, 0)]
    running = np.zeros(min(capacity, jobs) + 1, dtype=np.int64)  # in order of their expected ends
    running_count = 0
    expected_end = np.zeros(jobs, dtype=np.int64)
    free = capacity
    arrived = 0
    while arrived < jobs or first < arrived:
        now = ends[0][0]
        if arrived < jobs:
            now = min(now, submit[arrived])
        while ends[0][0] <= now:
            job = heapq.heappop(ends)[1]
            free += size[job]
            running_count = remove(running, running_count, job)
        while running_count > 0 and expected_end[running[0]] <= now:
            job = running[0]
            expected_end[job] = doubled_end(start[job], requested[job], now)
            insert(running, remove(running, running_count, job), expected_end, job)
        while arrived < jobs and submit[arrived] <= now:
            arrived += 1
        before, job = -1, first
        shadow, extra = -1, 0
        while job < arrived and free > 0:
            if before >= 0 and shadow < 0:
                shadow, extra = promise(running[:running_count], expected_end, size, free, size[first])
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
            heapq.heappush(ends, (now + duration[job], job))
            expected_end[job] = now + max(requested[job], 1)
            insert(running, running_count, expected_end, job)
            running_count += 1
            if before < 0:
                first = behind[job]
            else:
                behind[before] = behind[job]
            job = behind[job]
    return start
