"""The wall clock as the machines want it: integer microseconds that never go back."""

from __future__ import annotations

import time

from ramp.model.instant import Instant


class SystemClock:
    """Wall time at creation plus monotonic time since, so that a stepped system clock cannot turn time back."""

    def __init__(self) -> None:
        self._origin = time.time_ns() // 1000 - time.monotonic_ns() // 1000

    def now(self) -> Instant:
        """The present instant."""
        return self._origin + time.monotonic_ns() // 1000
