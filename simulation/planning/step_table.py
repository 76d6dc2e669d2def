"""What is taken on a machine over time, as a table of steps; its inner loops, compiled.

From each step's time until the next one's, one state vector holds: units first, one bit each, then whatever else jobs
exclude one another from (cables, as `simulation.machines.bluegene.search` lays them out). Rows of vectors stay where
they are made; `order` names the row of each step, so that a new step in the middle moves one number and not a vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled


class Steps(NamedTuple):
    """The arrays of a table; the number of steps is kept beside them.

    Attributes:
        times: begin of each step, ascending, microseconds, shape (room,).
        order: row of each step, shape (room,).
        rows: what is taken, shape (room, words).
        taken: units of a row that are taken or out of service, shape (room,).
        out: what is never to be had, shape (words,).
        unit_words: words of a row that are units, shape (1,).
    """

    times: NDArray[np.int64]
    order: NDArray[np.int64]
    rows: NDArray[np.uint64]
    taken: NDArray[np.int64]
    out: NDArray[np.uint64]
    unit_words: NDArray[np.int64]


def empty_steps(room: int, now: int, out: NDArray[np.uint64], unit_words: int) -> Steps:
    """Return a table of one step that begins now, in which nothing is taken."""
    return Steps(
        np.full(room, now, np.int64),
        np.zeros(room, np.int64),
        np.zeros((room, len(out)), np.uint64),
        np.full(room, np.bitwise_count(out[:unit_words]).sum(), np.int64),
        out,
        np.array([unit_words], np.int64),
    )


def with_room(steps: Steps, room: int) -> Steps:
    """Return the same table with room for more steps."""
    more = room - len(steps.times)
    return steps._replace(
        times=np.pad(steps.times, (0, more)),
        order=np.pad(steps.order, (0, more)),
        rows=np.pad(steps.rows, ((0, more), (0, 0))),
        taken=np.pad(steps.taken, (0, more)),
    )


@compiled
def _bit_count(word: np.uint64) -> int:
    one = np.uint64(1)
    pairs = word - ((word >> one) & np.uint64(0x5555555555555555))
    fours = (pairs & np.uint64(0x3333333333333333)) + ((pairs >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bytes_ = (fours + (fours >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((bytes_ * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
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


@compiled
def union_over(steps: Steps, count: int, first: int, end: int, union: NDArray[np.uint64]) -> None:
    """Let `union` be all that is taken or out of service in the steps from number `first` on that begin before `end`.

    Args:
        steps: the table.
        count: number of steps.
        first: number of a step.
        end: microseconds.
        union: out; only as many words as it has are looked at.
    """
    for word in range(union.shape[0]):
        union[word] = steps.out[word]
    step = first
    while step < count and steps.times[step] < end:
        row = steps.order[step]
        for word in range(union.shape[0]):
            union[word] |= steps.rows[row, word]
        step += 1


@compiled
def next_window(
    steps: Steps,
    count: int,
    units: int,
    size: int,
    first: int,
    not_before: int,
    length: int,
    latest: int,
    union: NDArray[np.uint64],
) -> int:
    """Find the next window in which enough units are free from begin to end, wherever they are.

    A window can begin at `not_before` or where a later step begins: between two steps nothing becomes free. No window
    begins before the end of a step in which fewer units are free.

    Args:
        steps: the table.
        count: number of steps.
        units: units of the machine; other bits of the unit words are never set.
        size: units wanted.
        first: step at which to begin.
        not_before: begin of the first window.
        length: of the window, microseconds.
        latest: latest begin.
        union: out: all that is taken at any time of the window found.

    Returns:
        Number of the step in which the window begins, or -1.
    """
    room = units - size
    step = first
    time = not_before
    seen = first  # steps before this one are known to have room
    while time <= latest:
        end = time + length
        full = -1
        last = max(seen, step)
        while last < count and steps.times[last] < end:
            if steps.taken[steps.order[last]] > room:
                full = last
            last += 1
        seen = last
        if full < 0:
            taken = 0
            for word in range(steps.unit_words[0]):
                present = steps.out[word]
                for other in range(step, last):
                    present |= steps.rows[steps.order[other], word]
                taken += _bit_count(present)
            if taken <= room:
                union_over(steps, count, step, end, union)
                return step
            full = step
        step = full + 1
        if step >= count:
            return -1
        time = steps.times[step]
    return -1


@compiled
def _cut(steps: Steps, count: int, time: int) -> tuple[int, int]:
    """Let a step begin at a time; returns its number and the number of steps."""
    before = step_at(steps.times, count, time)
    if steps.times[before] == time:
        return before, count
    for step in range(count, before + 1, -1):
        steps.times[step] = steps.times[step - 1]
        steps.order[step] = steps.order[step - 1]
    row = steps.order[before]
    steps.times[before + 1] = time
    steps.order[before + 1] = count
    for word in range(steps.rows.shape[1]):
        steps.rows[count, word] = steps.rows[row, word]
    steps.taken[count] = steps.taken[row]
    return before + 1, count + 1


@compiled
def change(steps: Steps, count: int, begin: int, end: int, mask: NDArray[np.uint64], add: bool) -> int:
    """Take what a mask holds during [begin, end), or give it back; there is room for two steps more.

    Returns:
        The number of steps afterwards.
    """
    first, count = _cut(steps, count, begin)
    last, count = _cut(steps, count, end)
    for word in range(mask.shape[0]):
        bits = mask[word]
        if bits == 0:  # most: a job crosses few lines
            continue
        for step in range(first, last):
            row = steps.order[step]
            if word < steps.unit_words[0]:
                before = _bit_count(steps.rows[row, word] | steps.out[word])
                changed = steps.rows[row, word] | bits if add else steps.rows[row, word] & ~bits
                steps.taken[row] += _bit_count(changed | steps.out[word]) - before
            steps.rows[row, word] = steps.rows[row, word] | bits if add else steps.rows[row, word] & ~bits
    return count


@compiled
def take_all(
    steps: Steps, count: int, begins: NDArray[np.int64], ends: NDArray[np.int64], masks: NDArray[np.uint64]
) -> int:
    """Take what each mask holds during its [begin, end), none of them empty; there is room for two steps more a mask.

    Returns:
        The number of steps afterwards.
    """
    for index in range(begins.shape[0]):
        count = change(steps, count, begins[index], ends[index], masks[index], True)
    return count
