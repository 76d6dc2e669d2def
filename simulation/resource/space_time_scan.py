"""The inner loops of a search in space and time, compiled.

What is taken over time is a table of steps: from each step's time until the next one's, one state vector holds (units
first, then cables, as `simulation.machines.search` lays them out). `order` names the row of each step, so that a new
step in the middle moves one number and not a vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _compiled(function: _Function) -> _Function:
    """Compile with numba, kept on disk between runs."""
    compiled: _Function = numba.njit(cache=True)(function)
    return compiled


@_compiled
def _bit_count(word: np.uint64) -> int:
    """Bits set in a word."""
    one = np.uint64(1)
    pairs = word - ((word >> one) & np.uint64(0x5555555555555555))
    fours = (pairs & np.uint64(0x3333333333333333)) + ((pairs >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bytes_ = (fours + (fours >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((bytes_ * np.uint64(0x0101010101010101)) >> np.uint64(56))


@_compiled
def step_at(times: NDArray[np.int64], count: int, time: int) -> int:
    """Number of the step that holds at a time, which is not before the first step's."""
    low = 0
    high = count
    while high - low > 1:
        middle = (low + high) // 2
        if times[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@_compiled
def union_over(
    times: NDArray[np.int64],
    order: NDArray[np.int64],
    rows: NDArray[np.uint64],
    count: int,
    first: int,
    end: int,
    words: int,
    union: NDArray[np.uint64],
) -> None:
    """Add to `union` the first `words` words of all steps from number `first` on that begin before `end`."""
    step = first
    while step < count and times[step] < end:
        row = order[step]
        for word in range(words):
            union[word] |= rows[row, word]
        step += 1


@_compiled
def next_window(
    times: NDArray[np.int64],
    order: NDArray[np.int64],
    rows: NDArray[np.uint64],
    count: int,
    out: NDArray[np.uint64],
    unit_words: int,
    units: int,
    size: int,
    first: int,
    not_before: int,
    length: int,
    latest: int,
    union: NDArray[np.uint64],
) -> int:
    """Find the next window in which enough units are free from begin to end, wherever they are.

    A window can begin at `not_before` or where a later step begins: between two steps nothing becomes free.

    Args:
        times: begin of each step, ascending.
        order: row of each step.
        rows: what is taken in each step.
        count: number of steps.
        out: what is never to be had.
        unit_words: words of a row that are units.
        units: bits of them that are units; the others are never set.
        size: units wanted.
        first: step at which to begin.
        not_before: begin of the first window.
        length: of the window, microseconds.
        latest: latest begin.
        union: out: all that is taken at any time of the window found.

    Returns:
        Number of the step in which the window begins, or -1.
    """
    step = first
    time = not_before
    while time <= latest:
        end = time + length
        for word in range(unit_words):
            union[word] = out[word]
        union_over(times, order, rows, count, step, end, unit_words, union)
        taken = 0
        for word in range(unit_words):
            taken += _bit_count(union[word])
        if units - taken >= size:
            for word in range(union.shape[0]):
                union[word] = out[word]
            union_over(times, order, rows, count, step, end, union.shape[0], union)
            return step
        step += 1
        if step >= count:
            return -1
        time = times[step]
    return -1


@_compiled
def _cut(
    times: NDArray[np.int64], order: NDArray[np.int64], rows: NDArray[np.uint64], count: int, time: int
) -> tuple[int, int]:
    """Let a step begin at a time; returns its number and the number of steps."""
    before = step_at(times, count, time)
    if times[before] == time:
        return before, count
    for step in range(count, before + 1, -1):
        times[step] = times[step - 1]
        order[step] = order[step - 1]
    times[before + 1] = time
    order[before + 1] = count
    for word in range(rows.shape[1]):
        rows[count, word] = rows[order[before], word]
    return before + 1, count + 1


@_compiled
def take(
    times: NDArray[np.int64],
    order: NDArray[np.int64],
    rows: NDArray[np.uint64],
    count: int,
    begin: int,
    end: int,
    mask: NDArray[np.uint64],
) -> int:
    """Take what a mask holds during [begin, end); the arrays have room for two steps more.

    Returns:
        The number of steps afterwards.
    """
    first, count = _cut(times, order, rows, count, begin)
    last, count = _cut(times, order, rows, count, end)
    for step in range(first, last):
        row = order[step]
        for word in range(mask.shape[0]):
            rows[row, word] |= mask[word]
    return count
