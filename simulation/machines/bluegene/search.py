"""The inner loop of an allocation decision, compiled.

A machine's state is one vector of 64-bit words: first the units (one bit each, set = not to be given out), then one
word a line (one bit a cable, set = held or failed). `simulation.machines.bluegene.catalogue` lays out the tables
scanned here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled

COLUMNS_BEFORE_DIMENSIONS = 3
"""Columns of a candidate row before those of the dimensions: least cost, order of discovery, cost of the place."""
COLUMNS_A_DIMENSION = 4
"""Columns of a candidate row for each dimension: link sets from, to; lines from, to."""

_BEYOND = np.iinfo(np.int64).max


class Tables(NamedTuple):
    """What the search scans.

    Attributes:
        kind_rows: first and last + 1 candidate row of each kind.
        candidate_units: units of each candidate, in words as in the machine's state.
        candidate_rows: columns as stated by the constants of this module.
        link_sets: cables of each link set, one word.
        link_costs: what each link set costs on one line.
        lines: indexes into the state of the lines that cross the candidates.
        units: number of units of the machine, shape (1,).
        box_units: units of all boxes, the largest first, where the largest free one counts; else none.
        box_sizes: how many they are.
    """

    kind_rows: NDArray[np.int64]
    candidate_units: NDArray[np.uint64]
    candidate_rows: NDArray[np.int64]
    link_sets: NDArray[np.uint64]
    link_costs: NDArray[np.int64]
    lines: NDArray[np.int64]
    units: NDArray[np.int64]
    box_units: NDArray[np.uint64]
    box_sizes: NDArray[np.int64]


@compiled
def _room_beside(busy: NDArray[np.uint64], row: int, tables: Tables, least: int) -> int:
    """Return the size of the largest box that stays free beside a candidate; -1 where it is below `least`."""
    for box in range(tables.box_sizes.shape[0]):
        size: int = tables.box_sizes[box]
        if size < least:
            return -1
        free = True
        for word in range(tables.box_units.shape[1]):
            if tables.box_units[box, word] & (busy[word] | tables.candidate_units[row, word]):
                free = False
                break
        if free:
            return size
    return 0 if least <= 0 else -1


@compiled
def _cable_cost(busy: NDArray[np.uint64], row: NDArray[np.int64], tables: Tables, chosen: NDArray[np.int64]) -> int:
    """Choose each dimension's first link set that is free on all lines of a candidate.

    Returns:
        The cost of the place and of all of them, or `_BEYOND` where a dimension has none; `chosen` holds them.
    """
    cost: int = row[2]
    for dimension in range(chosen.shape[0]):
        column = 3 + 4 * dimension
        first_line = row[column + 2]
        last_line = row[column + 3]
        taken = np.uint64(0)
        for line in range(first_line, last_line):
            taken |= busy[tables.lines[line]]
        chosen[dimension] = -1
        for link_set in range(row[column], row[column + 1]):
            if not tables.link_sets[link_set] & taken:
                chosen[dimension] = link_set
                break
        if chosen[dimension] < 0:
            return _BEYOND
        cost += tables.link_costs[chosen[dimension]] * (last_line - first_line)
    return cost


@compiled
def first_fit(busy: NDArray[np.uint64], kinds: NDArray[np.int64], tables: Tables, answer: NDArray[np.int64]) -> int:
    """Find the best free candidate of the first kind of request that has one.

    For each candidate whose units are all free, each dimension takes its first link set that is free on all lines that
    cross the candidate. The cost is that of the place and the sum over dimensions of link set cost times lines; the
    cheapest wins, the one discovered first among equals. Rows of a kind are sorted by least possible cost, then
    discovery, which ends the scan early without changing its result. Where the tables have boxes, the candidate that
    leaves the largest free box wins, the cheapest among equals.

    Args:
        busy: the machine's state.
        kinds: kinds to try, in order.
        tables: of the machine.
        answer: out: candidate row, then the chosen link set of each dimension (scratch space behind them).

    Returns:
        Index into `kinds`, or -1 where nothing fits.
    """
    words = tables.candidate_units.shape[1]
    dimensions = (tables.candidate_rows.shape[1] - 3) // 4
    keeps_room = tables.box_sizes.shape[0] > 0
    for index in range(kinds.shape[0]):
        kind = kinds[index]
        best_cost = _BEYOND
        best_order = _BEYOND
        best_room = 0
        for row in range(tables.kind_rows[kind, 0], tables.kind_rows[kind, 1]):
            least = tables.candidate_rows[row, 0]
            order = tables.candidate_rows[row, 1]
            if not keeps_room and (least > best_cost or (least == best_cost and order > best_order)):
                break
            free = True
            for word in range(words):
                if tables.candidate_units[row, word] & busy[word]:
                    free = False
                    break
            if not free:
                continue
            cost = _cable_cost(busy, tables.candidate_rows[row], tables, answer[1 + dimensions :])
            if cost == _BEYOND:
                continue
            room = _room_beside(busy, row, tables, best_room) if keeps_room else 0
            if room > best_room or (
                room == best_room and (cost < best_cost or (cost == best_cost and order < best_order))
            ):
                best_cost = cost
                best_order = order
                best_room = room
                answer[0] = row
                for dimension in range(dimensions):
                    answer[1 + dimension] = answer[1 + dimensions + dimension]
        if best_cost != _BEYOND:
            return index
    return -1
