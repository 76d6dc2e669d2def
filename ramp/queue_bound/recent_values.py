"""The latest values of a series, in order of size: what a quantile or a share is read off at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from typing import Generic, TypeVar

_Value = TypeVar("_Value", int, float)


class RecentValues(Generic[_Value]):
    """The most recent values, up to a maximum.

    Args:
        most: values that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._in_turn: deque[_Value] = deque()
        self._in_order: list[_Value] = []

    def __len__(self) -> int:
        return len(self._in_turn)

    def add(self, value: _Value) -> None:
        """Take one more."""
        if len(self._in_turn) == self._most:
            self._forget_oldest()
        self._in_turn.append(value)
        insort(self._in_order, value)

    def keep_last(self, count: int) -> None:
        """Forget all but the most recent values."""
        while len(self._in_turn) > count:
            self._forget_oldest()

    def smallest(self, rank: int) -> _Value:
        """The value of a rank from 1, the smallest, to the number of values."""
        return self._in_order[rank - 1]

    def not_above(self, value: float) -> int:
        """How many are at most so large."""
        return bisect_right(self._in_order, value)

    def _forget_oldest(self) -> None:
        del self._in_order[bisect_left(self._in_order, self._in_turn.popleft())]
