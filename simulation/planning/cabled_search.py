"""Earliest places on machines of cabled lines, compiled: complete in midplanes and in cables.

numba keeps compiled functions until their own file changes: after a change of step_table.py or
simulation/machines/bluegene/search.py, touch this file.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.machines.bluegene.search import Tables, first_fit
from simulation.planning.step_table import Steps, next_window, step_at


@compiled
def earliest_place(
    steps: Steps,
    count: int,
    tables: Tables,
    kinds: NDArray[np.int64],
    size: int,
    length: int,
    not_before: int,
    latest: int,
    union: NDArray[np.uint64],
    answer: NDArray[np.int64],
) -> int:
    """Find the earliest begin in [not_before, latest] of a window of `length` with a place.

    Args:
        steps: what is taken when.
        count: number of steps.
        tables: of the machine.
        kinds: kinds to try at each begin, in order.
        size: units wanted.
        length: microseconds, at least 1.
        not_before: microseconds, not before the first step.
        latest: microseconds.
        union: out: all that is taken at any time of the window found.
        answer: out: as of `first_fit`.

    Returns:
        The begin, or -1.
    """
    time = not_before
    step = step_at(steps.times, count, time)
    failed = np.zeros_like(union)
    failed_before = False
    while True:
        step = next_window(steps, count, tables.units[0], size, step, time, length, latest, union)
        if step < 0:
            return -1
        time = max(time, int(steps.times[step]))
        # where all is taken that was taken when nothing fitted before, nothing fits again
        anew = False
        for word in range(union.shape[0]):
            if failed[word] & ~union[word]:
                anew = True
                break
        if anew or not failed_before:
            found = first_fit(union, kinds, tables, answer)
            if found >= 0:
                return time
            for word in range(union.shape[0]):  # a loop: numba takes seconds to compile an assignment to a slice
                failed[word] = union[word]
            failed_before = True
        step += 1
        if step >= count:
            return -1
        time = int(steps.times[step])
