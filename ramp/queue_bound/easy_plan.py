"""Plan a queue as an EASY scheduler would, if every job runs as long as it requested and no other job arrives.

One function over arrays of integers, without a call to any other, so that numba can compile it unchanged.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]

NEVER: Final = (1 << 63) - 1
"""Later than every time."""

BLOCK: Final = 32
"""Jobs whose least size and length are kept together, so that all are skipped at once if none can fit."""
STARTED: Final = 1 << 62
"""Size of a job that no longer waits: so large that it never fits."""

TIME, FREE, SHADOW, EXTRA = 0, 1, 2, 3
"""Columns of the decisions of a plan."""


def plan_starts(
    now: int,
    free: int,
    ends: Int64Array,
    held: Int64Array,
    running: int,
    size: Int64Array,
    length: Int64Array,
    start: Int64Array,
    decisions: Int64Array,
) -> int:
    """Plan the start of every waiting job, and record what each decision leaves for one more job at the queue's end.

    Source: A. W. Mu'alem and D. G. Feitelson, IEEE Trans. Parallel and Distributed Systems 12(6), 2001, section 3:
    jobs start in order of arrival; beside the first that does not fit, a later one starts if it ends by the shadow time
    or takes only extra processors.

    Args:
        now: time of the first decision; all times in one unit.
        free: processors free now.
        ends: expected ends of running jobs, ascending, all after `now`; shape (running + waiting,), changed.
        held: processors of these, in the same order and shape; changed.
        running: how many of `ends` are in use.
        size: processors of the waiting jobs in the queue's order, none above the machine's; shape (waiting,).
        length: requested run times, at least 1; shape (waiting,).
        start: planned starts, shape (waiting,): written where -1; the others have been planned before `now`.
        decisions: one row per decision: time, free processors left, shadow time and extra processors beside the job
            that is first in the queue then (`NEVER` if none waits); shape (running + waiting + 1, 4), written.

    Returns:
        The number of decisions; the last is when everything has ended.
    """
    queue = np.flatnonzero(start < 0)
    need, longest, waiting = size[queue], length[queue], queue.size
    blocks = -(-waiting // BLOCK)
    least, shortest = np.empty(blocks, np.int64), np.empty(blocks, np.int64)
    for block in range(blocks):
        least[block] = need[block * BLOCK : (block + 1) * BLOCK].min()
        shortest[block] = longest[block * BLOCK : (block + 1) * BLOCK].min()
    low, high, count = 0, running, 0
    while True:
        shadow, extra = NEVER, 0
        for block in range(blocks):
            if free == 0:
                break
            none_fits = least[block] > free or (least[block] > extra and now + shortest[block] > shadow)
            if least[block] == STARTED or (none_fits and shadow < NEVER):
                continue
            for job in range(block * BLOCK, min((block + 1) * BLOCK, waiting)):
                if need[job] > free or (need[job] > extra and now + longest[job] > shadow):
                    if shadow == NEVER and need[job] != STARTED:  # the first that does not fit: its place is promised
                        available, place = free, low
                        while available < need[job] or (place < high and ends[place] == shadow):
                            available += held[place]
                            shadow = ends[place]
                            place += 1
                        extra = available - need[job]
                    continue
                end = now + longest[job]
                if end > shadow:
                    extra -= need[job]
                free -= need[job]
                place = high
                while place > low and ends[place - 1] > end:
                    ends[place] = ends[place - 1]
                    held[place] = held[place - 1]
                    place -= 1
                ends[place] = end
                held[place] = need[job]
                high += 1
                start[queue[job]] = now
                need[job] = STARTED
            least[block] = need[block * BLOCK : (block + 1) * BLOCK].min()
        decisions[count, TIME] = now
        decisions[count, FREE] = free
        decisions[count, SHADOW] = shadow
        decisions[count, EXTRA] = extra
        count += 1
        if low == high:
            return count
        now = ends[low]
        while low < high and ends[low] == now:
            free += held[low]
            low += 1
