"""EASY on a flat machine; see the package.

The simulator pyss, the Python Scheduler Simulator of the Hebrew University, whose schedules of public logs others
compare theirs with, departs from the rules of the package in four points. `easy_event_by_event` does as it does:

1. It decides after every single event instead of once after all events of an instant.
2. Its plan counts a job as gone from its expected end on, also while that end is still to come in the same instant.
3. Of one instant it takes the submissions first, in the log's order, then the ends, in the order of the starts.
4. It cuts a job at its request, but plans with its run time where that is longer; its caller does so.
"""

from __future__ import annotations

import heapq

import numpy as np

from simulation.compiling import compiled
from simulation.schedulers.compiled.running_jobs import (
    NEVER,
    Int64Array,
    double_overrun_requests,
    find_due,
    insert,
    promise,
    remove,
)


def easy(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int
) -> Int64Array:
    """Start times of EASY backfilling; arguments as of `first_come_first_served`, and `requested` is used.

    Source: A. W. Mu'alem and D. G. Feitelson, IEEE Trans. Parallel and Distributed Systems 12(6), 2001, section 3:
    shadow time and extra nodes of the first job; a later job may start if it ends by the shadow time or takes only
    extra nodes.
    """
    return _start_times(submit, duration, requested, size, capacity, False)


def easy_event_by_event(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int
) -> Int64Array:
    """Start times of EASY backfilling in the event order of pyss; arguments as of `easy`.

    `duration` is not above `requested`.
    """
    return _start_times(submit, duration, requested, size, capacity, True)


@compiled
def _start_times(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int, by_event: bool
) -> Int64Array:
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
        now = ends[0][0]
        if arrived < jobs:
            now = min(now, submit[arrived])
        if by_event and arrived < jobs and submit[arrived] == now:
            arrived += 1
        else:
            while ends[0][0] <= now:
                job = heapq.heappop(ends)[2]
                left += size[job]
                running_count = remove(running, running_count, job)
                if by_event:
                    break
        if not by_event:
            double_overrun_requests(running, running_count, expected_end, start, requested, now)
            while arrived < jobs and submit[arrived] <= now:
                arrived += 1
        due, freed = find_due(running[:running_count], expected_end, size, now)  # none where requests have been doubled
        free = left + freed
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
