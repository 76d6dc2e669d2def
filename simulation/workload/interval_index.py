"""Which of many intervals hold a point: an index whose answer time does not depend on where the point lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]

SPACING: Final = 128
"""Starts between two checkpoints: what has to be looked through beyond a checkpoint's own set."""


@dataclass(frozen=True, slots=True, eq=False)
class IntervalIndex:
    """Intervals [start, end), sorted by start, with the set of open ones written down at every `SPACING`-th start.

    Attributes:
        order: shape (intervals,), number of each interval in the caller's arrays, by start.
        starts: shape (intervals,), ascending.
        ends: shape (intervals,), in the order of `starts`.
        open_intervals: positions (in start order) open at each checkpoint, one checkpoint after the other.
        open_offsets: shape (checkpoints + 1,), where each checkpoint's part of `open_intervals` begins.
    """

    order: Int64Array
    starts: Int64Array
    ends: Int64Array
    open_intervals: Int64Array
    open_offsets: Int64Array

    @staticmethod
    def build(starts: Int64Array, ends: Int64Array) -> IntervalIndex:
        """Index intervals; empty ones (end <= start) are left out.

        Args:
            starts: shape (intervals,).
            ends: shape (intervals,), exclusive.
        """
        order = np.flatnonzero(ends > starts)
        order = order[np.argsort(starts[order], kind="stable")]
        starts, ends = starts[order], ends[order]
        positions = np.arange(len(order), dtype=np.int64)
        checkpoint_times = starts[::SPACING]
        first = positions // SPACING + 1
        behind_last = np.searchsorted(checkpoint_times, ends, side="left")
        counts = np.maximum(behind_last - first, 0)
        entries = np.repeat(positions, counts)
        within = np.arange(len(entries)) - np.repeat(np.cumsum(counts) - counts, counts)
        checkpoints = np.repeat(first, counts) + within
        by_checkpoint = np.argsort(checkpoints, kind="stable")
        offsets = np.searchsorted(checkpoints[by_checkpoint], np.arange(len(checkpoint_times) + 1))
        return IntervalIndex(order, starts, ends, entries[by_checkpoint], offsets.astype(np.int64))

    def holding(self, point: int) -> Int64Array:
        """Return the intervals that hold a point.

        Args:
            point: on the axis of starts and ends.

        Returns:
            Numbers of the intervals in the caller's arrays, by start.
        """
        started = int(np.searchsorted(self.starts, point, side="right"))
        if started == 0:
            return self.order[:0]
        checkpoint = (started - 1) // SPACING
        earlier = self.open_intervals[self.open_offsets[checkpoint] : self.open_offsets[checkpoint + 1]]
        later = np.arange(checkpoint * SPACING, started)
        candidates = np.concatenate((earlier, later))
        found: Int64Array = self.order[candidates[self.ends[candidates] > point]]
        return found
