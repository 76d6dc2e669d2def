"""The wall clock in integer microseconds, which runs evenly between reported steps."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from ramp.model.instant import MILLISECOND, SECOND, Duration, Instant

STEP_MIN: Final[Duration] = 10 * MILLISECOND
"""Smallest step; a smaller difference is an error of reading. All processes of a computer agree within it."""

READING_MAX: Final[Duration] = MILLISECOND
"""Maximum time to read both clocks; after a longer time, the process was interrupted and reads them again."""

READINGS_MAX: Final = 100
"""Maximum number of readings."""

_log = logging.getLogger(__name__)

# On Linux this clock also counts during a suspend and is never set. On other systems, waits take longer by the time of
# the suspend.
_STEADY: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_time() -> Instant:
    """Return the time of a clock that is never set."""
    return time.clock_gettime_ns(_STEADY) // 1000


def _wall_time() -> Instant:
    return time.time_ns() // 1000


class SystemClock:
    """The system's wall clock, compared with a steady one at every reading.

    The two run at the same rate, also while a time daemon slews the wall clock (adjtime changes the rate of both). A
    larger difference than an error of reading is a step. The clock follows it at once and adds it to `set_by`, by which
    waiting programs correct their deadlines.

    Args:
        wall: the wall clock.
        steady: a clock that is never set and also counts during a suspend.

    Attributes:
        set_by: sum of all steps since this clock was created.
    """

    def __init__(self, wall: Callable[[], Instant] = _wall_time, steady: Callable[[], Instant] = steady_time) -> None:
        self.set_by: Duration = 0
        self._wall = wall
        self._steady = steady
        _, self._ahead = self._read()

    def now(self) -> Instant:
        """Return the time by the wall clock, following its steps."""
        steady, ahead = self._read()
        by = ahead - self._ahead
        if abs(by) >= STEP_MIN:
            self._ahead = ahead
            self.set_by += by
            _log.warning("the system clock was changed by %+.3f s; this process follows", by / SECOND)
        return steady + self._ahead

    def _read(self) -> tuple[Instant, Duration]:
        """Return the steady clock, and how far the wall clock is ahead of it."""
        before = self._steady()
        for _ in range(READINGS_MAX):
            wall, after = self._wall(), self._steady()
            if after - before <= READING_MAX:
                break
            before = after
        return after, wall - after
