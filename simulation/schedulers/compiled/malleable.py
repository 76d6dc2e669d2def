"""EASY with malleable jobs on a flat machine, for whole logs; see the package.

At every event: waiting jobs start as under EASY; where the next one has too few processors, running malleable jobs
shrink for it; what is idle then goes to running malleable jobs. Who shrinks and who grows is the strategy's to say.
Changes of size cost nothing here. Jobs end at their requests, which shrink and grow with the size as run times do.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.schedulers.compiled.running_jobs import NEVER, Int64Array

Float64Array = NDArray[np.float64]

RIGID: Final = 0
"""Sizes stay: EASY."""
MINIMUM: Final = 1
"""Jobs start at their minimum; who has the fewest processors above its minimum grows first."""
PREFERRED: Final = 2
"""Jobs start at their preferred size where it is free; no job grows beyond it while another is below its own."""
AVERAGE_POOL: Final = 3
"""The job with the least of its range grows first, that with the most shrinks first, for the first waiting job."""
AVERAGE_STEAL: Final = 4
"""The same, and later jobs that the freed processors are enough for start as well."""
MARGINAL_GAIN: Final = 5
"""Ours: with a queue all shrink to their minimum, and the requests of the least work start first; once the oldest job
has waited for `PATIENCE` it has EASY's promise. What is left goes where it speeds a job up the most, as believed."""

PATIENCE: Final = 24 * 3600 * 1_000_000
"""Microseconds of waiting after which no later job that would prolong the wait passes a job."""

CHUNKS: Final = 32
"""Number of parts in which idle processors are given out; fewer processors go one by one."""


@compiled
def speed_up(processors: float, average: float, variance: float) -> float:
    """Return the speed-up by Downey's model (`simulation.malleable.speedup.DowneyLaw`)."""
    if variance <= 1:
        if processors <= average:
            return average * processors / (average + variance / 2 * (processors - 1))
        if processors <= 2 * average - 1:
            return average * processors / (variance * (average - 0.5) + processors * (1 - variance / 2))
        return average
    if processors <= average + average * variance - variance:
        return processors * average * (variance + 1) / (variance * (processors + average - 1) + average)
    return average


@compiled
def rescaled(length: int, before: int, after: int, average: float, variance: float) -> int:
    """Return how long the work of some time at one size takes at another, microseconds, rounded up."""
    if before == after:
        return length
    ratio = (1 / speed_up(after, average, variance)) / (1 / speed_up(before, average, variance))
    return math.ceil(length * ratio)


@compiled
def promise_to(
    running: Int64Array,
    expected: Int64Array,
    size: Int64Array,
    was: Int64Array,
    now: int,
    free: int,
    wanted: int,
    average: Float64Array,
    variance: Float64Array,
) -> tuple[int, int]:
    """Return when `wanted` processors are free (shadow time), and how many more there are then (extra nodes).

    Args:
        running: jobs that run.
        expected: ends of the requests at the sizes `was`, by job, microseconds.
        size: processors by job now.
        was: processors by job before this instant.
        now: microseconds.
        free: idle processors.
        wanted: of the job that is promised to.
        average: of Downey's law by job, as believed.
        variance: the same.
    """
    ends = np.zeros(running.size, np.int64)
    for place in range(running.size):
        job = running[place]
        rest = max(expected[job] - now, 1)
        ends[place] = now + rescaled(rest, was[job], size[job], average[job], variance[job])
    available, shadow = free, NEVER
    for place in np.argsort(ends, kind="mergesort"):
        if shadow != NEVER and ends[place] > shadow:
            break
        available += size[running[place]]
        if shadow == NEVER and available >= wanted:
            shadow = ends[place]
    return shadow, available - wanted


@compiled
def priority(strategy: int, size: int, minimum: int, preferred: int, maximum: int) -> float:
    """Return the priority of a size: the smallest grows first, the largest shrinks first."""
    if strategy == MINIMUM:
        return float(size - minimum)
    if strategy == PREFERRED:
        return float(size - preferred)
    if maximum == minimum:
        return 1.0
    return (size - minimum) / (maximum - minimum)


@compiled
def shrink_for(
    strategy: int,
    wanted: int,
    running: Int64Array,
    size: Int64Array,
    minimum: Int64Array,
    preferred: Int64Array,
    maximum: Int64Array,
) -> int:
    """Shrink running jobs until `wanted` processors are free, the largest priority first; return how many were freed.

    All at their minimum would be enough. `size` has the new sizes afterwards.
    """
    freed = 0
    while freed < wanted:
        chosen, best = -1, -np.inf
        for job in running:
            if size[job] > minimum[job]:
                value = priority(strategy, size[job], minimum[job], preferred[job], maximum[job])
                if value > best:
                    chosen, best = job, value
        taken = size[chosen] - minimum[chosen]
        if strategy != MINIMUM:  # others level out: a part at a time
            taken = max(1, taken // 4)
        taken = min(taken, wanted - freed)
        size[chosen] -= taken
        freed += taken
    return freed


@compiled
def gain(size: int, more: int, average: float, variance: float) -> float:
    """Return by which share each of `more` additional processors shortens the rest of a job.

    Average and variance are of Downey's law, as the scheduler believes them.
    """
    return (1 - speed_up(size, average, variance) / speed_up(size + more, average, variance)) / more


@compiled
def grow(
    strategy: int,
    free: int,
    running: Int64Array,
    size: Int64Array,
    minimum: Int64Array,
    preferred: Int64Array,
    maximum: Int64Array,
    average: Float64Array,
    variance: Float64Array,
) -> int:
    """Give out idle processors in parts; how many are left. `size` has the new sizes afterwards."""
    part = max(1, free // CHUNKS)
    while free > 0:
        chosen, best = -1, np.inf
        for job in running:
            if size[job] >= maximum[job]:
                continue
            if strategy == MARGINAL_GAIN:
                more = min(part, free, maximum[job] - size[job])
                value = -gain(size[job], more, average[job], variance[job])
                if value >= 0:
                    continue  # more would be waste
            else:
                value = priority(strategy, size[job], minimum[job], preferred[job], maximum[job])
                if strategy == PREFERRED and size[job] < preferred[job]:
                    value -= 1e12
            if value < best:
                chosen, best = job, value
        if chosen < 0:
            return free
        limit = maximum[chosen]
        if strategy == PREFERRED and size[chosen] < preferred[chosen]:
            limit = preferred[chosen]
        more = min(part, free, limit - size[chosen])
        size[chosen] += more
        free -= more
    return 0


@compiled
def easy_malleable(
    submit: Int64Array,
    duration: Int64Array,
    requested: Int64Array,
    preferred: Int64Array,
    minimum: Int64Array,
    maximum: Int64Array,
    average: Float64Array,
    variance: Float64Array,
    believed_average: Float64Array,
    believed_variance: Float64Array,
    capacity: int,
    strategy: int,
    record: bool,
) -> tuple[Int64Array, Int64Array, Float64Array, int, list[tuple[int, int, int]]]:
    """Run a log; rigid jobs are those whose three sizes are the same. All arrays have the shape (jobs,).

    Args:
        submit: ascending, microseconds.
        duration: at the preferred size, not above `requested`, microseconds.
        requested: at the preferred size, microseconds, at least 1.
        preferred: the size that the log says.
        minimum: smallest size.
        maximum: largest size.
        average: of Downey's law.
        variance: of Downey's law.
        believed_average: what the scheduler takes `average` for.
        believed_variance: what the scheduler takes `variance` for.
        capacity: processors; no job's minimum or rigid size is above it.
        strategy: one of the constants above.
        record: whether to return all sizes.

    Returns:
        Starts, ends, processors held x microseconds, changes of size, and, if recorded, (job, time, size) in order.
    """
    jobs = submit.size
    start, end = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    expected = np.zeros(jobs, np.int64)
    size, was = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    since = np.zeros(jobs, np.int64)
    area = np.zeros(jobs, np.float64)
    told = [(-1, -1, -1)]
    changes = 0
    running, waiting = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    running_count = waiting_count = arrived = 0
    free = capacity
    while arrived < jobs or waiting_count or running_count:
        now = submit[arrived] if arrived < jobs else NEVER
        for job in running[:running_count]:
            now = min(now, end[job])
        freed, kept = _end_jobs(now, running[:running_count], size, was, since, end, area)
        free += freed
        running_count = before_starts = kept
        while arrived < jobs and submit[arrived] <= now:
            waiting[waiting_count] = arrived
            waiting_count += 1
            arrived += 1
        if strategy == MARGINAL_GAIN and waiting_count:
            free += _to_minimum(running[:running_count], size, minimum)
        free, running_count, waiting_count = _start_waiting(
            strategy, now, free, running, running_count, waiting, waiting_count, requested, size, minimum, preferred,
            maximum, expected, average, variance, believed_average, believed_variance, was, submit,
        )  # fmt: skip
        if free > 0 and strategy != RIGID:
            free = grow(
                strategy, free, running[:running_count], size, minimum, preferred, maximum, believed_average,
                believed_variance,
            )  # fmt: skip
        changes += _follow_sizes(
            now, before_starts, running[:running_count], size, was, start, since, end, expected, area, duration,
            requested, preferred, average, variance,
        )  # fmt: skip
        if record:
            for place in range(running_count):
                job = running[place]
                if place >= before_starts or size[job] != was[job]:
                    told.append((job, now, size[job]))
    return start, end, area, changes, told[1:]


@compiled
def _end_jobs(
    now: int,
    running: Int64Array,
    size: Int64Array,
    was: Int64Array,
    since: Int64Array,
    end: Int64Array,
    area: Float64Array,
) -> tuple[int, int]:
    """Let jobs go whose time is over: processors that are idle by that, jobs that still run.

    Those stand first in `running` afterwards, in their order, and `was` has their sizes.
    """
    freed = kept = 0
    for job in running:
        if end[job] <= now:
            freed += size[job]
            area[job] += float(size[job]) * (now - since[job])
        else:
            running[kept] = job
            was[job] = size[job]
            kept += 1
    return freed, kept


@compiled
def _follow_sizes(
    now: int,
    before_starts: int,
    running: Int64Array,
    size: Int64Array,
    was: Int64Array,
    start: Int64Array,
    since: Int64Array,
    end: Int64Array,
    expected: Int64Array,
    area: Float64Array,
    duration: Int64Array,
    requested: Int64Array,
    preferred: Int64Array,
    average: Float64Array,
    variance: Float64Array,
) -> int:
    """Note when jobs end that have just started, or changed their size; how many have changed it."""
    changes = 0
    for place in range(running.size):
        job = running[place]
        if place >= before_starts:
            start[job] = since[job] = now
            end[job] = now + rescaled(duration[job], preferred[job], size[job], average[job], variance[job])
            asked = rescaled(requested[job], preferred[job], size[job], average[job], variance[job])
            expected[job] = max(end[job], now + asked)
        elif size[job] != was[job]:
            changes += 1
            area[job] += float(was[job]) * (now - since[job])
            since[job] = now
            end[job] = now + rescaled(end[job] - now, was[job], size[job], average[job], variance[job])
            asked = rescaled(expected[job] - now, was[job], size[job], average[job], variance[job])
            expected[job] = max(end[job], now + asked)
    return changes


@compiled
def _start_waiting(
    strategy: int,
    now: int,
    free: int,
    running: Int64Array,
    running_count: int,
    waiting: Int64Array,
    waiting_count: int,
    requested: Int64Array,
    size: Int64Array,
    minimum: Int64Array,
    preferred: Int64Array,
    maximum: Int64Array,
    expected: Int64Array,
    average: Float64Array,
    variance: Float64Array,
    believed_average: Float64Array,
    believed_variance: Float64Array,
    was: Int64Array,
    submit: Int64Array,
) -> tuple[int, int, int]:
    """Start waiting jobs; idle processors, running and waiting jobs afterwards."""
    shadow, extra = -1, 0
    order = _order(strategy, waiting[:waiting_count], requested, preferred)
    started = np.zeros(waiting_count, np.bool_)
    may_shrink = strategy not in (RIGID, MARGINAL_GAIN)
    promises = strategy != MARGINAL_GAIN or (waiting_count > 0 and now - submit[waiting[0]] > PATIENCE)
    blocked = False
    slack = 0
    for place in range(running_count):
        slack += size[running[place]] - minimum[running[place]]
    for place in order:
        job = waiting[place]
        wanted = minimum[job]
        if strategy in (PREFERRED, AVERAGE_POOL, AVERAGE_STEAL) and free >= minimum[job]:
            wanted = min(preferred[job], free)
        if strategy == RIGID:
            wanted = preferred[job]
        if free < wanted <= free + slack and may_shrink and (not blocked or strategy == AVERAGE_STEAL):
            freed = shrink_for(strategy, wanted - free, running[:running_count], size, minimum, preferred, maximum)
            free += freed
            slack -= freed
        if free + slack <= 0:
            break  # not even one processor can be had
        fits = wanted <= free
        if fits and blocked and promises:
            if shadow < 0:
                head = waiting[order[0]] if strategy == MARGINAL_GAIN else _first_left(waiting, started)
                needs = preferred[head] if strategy == RIGID else minimum[head]
                shadow, extra = promise_to(
                    running[:running_count], expected, size, was, now, free, needs, believed_average, believed_variance
                )
            asks = rescaled(requested[job], preferred[job], wanted, believed_average[job], believed_variance[job])
            if now + max(asks, 1) > shadow:
                fits = wanted <= extra
                if fits:
                    extra -= wanted
        if not fits:
            blocked = True
            continue
        size[job] = was[job] = wanted
        free -= wanted
        slack += wanted - minimum[job]
        expected[job] = now + rescaled(requested[job], preferred[job], wanted, average[job], variance[job])
        running[running_count] = job
        running_count += 1
        started[place] = True
    kept = 0
    for place in range(waiting_count):
        if not started[place]:
            waiting[kept] = waiting[place]
            kept += 1
    return free, running_count, kept


@compiled
def _to_minimum(running: Int64Array, size: Int64Array, minimum: Int64Array) -> int:
    """Shrink all running jobs as far as they can; how many processors were freed."""
    freed = 0
    for job in running:
        freed += size[job] - minimum[job]
        size[job] = minimum[job]
    return freed


@compiled
def _order(strategy: int, waiting: Int64Array, requested: Int64Array, preferred: Int64Array) -> Int64Array:
    """Return in which order waiting jobs are looked at: places in the queue."""
    if strategy != MARGINAL_GAIN or waiting.size < 2:
        return np.arange(waiting.size)
    work = requested[waiting].astype(np.float64) * preferred[waiting]
    work[0] = -1.0  # the oldest is looked at first
    return np.argsort(work, kind="mergesort")


@compiled
def _first_left(waiting: Int64Array, started: NDArray[np.bool_]) -> int:
    """Return the oldest waiting job that has not been started."""
    for place in range(started.size):
        if not started[place]:
            return int(waiting[place])
    return -1
