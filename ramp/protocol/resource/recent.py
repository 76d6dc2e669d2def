"""Values remembered for a limited time, up to a limited number."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from ramp.model.instant import Duration, Instant

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Values by key; the oldest go first.

    Args:
        lifetime: of a value since it was set; expired values go when the next one is set.
        most: maximum number of values.
    """

    def __init__(self, lifetime: Duration, most: int) -> None:
        self._lifetime = lifetime
        self._most = most
        self._values: OrderedDict[Key, tuple[Instant, Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        found = self._values.get(key)
        return None if found is None else found[1]

    def standing(self, key: Key, now: Instant) -> Value | None:
        """Return the value if its lifetime has not ended, else None."""
        found = self._values.get(key)
        return found[1] if found is not None and now < found[0] else None

    def forget(self, key: Key) -> None:
        self._values.pop(key, None)

    def clock_set(self, by: Duration) -> None:
        for key, (until, value) in self._values.items():
            self._values[key] = until + by, value

    def put(self, key: Key, value: Value, now: Instant) -> None:
        self._values[key] = now + self._lifetime, value
        self._values.move_to_end(key)
        while len(self._values) > self._most or next(iter(self._values.values()))[0] <= now:
            self._values.popitem(last=False)
