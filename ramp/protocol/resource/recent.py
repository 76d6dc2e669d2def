"""Values remembered for a limited time, up to a limited number."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

from ramp.model.instant import Duration, Instant

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(dict[Key, Value]):
    """Values by key; the oldest go first.

    Args:
        lifetime: of a value since it was set; expired values go when the next one is set.
        most: maximum number of values.
    """

    def __init__(self, lifetime: Duration, most: int) -> None:
        super().__init__()
        self._lifetime = lifetime
        self._most = most
        self._until: OrderedDict[Key, Instant] = OrderedDict()

    def standing(self, key: Key, now: Instant) -> Value | None:
        """Return the value if its lifetime has not ended, else None."""
        return self[key] if key in self and now < self._until[key] else None

    def forget(self, key: Key) -> None:
        if self.pop(key, None) is not None:
            del self._until[key]

    def clock_set(self, by: Duration) -> None:
        for key, until in self._until.items():
            self._until[key] = until + by

    def put(self, key: Key, value: Value, now: Instant) -> None:
        self[key] = value
        self._until[key] = now + self._lifetime
        self._until.move_to_end(key)
        while len(self) > self._most or next(iter(self._until.values())) <= now:
            del self[self._until.popitem(last=False)[0]]
