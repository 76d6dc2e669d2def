"""Whole-log scheduling loops for machines without topology, compiled by Numba.

A flat machine is a number of interchangeable processors, so a placement is a count and a whole log can be scheduled by
loops over integers. Each loop here makes the same decisions as the scheduler of the same name does on a flat machine
(property tests compare them job by job); the loops exist because a log of 77 000 jobs should take a second.

Shared rules: all ends of a time come before the arrivals of that time, then the scheduler decides once; time is an
integer (any unit); jobs are in order of submission. Where a running job outruns its request, its expected run time is
doubled until its expected end lies in the future again.

This module imports Numba, which takes a moment: import it only when a log is run. The compiled code is cached beside
the module.
"""

from __future__ import annotations

import heapq
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled

Int64Array = NDArray[np.int64]

NEVER: Final = np.iinfo(np.int64).max
"""Later than every event."""


@compiled
def first_come_first_served(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int, window: int
) -> Int64Array:
    """Start times when only the head of the queue may start.

    Args:
        submit: submission times, ascending, shape (jobs,).
        duration: times the jobs will hold their processors, shape (jobs,).
        requested: not used; all loops have one signature.
        size: processors of each job, at most `capacity`, shape (jobs,).
        capacity: processors of the machine.
        window: not used.

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


@compiled
def first_fit(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int, window: int
) -> Int64Array:
    """Start times when every waiting job that fits starts, in order of the queue; arguments as above.

    Jobs of one size wait in one line: if the first of them does not fit, none does.
    """
    jobs = submit.size
    start = np.zeros(jobs, dtype=np.int64)
    sizes = np.unique(size)
    line_of = np.searchsorted(sizes, size)
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


@compiled
def window_first_fit(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int, window: int
) -> Int64Array:
    """Start times of window first-fit; arguments as above.

    Args:
        submit: as above.
        duration: as above.
        requested: not used.
        size: as above.
        capacity: as above.
        window: positive: a job may start while its index exceeds the oldest waiting job's by less than this; negative:
            the first `-window` waiting jobs may start.
    """
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


@compiled
def doubled_end(start: int, requested: int, now: int) -> int:
    """Expected end of a running job: its request, doubled until the end lies after `now`."""
    length = max(requested, 1)
    while start + length <= now:
        length *= 2
    return start + length


@compiled
def insert(running: Int64Array, count: int, expected_end: Int64Array, job: int) -> None:
    """Insert a job into `running[:count]`, which is in order of expected ends."""
    position = count
    while position > 0 and expected_end[running[position - 1]] > expected_end[job]:
        running[position] = running[position - 1]
        position -= 1
    running[position] = job


@compiled
def remove(running: Int64Array, count: int, job: int) -> int:
    """Remove a job from `running[:count]`, keeping the order; the new count."""
    position = 0
    while running[position] != job:
        position += 1
    for index in range(position, count - 1):
        running[index] = running[index + 1]
    return count - 1


@compiled
def promise(running: Int64Array, expected_end: Int64Array, size: Int64Array, free: int, wanted: int) -> tuple[int, int]:
    """When enough processors for `wanted` will be free (shadow time), and how many more there will be (extra nodes)."""
    available = free
    shadow = -1
    for job in running:
        if shadow >= 0 and expected_end[job] > shadow:
            break
        available += size[job]
        if shadow < 0 and available >= wanted:
            shadow = expected_end[job]
    return shadow, available - wanted


@compiled
def easy(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int, window: int
) -> Int64Array:
    """Start times of EASY backfilling; arguments as above, `requested` being the run times asked for.

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
