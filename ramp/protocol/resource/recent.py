"""What is remembered for a while after it was last said, and never more of it than so many."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from ramp.model.instant import Duration, Instant

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Values by key; those that were set longest ago go first.

    Args:
        lifetime: how long a value is remembered after it was set; it goes when the next one is set.
        most: values remembered at most.
    """

    def __init__(self, lifetime: Duration, most: int) -> None:
        self._lifetime = lifetime
        self._most = most
        self._values: OrderedDict[Key, tuple[Instant, Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """The value, or None."""
        found = self._values.get(key)
        return None if found is None else found[1]

    def standing(self, key: Key, now: Instant) -> Value | None:
        """The value while its lifetime lasts, or None."""
        found = self._values.get(key)
        return found[1] if found is not None and now < found[0] else None

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        for key, (until, value) in self._values.items():
            self._values[key] = until + by, value

    def put(self, key: Key, value: Value, now: Instant) -> None:
        """Set a value, and forget what is too old or too much."""
        self._values[key] = now + self._lifetime, value
        self._values.move_to_end(key)
        while len(self._values) > self._most or next(iter(self._values.values()))[0] <= now:
            self._values.popitem(last=False)
