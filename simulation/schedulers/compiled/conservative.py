"""The whole-log loop of conservative backfilling on a flat machine, compiled by Numba.

The rules are those of the package. The plan is a profile: from `times[i]` to
`times[i + 1]` there are `free[i]` processors that nobody has or is promised; neighbours differ.
"""

from __future__ import annotations

import heapq

import numpy as np

from simulation.compiling import compiled
from simulation.schedulers.compiled.running_jobs import NEVER, Int64Array, doubled_end, remove

_ROOM: int = 64
"""Profile entries to begin with; the arrays double when they are full."""


@compiled
def _split(times: Int64Array, free: Int64Array, count: int, time: int) -> tuple[int, int]:
    """Make `time` a boundary of the profile; returns its index and the new number of segments."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    if low < count and times[low] == time:
        return low, count
    for index in range(count, low, -1):
        times[index] = times[index - 1]
        free[index] = free[index - 1]
    times[low] = time
    free[low] = free[low - 1]
    return low, count + 1


@compiled
def _change(times: Int64Array, free: Int64Array, count: int, begin: int, end: int, amount: int) -> int:
    """Add `amount` free processors over [begin, end) to the profile and join equal segments; the new count."""
    if end <= begin:
        return count
    low, count = _split(times, free, count, begin)
    high, count = _split(times, free, count, end)
    for index in range(low, high):
        free[index] += amount
    for edge in (high, low):
        if 0 < edge < count and free[edge] == free[edge - 1]:
            for index in range(edge, count - 1):
                times[index] = times[index + 1]
                free[index] = free[index + 1]
            count -= 1
    return count


@compiled
def _earliest(times: Int64Array, free: Int64Array, count: int, now: int, size: int, length: int) -> int:
    """Return the earliest start from `now` on at which `size` processors stay free for `length`."""
    begin = now
    for index in range(count):
        if index + 1 < count and times[index + 1] <= now:
            continue
        if free[index] < size:
            begin = -1
        else:
            if begin < 0:
                begin = int(times[index])
            if index + 1 == count or times[index + 1] >= begin + length:
                return begin
    return begin


@compiled
def _forget_past(times: Int64Array, free: Int64Array, count: int, now: int) -> int:
    gone = 0
    while gone + 1 < count and times[gone + 1] <= now:
        gone += 1
    if gone:
        for index in range(gone, count):
            times[index - gone] = times[index]
            free[index - gone] = free[index]
    return count - gone


@compiled
def _with_room(array: Int64Array, wanted: int) -> Int64Array:
    """Return the array, lengthened where it has fewer entries than wanted."""
    if array.size >= wanted:
        return array
    longer = np.zeros(2 * wanted, dtype=np.int64)
    for index in range(array.size):
        longer[index] = array[index]
    return longer


@compiled
def _plan_again(
    times: Int64Array,
    free: Int64Array,
    count: int,
    now: int,
    waiting: tuple[int, int],
    behind: Int64Array,
    planned: Int64Array,
    length: Int64Array,
    size: Int64Array,
    anew: bool,
) -> int:
    job, stop = waiting
    while job < stop:
        if not anew:
            count = _change(times, free, count, planned[job], planned[job] + length[job], size[job])
        planned[job] = _earliest(times, free, count, now, size[job], length[job])
        count = _change(times, free, count, planned[job], planned[job] + length[job], -size[job])
        job = behind[job]
    return count


@compiled
def conservative(
    submit: Int64Array, duration: Int64Array, requested: Int64Array, size: Int64Array, capacity: int
) -> Int64Array:
    """Start times of conservative backfilling; arguments as for `easy`.

    Source: A. W. Mu'alem and D. G. Feitelson, IEEE Trans. Parallel and Distributed Systems 12(6), 2001, section 3:
    every job gets the earliest start that delays nobody when it arrives; when a job ends, the waiting ones are moved
    forward one by one in order of arrival ("compression").
    """
    jobs = submit.size
    start = np.zeros(jobs, dtype=np.int64)
    planned = np.zeros(jobs, dtype=np.int64)
    length = np.maximum(requested, 1)  # an empty interval could be planned into a full machine
    expected_end = np.zeros(jobs, dtype=np.int64)
    behind = np.arange(1, jobs + 1)
    running = np.zeros(min(capacity, jobs) + 1, dtype=np.int64)  # in any order
    running_count = 0
    ends = [(NEVER, 0)]
    times, free, count = np.zeros(_ROOM, dtype=np.int64), np.zeros(_ROOM, dtype=np.int64), 1
    free[0] = capacity
    first = arrived = 0
    wake = NEVER
    while arrived < jobs or first < arrived:
        now = min(ends[0][0], wake, submit[arrived] if arrived < jobs else NEVER)
        count = _forget_past(times, free, count, now)
        ended = overrun = False
        while ends[0][0] <= now:
            job = heapq.heappop(ends)[1]
            running_count = remove(running, running_count, job)
            count = _change(times, free, count, now, expected_end[job], size[job])
            ended = True
        for job in running[:running_count]:
            overrun = overrun or expected_end[job] <= now
        if overrun:  # the plan rests on ends that did not come
            times[0], free[0], count = now, capacity, 1
            for job in running[:running_count]:
                expected_end[job] = doubled_end(start[job], requested[job], now)
                count = _change(times, free, count, now, expected_end[job], -size[job])
        if ended or overrun:
            waiting = (first, arrived)
            count = _plan_again(times, free, count, now, waiting, behind, planned, length, size, overrun)
        while arrived < jobs and submit[arrived] <= now:
            times, free = _with_room(times, count + 8), _with_room(free, count + 8)
            planned[arrived] = _earliest(times, free, count, now, size[arrived], length[arrived])
            until = planned[arrived] + length[arrived]
            count = _change(times, free, count, planned[arrived], until, -size[arrived])
            arrived += 1
        wake = NEVER
        before, job = -1, first
        while job < arrived:
            if planned[job] > now:
                wake = min(wake, planned[job])
                before = job
            else:
                start[job] = now
                heapq.heappush(ends, (now + duration[job], job))
                expected_end[job] = now + length[job]
                running[running_count] = job
                running_count += 1
                if before < 0:
                    first = behind[job]
                else:
                    behind[before] = behind[job]
            job = behind[job]
        room = count + 2 * (arrived - first + running_count) + 8
        times, free = _with_room(times, room), _with_room(free, room)
    return start
