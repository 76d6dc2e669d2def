"""Which free box to take, compiled: the first, or the one with the largest phi.

Rows, states and tables are those of `simulation.machines.boxes.search`. numba keeps compiled functions on disk until
their own file changes; after a change of search.py alone, touch this file.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.machines.boxes.policy import Choice
from simulation.machines.boxes.search import BoxArrays, greedy_boxes, phi_of_boxes

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
