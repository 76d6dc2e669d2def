"""Running jobs of a flat machine in the order of their expected ends, for the compiled loops."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled

Int64Array = NDArray[np.int64]

NEVER: Final = np.iinfo(np.int64).max
"""Later than every event."""


@compiled
def doubled_end(start: int, requested: int, now: int) -> int:
    """Return the expected end of a running job: its request, doubled until the end lies after `now`."""
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
def double_overrun_requests(
    running: Int64Array, count: int, expected_end: Int64Array, start: Int64Array, requested: Int64Array, now: int
) -> None:
    """Give each of `running[:count]` whose expected end has come a later one, and keep the order."""
    while count > 0 and expected_end[running[0]] <= now:
        job = running[0]
        expected_end[job] = doubled_end(start[job], requested[job], now)
        insert(running, remove(running, count, job), expected_end, job)


@compiled
def find_due(running: Int64Array, expected_end: Int64Array, size: Int64Array, now: int) -> tuple[int, int]:
    """Return how many jobs have an expected end that has come, and their processors."""
    due = freed = 0
    while due < running.size and expected_end[running[due]] <= now:
        freed += size[running[due]]
        due += 1
    return due, freed


@compiled
def promise(running: Int64Array, expected_end: Int64Array, size: Int64Array, free: int, wanted: int) -> tuple[int, int]:
    """Return when `wanted` processors will be free (shadow time), and how many more there will be (extra nodes)."""
    available = free
    shadow = -1
    for job in running:
        if shadow >= 0 and expected_end[job] > shadow:
            break
        available += size[job]
        if shadow < 0 and available >= wanted:
            shadow = expected_end[job]
    return shadow, available - wanted
