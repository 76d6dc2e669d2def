"""The inner loops of allocation by boxes, compiled: which boxes are free, which is best, what it leaves.

Boxes are rows in the order in which an allocator prefers them (`simulation.machines.ranked_boxes`); a machine's state
is a vector of 64-bit words, one bit a node, set = not to be given out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])

FIRST, PHI_GREEDY, PHI_EXACT = 0, 1, 2
"""Of `simulation.machines.box_policy.Choice`, as constants for the compiler."""


def _compiled(function: _Function) -> _Function:
    """Compile with numba, kept on disk between runs."""
    compiled: _Function = numba.njit(cache=True)(function)
    return compiled


class BoxArrays(NamedTuple):
    """The tables that the search reads.

    Attributes:
        masks: nodes of each row, shape (rows, words).
        volumes: shape (rows,).
        shape_of: index of each row's shape, shape (rows,).
        box_of: box number of each row, shape (rows,).
        box_masks: nodes of each box by its number, shape (boxes, words).
        box_volumes: by box number, shape (boxes,).
        coordinates: of each node, shape (nodes, dimensions).
        strides: of box numbers, shape (dimensions,).
        grown: `simulation.machines.box_table.BoxTable`.
        slab: likewise.
    """

    masks: NDArray[np.uint64]
    volumes: NDArray[np.int64]
    shape_of: NDArray[np.int64]
    box_of: NDArray[np.int64]
    box_masks: NDArray[np.uint64]
    box_volumes: NDArray[np.int64]
    coordinates: NDArray[np.int64]
    strides: NDArray[np.int64]
    grown: NDArray[np.int64]
    slab: NDArray[np.int64]


@_compiled
def list_free(
    masks: NDArray[np.uint64], dead: NDArray[np.bool_], busy: NDArray[np.uint64], free: NDArray[np.int64]
) -> int:
    """Write the rows that are free into `free`, ascending; returns how many. `dead` rows never are."""
    count = 0
    words = masks.shape[1]
    for row in range(masks.shape[0]):
        if masks[row, 0] & busy[0] or dead[row]:
            continue
        clear = True
        for word in range(1, words):
            if masks[row, word] & busy[word]:
                clear = False
                break
        if clear:
            free[count] = row
            count += 1
    return count


@_compiled
def keep_free(masks: NDArray[np.uint64], busy: NDArray[np.uint64], free: NDArray[np.int64], count: int) -> int:
    """Drop the rows that are no longer free from a list made before more nodes became busy."""
    kept = 0
    words = masks.shape[1]
    for index in range(count):
        row = free[index]
        clear = True
        for word in range(words):
            if masks[row, word] & busy[word]:
                clear = False
                break
        if clear:
            free[kept] = row
            kept += 1
    return kept


@_compiled
def largest_disjoint(arrays: BoxArrays, free: NDArray[np.int64], count: int, taken: int) -> tuple[int, int]:
    """Volume of the largest free box that does not meet row `taken`, and how many are that large.

    A largest free box is always maximal, so this is what phi asks for over all maximal boxes. Rows must be in ascending
    order of volume.
    """
    words = arrays.masks.shape[1]
    volume = 0
    ties = 0
    for index in range(count - 1, -1, -1):
        row = free[index]
        if arrays.volumes[row] < volume:
            break
        meets = False
        for word in range(words):
            if arrays.masks[row, word] & arrays.masks[taken, word]:
                meets = True
                break
        if not meets:
            volume = arrays.volumes[row]
            ties += 1
    return volume, ties


@_compiled
def greedy_boxes(arrays: BoxArrays, busy: NDArray[np.uint64], found: NDArray[np.int64]) -> int:
    """Find maximal boxes as published (Find_MSSs): grow each free node not covered yet, direction by direction.

    The order is upwards, downwards, dimension by dimension. Each direction is exhausted before the next, after which no
    direction can be taken up again, because a larger cross-section never makes growth easier.

    Args:
        arrays: the tables.
        busy: the machine's state.
        found: out: box numbers; as long as there are nodes.

    Returns:
        How many boxes were found.
    """
    nodes, dimensions = arrays.coordinates.shape
    words = busy.shape[0]
    covered = busy.copy()
    count = 0
    for node in range(nodes):
        if covered[node >> 6] >> np.uint64(node & 63) & np.uint64(1):
            continue
        box = np.int64(0)
        for dimension in range(dimensions):
            box += arrays.coordinates[node, dimension] * arrays.strides[dimension]
        for dimension in range(dimensions):
            stride = arrays.strides[dimension]
            interval = arrays.coordinates[node, dimension]
            for side in range(2):
                while True:
                    longer = arrays.grown[dimension, side, interval]
                    if longer < 0:
                        break
                    slab = box + (arrays.slab[dimension, side, interval] - interval) * stride
                    clear = True
                    for word in range(words):
                        if arrays.box_masks[slab, word] & busy[word]:
                            clear = False
                            break
                    if not clear:
                        break
                    box += (longer - interval) * stride
                    interval = longer
        for word in range(words):
            covered[word] |= arrays.box_masks[box, word]
        found[count] = box
        count += 1
    return count


@_compiled
def maximal_rows(arrays: BoxArrays, busy: NDArray[np.uint64], free: NDArray[np.int64], count: int) -> int:
    """Keep the maximal ones of all free rows; returns how many. A box is maximal when no side can be moved out."""
    dimensions = arrays.strides.shape[0]
    words = busy.shape[0]
    kept = 0
    for index in range(count):
        row = free[index]
        box = arrays.box_of[row]
        rest = box
        grows = False
        for dimension in range(dimensions):
            stride = arrays.strides[dimension]
            interval = rest // stride
            rest -= interval * stride
            for side in range(2):
                if arrays.grown[dimension, side, interval] < 0:
                    continue
                slab = box + (arrays.slab[dimension, side, interval] - interval) * stride
                clear = True
                for word in range(words):
                    if arrays.box_masks[slab, word] & busy[word]:
                        clear = False
                        break
                grows |= clear
        if not grows:
            free[kept] = row
            kept += 1
    return kept


@_compiled
def phi_of_boxes(arrays: BoxArrays, found: NDArray[np.int64], count: int) -> int:
    """Phi of some maximal boxes, given by their numbers."""
    volume = 0
    ties = 0
    for index in range(count):
        one = arrays.box_volumes[found[index]]
        if one > volume:
            volume = one
            ties = 1
        elif one == volume:
            ties += 1
    phi: int = arrays.coordinates.shape[0] * volume + ties
    return phi


@_compiled
def choose(
    arrays: BoxArrays,
    wanted: NDArray[np.bool_],
    free: NDArray[np.int64],
    count: int,
    busy: NDArray[np.uint64],
    choice: int,
) -> int:
    """Choose a free row for a request.

    Args:
        arrays: the tables.
        wanted: shapes that serve the request, shape (shapes,).
        free: free rows, ascending.
        count: how many.
        busy: the machine's state.
        choice: one of the constants above.

    Returns:
        The row, or -1 where none of the wanted shapes is free.
    """
    nodes = arrays.coordinates.shape[0]
    best: int = -1
    best_score = np.int64(-1)
    after = np.empty_like(busy)
    found = np.empty(nodes if choice == PHI_GREEDY else 0, np.int64)
    for index in range(count):
        row = free[index]
        if not wanted[arrays.shape_of[row]]:
            continue
        if choice == FIRST:
            best = row
            break
        if choice == PHI_EXACT:
            volume, ties = largest_disjoint(arrays, free, count, row)
            score = nodes * volume + ties
        else:
            for word in range(busy.shape[0]):
                after[word] = busy[word] | arrays.masks[row, word]
            score = phi_of_boxes(arrays, found, greedy_boxes(arrays, after, found))
        if score > best_score:
            best_score = score
            best = row
    return best


@_compiled
def list_phases(
    arrays: BoxArrays,
    dead: NDArray[np.bool_],
    busy: NDArray[np.uint64],
    held: NDArray[np.uint64],
    ends: NDArray[np.int64],
    now: int,
    end: int,
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> int:
    """List the free rows of each stretch of time between two ends of running jobs, from now to `end`.

    Args:
        arrays: the tables.
        dead: rows that are never free.
        busy: the machine's state now.
        held: nodes of the running jobs, by ascending end, shape (running, words).
        ends: when they are expected to end, ascending, after `now`.
        now: the time.
        end: when the job to be placed is expected to end.
        rows: out: free rows of each phase but the first, which is now; shape (running + 1, rows).
        counts: out: how many.
        lengths: out: how long each phase is.

    Returns:
        How many phases there are.
    """
    state = busy.copy()
    phases = 1
    begin = now
    for index in range(ends.shape[0]):
        if ends[index] >= end:
            break
        for word in range(busy.shape[0]):
            state[word] &= ~held[index, word]
        if index + 1 < ends.shape[0] and ends[index + 1] == ends[index]:
            continue
        lengths[phases - 1] = ends[index] - begin
        begin = ends[index]
        counts[phases] = list_free(arrays.masks, dead, state, rows[phases])
        phases += 1
    lengths[phases - 1] = end - begin
    return phases


@_compiled
def choose_room_ahead(
    arrays: BoxArrays,
    wanted: NDArray[np.bool_],
    free: NDArray[np.int64],
    count: int,
    phases: int,
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> int:
    """Choose, among the free rows of the smallest volume that serves, the one that leaves most room while the job runs.

    Room is the volume of the largest free box beside the job, integrated over the job's time. A candidate is given up
    as soon as even all of the remaining phases' room without the job would not make it the best.

    Args:
        arrays: the tables; rows in ascending order of volume.
        wanted: shapes that serve the request, shape (shapes,).
        free: free rows now, ascending.
        count: how many.
        phases: how many phases (`list_phases`).
        rows: free rows of the phases but the first.
        counts: how many.
        lengths: of the phases.

    Returns:
        The row, the first of equals, or -1 where none of the wanted shapes is free.
    """
    best: int = -1
    best_room = np.int64(-1)
    possible = np.zeros(phases + 1, np.int64)
    for phase in range(phases - 1, -1, -1):
        last = free[count - 1] if phase == 0 else rows[phase, counts[phase] - 1]
        possible[phase] = possible[phase + 1] + arrays.volumes[last] * lengths[phase]
    for index in range(count):
        row = free[index]
        if not wanted[arrays.shape_of[row]]:
            continue
        if best >= 0 and arrays.volumes[row] > arrays.volumes[best]:
            break
        room = np.int64(0)
        for phase in range(phases):
            if room + possible[phase] <= best_room:
                break
            if phase == 0:
                volume, _ = largest_disjoint(arrays, free, count, row)
            else:
                volume, _ = largest_disjoint(arrays, rows[phase], counts[phase], row)
            room += volume * lengths[phase]
        if room > best_room:
            best_room = room
            best = row
    return best
