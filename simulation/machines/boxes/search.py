"""The inner loops of allocation by boxes, compiled: which boxes are free, which are maximal, which to take.

Boxes are rows in the order in which an allocator prefers them (`simulation.machines.boxes.ranked`); a machine's state
is a vector of 64-bit words, one bit a node, set = not to be given out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.machines.boxes.policy import Choice


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
        grown: `simulation.machines.boxes.ranked.BoxTable`.
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


@compiled
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


@compiled
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


@compiled
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


@compiled
def phi_of_boxes(arrays: BoxArrays, found: NDArray[np.int64], count: int) -> int:
    """Return phi of some maximal boxes, given by their numbers."""
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


FIRST, PHI_GREEDY = int(Choice.FIRST), int(Choice.PHI_GREEDY)
"""As constants for the compiler."""


@compiled
def _meets(arrays: BoxArrays, one: int, other: int) -> bool:
    """Return whether two rows share a node."""
    word = 0
    while word < arrays.masks.shape[1] and not arrays.masks[one, word] & arrays.masks[other, word]:
        word += 1
    return bool(word < arrays.masks.shape[1])


@compiled
def phi_bounds(arrays: BoxArrays, free: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the largest phi that any state can have whose boxes are among the free rows and have at most a volume.

    Returns:
        One bound a volume, from 0 to the machine's nodes.
    """
    nodes = arrays.coordinates.shape[0]
    bounds = np.zeros(nodes + 1, np.int64)
    for index in range(count):
        bounds[arrays.volumes[free[index]]] += 1
    for volume in range(1, nodes + 1):
        bounds[volume] = max(bounds[volume - 1], nodes * volume + bounds[volume] if bounds[volume] else 0)
    return bounds


@compiled
def phi_beside(
    arrays: BoxArrays, free: NDArray[np.int64], count: int, taken: int, bounds: NDArray[np.int64], least: int
) -> int:
    """Return phi over all maximal boxes without the free row `taken`; any lower number where it is at most `least`.

    A largest free box is always maximal, so the largest ones are all that is looked for. Rows must be in ascending
    order of volume, and the search ends where `bounds` says that phi cannot come out above `least`.
    """
    volume = 0
    ties = 0
    for index in range(count - 1, -1, -1):
        row = free[index]
        here = arrays.volumes[row]
        if here < volume:
            break
        if volume == 0 and bounds[here] <= least:
            return -1
        if not _meets(arrays, row, taken):
            volume = here
            ties += 1
    phi: int = arrays.coordinates.shape[0] * volume + ties
    return phi


@compiled
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
        wanted: shapes that serve the request, and those of them within which no other one lies; shape (2, shapes).
        free: free rows, ascending.
        count: how many.
        busy: the machine's state.
        choice: number of the `Choice`; phi, if it is not the first.

    Returns:
        The row, or -1 where none of the wanted shapes is free.
    """
    best: int = -1
    best_score: int = -1
    after = np.empty_like(busy)
    found = np.empty(arrays.coordinates.shape[0] if choice == PHI_GREEDY else 0, np.int64)
    bounds = phi_bounds(arrays, free, count if choice != FIRST else 0)
    # a box leaves no more room than one within it, which is free, too, and comes before it
    for index in range(count):
        row = free[index]
        if not wanted[0 if choice == FIRST else 1, arrays.shape_of[row]]:
            continue
        if choice == FIRST:
            best = row
            break
        score = phi_beside(arrays, free, count, row, bounds, best_score)
        if score > best_score:
            best_score = score
            best = row
    if choice != PHI_GREEDY or best < 0:
        return best
    # the greedy search finds some of all maximal boxes, at most one a node, so its phi is never above the exact one
    highest = best_score
    best_score = -1
    for index in range(count):
        row = free[index]
        if best_score == highest:
            break
        if wanted[0, arrays.shape_of[row]] and phi_beside(arrays, free, count, row, bounds, best_score) > best_score:
            for word in range(busy.shape[0]):
                after[word] = busy[word] | arrays.masks[row, word]
            score = phi_of_boxes(arrays, found, greedy_boxes(arrays, after, found))
            if score > best_score:
                best_score = score
                best = row
    return best
