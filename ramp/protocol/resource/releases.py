"""Slots that a resource releases, until its machine has confirmed it, so that the cores can be sold again."""

from __future__ import annotations

from collections import Counter

from ramp.model.instant import Duration, Instant
from ramp.protocol.timing import Pace, Retry, earliest


class Releases:
    """All releases of one resource.

    A slot may be released several times, and answers may overtake each other. It counts as free only when all answers
    are in and none is in doubt; else it is released once more.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._under_way: Counter[str] = Counter()
        self._doubted: set[str] = set()
        self._retries: dict[str, Retry] = {}

    def __bool__(self) -> bool:
        return bool(self._under_way or self._retries)

    def __contains__(self, key: str) -> bool:
        return key in self._under_way or key in self._retries

    @property
    def deadline(self) -> Instant | None:
        return earliest(*(retry.due for retry in self._retries.values()))

    def asked(self, key: str) -> None:
        self._under_way[key] += 1
        if key in self._retries:
            self._retries[key].stop()

    def answered(self, key: str, now: Instant, *, in_doubt: bool) -> None:
        if in_doubt:
            self._doubted.add(key)
        self._under_way[key] -= 1
        if self._under_way[key] > 0:
            return
        del self._under_way[key]
        if key not in self._doubted:
            self._retries.pop(key, None)
            return
        self._doubted.remove(key)
        if key in self._retries:
            self._retries[key].again(now)
        else:
            self._retries[key] = Retry(self._pace)
            self._retries[key].begin(now)

    def tick(self, now: Instant) -> list[str]:
        """Return the slots to release once more."""
        due = [key for key, retry in self._retries.items() if retry.is_due(now)]
        for key in due:
            self.asked(key)
        return due

    def clock_set(self, by: Duration) -> None:
        for retry in self._retries.values():
            retry.clock_set(by)
