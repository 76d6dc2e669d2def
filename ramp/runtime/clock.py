"""The wall clock as the machines want it: integer microseconds that go on evenly, but for steps that are told."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from ramp.model.instant import MILLISECOND, SECOND, Duration, Instant

STEP_MIN: Final[Duration] = 10 * MILLISECOND
"""What is less is left alone: it would be an error of reading. All processes of a machine agree within it."""

READING_MAX: Final[Duration] = MILLISECOND
"""Two clocks read at once are read within this; else the process was stopped between them, and they are read again."""

READINGS_MAX: Final = 100
"""So often they are read again."""

_log = logging.getLogger(__name__)

# Linux: counts on while the machine is suspended, as the wall clock does, and is never set. Where there is none, waits
# last as much longer as the machine was suspended.
_STEADY: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _steady_time() -> Instant:
    return time.clock_gettime_ns(_STEADY) // 1000


def _wall_time() -> Instant:
    return time.time_ns() // 1000


class SystemClock:
    """The system's wall clock, compared with a steady one at every reading.

    The two run at the same rate, also while a time daemon slews the wall clock (adjtime changes the rate of both). So
    whatever lies between them beyond an error of reading is a step: it is followed at once and added to `set_by`, by
    which whoever waits for something knows how to wait on.

    Args:
        wall: the wall clock.
        steady: one that is never set, and counts on in a suspend.

    Attributes:
        set_by: by how much the wall clock has been set in all since this clock was made.
    """

    def __init__(self, wall: Callable[[], Instant] = _wall_time, steady: Callable[[], Instant] = _steady_time) -> None:
        self.set_by: Duration = 0
        self._wall = wall
        self._steady = steady
        _, self._ahead = self._read()

    def now(self) -> Instant:
        """The present instant."""
        steady, ahead = self._read()
        by = ahead - self._ahead
        if abs(by) >= STEP_MIN:
            self._ahead = ahead
            self.set_by += by
            _log.warning("the system clock was changed by %+.3f s; this process follows", by / SECOND)
        return steady + self._ahead

    def _read(self) -> tuple[Instant, Duration]:
        """The steady clock, and by how much the wall clock is ahead of it."""
        before = self._steady()
        for _ in range(READINGS_MAX):
            wall, after = self._wall(), self._steady()
            if after - before <= READING_MAX:
                break
            before = after
        return after, wall - after
