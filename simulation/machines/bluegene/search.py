"""The inner loop of an allocation decision, compiled.

A machine's state is one vector of 64-bit words: first the units (one bit each, set = not to be given out), then one
word a line (one bit a cable, set = held or failed). `simulation.machines.bluegene.catalogue` lays out the tables
scanned here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled

COLUMNS_BEFORE_DIMENSIONS = 2
"""Columns of a candidate row before those of the dimensions: least cost, order of discovery."""
COLUMNS_A_DIMENSION = 4
"""Columns of a candidate row for each dimension: link sets from, to; lines from, to."""

_BEYOND = np.iinfo(np.int64).max


@compiled
def _cable_cost(
    busy: NDArray[np.uint64],
    row: NDArray[np.int64],
    link_sets: NDArray[np.uint64],
    link_costs: NDArray[np.int64],
    lines: NDArray[np.int64],
    chosen: NDArray[np.int64],
) -> int:
    """Choose each dimension's first link set that is free on all lines of a candidate.

    Returns:
        The cost of all of them, or -1 where a dimension has none; `chosen` holds them.
    """
    cost = 0
    for dimension in range(chosen.shape[0]):
        column = 2 + 4 * dimension
        first_line = row[column + 2]
        last_line = row[column + 3]
        taken = np.uint64(0)
        for line in range(first_line, last_line):
            taken |= busy[lines[line]]
        chosen[dimension] = -1
        for link_set in range(row[column], row[column + 1]):
            if not link_sets[link_set] & taken:
                chosen[dimension] = link_set
                break
        if chosen[dimension] < 0:
            return -1
        cost += link_costs[chosen[dimension]] * (last_line - first_line)
    return cost


@compiled
def first_fit(
    busy: NDArray[np.uint64],
    kinds: NDArray[np.int64],
    kind_rows: NDArray[np.int64],
    candidate_units: NDArray[np.uint64],
    candidate_rows: NDArray[np.int64],
    link_sets: NDArray[np.uint64],
    link_costs: NDArray[np.int64],
    lines: NDArray[np.int64],
    answer: NDArray[np.int64],
) -> int:
    """Find the best free candidate of the first kind of request that has one.

    For each candidate whose units are all free, each dimension takes its first link set that is free on all lines that
    cross the candidate. The cost is the sum over dimensions of link set cost times lines; the cheapest wins, the one
    discovered first among equals. Rows of a kind are sorted by least possible cost, then discovery, which ends the scan
    early without changing its result.

    Args:
        busy: the machine's state.
        kinds: kinds to try, in order.
        kind_rows: first and last + 1 candidate row of each kind.
        candidate_units: units of each candidate, in words as in `busy`.
        candidate_rows: columns as stated by the constants of this module.
        link_sets: cables of each link set, one word.
        link_costs: what each link set costs on one line.
        lines: indexes into `busy` of the lines that cross the candidates.
        answer: out: candidate row, then the chosen link set of each dimension (scratch space behind them).

    Returns:
        Index into `kinds`, or -1 where nothing fits.
    """
    words = candidate_units.shape[1]
    dimensions = (candidate_rows.shape[1] - 2) // 4
    for index in range(kinds.shape[0]):
        kind = kinds[index]
        best_cost = _BEYOND
        best_order = _BEYOND
        for row in range(kind_rows[kind, 0], kind_rows[kind, 1]):
            least = candidate_rows[row, 0]
            order = candidate_rows[row, 1]
            if least > best_cost or (least == best_cost and order > best_order):
                break
            free = True
            for word in range(words):
                if candidate_units[row, word] & busy[word]:
                    free = False
                    break
            if not free:
                continue
            cost = _cable_cost(busy, candidate_rows[row], link_sets, link_costs, lines, answer[1 + dimensions :])
            if cost >= 0 and (cost < best_cost or (cost == best_cost and order < best_order)):
                best_cost = cost
                best_order = order
                answer[0] = row
                for dimension in range(dimensions):
                    answer[1 + dimension] = answer[1 + dimensions + dimension]
        if best_cost != _BEYOND:
            return index
    return -1
