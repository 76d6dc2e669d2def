"""Earliest places on machines of cabled lines, compiled: complete in midplanes and in cables.

numba keeps compiled functions until their own file changes: after a change of step_table.py, floors.py or
simulation/machines/bluegene/search.py, touch this file.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.machines.bluegene.search import Tables, first_fit
from simulation.planning.floors import FloorArrays, floor_of, note_floor
from simulation.planning.step_table import Steps, change, next_window, step_at


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


@compiled
def mask_of_answer(tables: Tables, unit_words: int, answer: NDArray[np.int64], mask: NDArray[np.uint64]) -> None:
    """Let `mask` be what the place of an answer holds."""
    mask.fill(np.uint64(0))
    row = answer[0]
    for word in range(unit_words):
        mask[word] = tables.candidate_units[row, word]
    dimensions = (tables.candidate_rows.shape[1] - 3) // 4
    for dimension in range(dimensions):
        column = 3 + 4 * dimension
        for line in range(tables.candidate_rows[row, column + 2], tables.candidate_rows[row, column + 3]):
            mask[tables.lines[line]] |= tables.link_sets[answer[1 + dimension]]


@compiled
def plan_in_order(
    steps: Steps,
    count: int,
    tables: Tables,
    floors: FloorArrays,
    groups: NDArray[np.int64],
    kinds: NDArray[np.int64],
    sizes: NDArray[np.int64],
    lengths: NDArray[np.int64],
    union: NDArray[np.uint64],
    answer: NDArray[np.int64],
    begins: NDArray[np.int64],
) -> int:
    """Plan jobs one after the other, each at its earliest begin, and take their places.

    Args:
        steps: what is taken when, with room for two steps more a job.
        count: number of steps.
        tables: of the machine.
        floors: of the groups, with room to note one more pair for each job.
        groups: the group of each job, shape (jobs,).
        kinds: kinds to try for the jobs of each group, in order; -1 behind the last; shape (groups, most kinds).
        sizes: units wanted by each job, shape (jobs,).
        lengths: microseconds, shape (jobs,).
        union: scratch space.
        answer: scratch space.
        begins: out: of each job, -1 where nothing lets it begin.

    Returns:
        The number of steps afterwards.
    """
    now = steps.times[0]
    mask = np.zeros_like(union)
    for job in range(groups.shape[0]):
        group = groups[job]
        used = 0
        while used < kinds.shape[1] and kinds[group, used] >= 0:
            used += 1
        begin = earliest_place(
            steps, count, tables, kinds[group, :used], sizes[job], lengths[job],
            floor_of(floors, group, lengths[job], now), np.iinfo(np.int64).max >> 1, union, answer,
        )  # fmt: skip
        begins[job] = begin
        if begin < 0:
            continue
        note_floor(floors, group, lengths[job], begin)
        mask_of_answer(tables, steps.unit_words[0], answer, mask)
        count = change(steps, count, begin, begin + lengths[job], mask, True)
    return count
