"""Cores taken on one machine over future time: a step function and the questions a quote asks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]

NEVER: Final = int(np.iinfo(np.int64).max)
"""A time that no window reaches."""


@dataclass(frozen=True, slots=True, eq=False)
class CoreProfile:
    """Cores taken from an instant on.

    Attributes:
        capacity: cores of the machine.
        times: shape (steps,), microseconds, strictly ascending; the profile begins at the first.
        taken: shape (steps,), cores taken from that time until the next, 0 to `capacity`; the last one for ever.
    """

    capacity: int
    times: Int64Array
    taken: Int64Array

    @staticmethod
    def of_intervals(
        capacity: int, origin: int, starts: Int64Array, ends: Int64Array, cores: Int64Array
    ) -> CoreProfile:
        """Add up what each interval takes.

        Args:
            capacity: cores of the machine; the sum never counts more (two claims on the same core take it once).
            origin: where the profile begins, microseconds; earlier parts of intervals are left out.
            starts: shape (intervals,), microseconds.
            ends: shape (intervals,), microseconds, exclusive.
            cores: shape (intervals,), cores each takes.
        """
        live = ends > np.maximum(starts, origin)
        moments = np.concatenate(([origin], np.maximum(starts[live], origin), ends[live]))
        changes = np.concatenate(([0], cores[live], -cores[live]))
        order = np.argsort(moments, kind="stable")
        moments = moments[order]
        totals = np.cumsum(changes[order])
        last_of_moment = np.append(moments[1:] != moments[:-1], True)
        return CoreProfile(capacity, moments[last_of_moment], np.minimum(totals[last_of_moment], capacity))

    def max_over(self, start: int, end: int) -> int:
        """Return the most cores taken at any time of [start, end).

        Args:
            start: microseconds, not before the profile's begin.
            end: microseconds, after `start`.
        """
        first, last = self._steps(start, end)
        return int(self.taken[first:last].max())

    def mean_over(self, start: int, end: int) -> float:
        """Return the cores taken in the time-mean of [start, end).

        Args:
            start: microseconds, not before the profile's begin.
            end: microseconds, after `start`.
        """
        first, last = self._steps(start, end)
        bounds = np.empty(last - first + 1)
        bounds[0] = 0
        bounds[1:-1] = self.times[first + 1 : last] - start
        bounds[-1] = end - start
        return float((bounds[1:] - bounds[:-1]) @ self.taken[first:last]) / (end - start)

    def earliest_start(self, cores: int, duration: int, earliest: int, latest: int = NEVER) -> int | None:
        """Return the first time from which `cores` are free for the whole of `duration`.

        Args:
            cores: cores wanted, at most the capacity.
            duration: microseconds, positive.
            earliest: first start allowed, microseconds, not before the profile's begin.
            latest: last start allowed, microseconds.

        Returns:
            The start, microseconds, or None if every one is after `latest`.
        """
        first = int(self.times.searchsorted(earliest, side="right")) - 1
        blocked = self.taken[first:] > self.capacity - cores
        (edges,) = (blocked[1:] != blocked[:-1]).nonzero()
        changes = [] if blocked[0] else [earliest]  # begins and ends of free time in turn
        changes += self.times[edges + (first + 1)].tolist()
        if len(changes) % 2:
            changes.append(NEVER)
        for start, end in zip(changes[0::2], changes[1::2], strict=True):
            if end - start >= duration:
                return start if start <= latest else None
        return None

    def _steps(self, start: int, end: int) -> tuple[int, int]:
        if not self.times[0] <= start < end:
            raise ValueError(f"window [{start}, {end}) is empty or before the profile's begin {self.times[0]}")
        first = int(self.times.searchsorted(start, side="right")) - 1
        return first, int(self.times.searchsorted(end, side="left"))
