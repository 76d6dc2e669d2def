"""Order statistics of past waits: recent values in order, and the rank that bounds a quantile of future waits.

Source: J. Brevik, D. Nurmi and R. Wolski, "Predicting bounds on queuing delay for batch-scheduled parallel machines",
PPoPP 2006, section 3.2 (the Brevik method batch predictor, BMBP).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from functools import cache
from math import ceil, log
from typing import Generic, TypeVar

import numpy as np

_Value = TypeVar("_Value", int, float)


@cache
def fewest(quantile: float, confidence: float) -> int:
    """Return the minimum number of waits: the smallest n with log(1 - confidence) / log(quantile) <= n.

    Args:
        quantile: share of the waits that the bound is to cover, between 0 and 1.
        confidence: probability that it does, between 0 and 1.
    """
    return ceil(log(1 - confidence) / log(quantile))


@cache
def rank(count: int, quantile: float, confidence: float) -> int | None:
    """Return the smallest k for which the k-th smallest of `count` waits exceeds the quantile with the confidence.

    P(Binomial(count, quantile) <= k - 1) >= confidence, for independent waits of one distribution. The result is 1 to
    `count`, or None for fewer waits than `fewest`.
    """
    if count < fewest(quantile, confidence):
        return None
    numbers = np.arange(1, count + 1)
    # logarithms of the binomial coefficients, then of the probabilities of 0 to count successes
    falling = np.concatenate([[0.0], np.cumsum(np.log(count - numbers + 1) - np.log(numbers))])
    successes = np.arange(count + 1)
    probability = np.exp(falling + successes * np.log(quantile) + (count - successes) * np.log1p(-quantile))
    return int(np.searchsorted(np.cumsum(probability), confidence)) + 1


class RecentValues(Generic[_Value]):
    """The most recent values, up to a maximum number, in order of size."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._in_turn: deque[_Value] = deque()
        self._in_order: list[_Value] = []

    def __len__(self) -> int:
        return len(self._in_turn)

    def add(self, value: _Value) -> None:
        """Add a value, dropping the oldest beyond the maximum."""
        if len(self._in_turn) == self._most:
            self._forget_oldest()
        self._in_turn.append(value)
        insort(self._in_order, value)

    def keep_last(self, count: int) -> None:
        """Forget all but the most recent values."""
        while len(self._in_turn) > count:
            self._forget_oldest()

    def smallest(self, rank: int) -> _Value:
        """Return the value of a rank from 1, the smallest, to the number of values."""
        return self._in_order[rank - 1]

    def not_above(self, value: float) -> int:
        """Return how many values are at most `value`."""
        return bisect_right(self._in_order, value)

    def _forget_oldest(self) -> None:
        del self._in_order[bisect_left(self._in_order, self._in_turn.popleft())]
