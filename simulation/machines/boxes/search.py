"""The inner loops of allocation by boxes, compiled: which boxes are free, and which of them are maximal.

Boxes are rows in the order in which an allocator prefers them (`simulation.machines.boxes.ranked`); a machine's state
is a vector of 64-bit words, one bit a node, set = not to be given out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled


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
        grown: `simulation.machines.boxes.table.BoxTable`.
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
