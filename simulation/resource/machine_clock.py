"""The clock of a replayed machine: wall time in, log time out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from ramp.model.instant import Duration, Instant

FAR: Final = 2**61
"""Log time that stands for all later ones, microseconds (73 thousand years): sums of two still fit 64 bits."""


@dataclass(frozen=True, slots=True)
class MachineClock:
    """Maps wall instants to log time (microseconds from the log's first submission) and back.

    At `started_at` the log stands at `base_time`; from then on it runs `speed` times as fast as the wall clock, and
    so do the windows that are sold: an hour on the wall takes `speed` hours of the log.

    Attributes:
        started_at: when the machine's clock began.
        base_time: log time at that instant, microseconds.
        speed: log time that passes in a unit of wall time, at least 1.
    """

    started_at: Instant
    base_time: Duration
    speed: Fraction = Fraction(1)
    _ratio: tuple[int, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ratio", self.speed.as_integer_ratio())  # reading it of a Fraction is slow

    def log_time(self, instant: Instant) -> int:
        """Log time at a wall instant, rounded down."""
        faster, slower = self._ratio
        return min(self.base_time + (instant - self.started_at) * faster // slower, FAR)

    def log_window(self, start: Instant, end: Instant) -> tuple[int, int]:
        """Log times of a window on the wall, at least one microsecond long."""
        faster, slower = self._ratio
        begin = min(self.base_time + (start - self.started_at) * faster // slower, FAR)
        return begin, max(min(self.base_time + (end - self.started_at) * faster // slower, FAR), begin + 1)

    def instant(self, log_time: int) -> Instant:
        """Return the first wall instant at which the log stands at a time or later."""
        faster, slower = self._ratio
        return self.started_at - (self.base_time - log_time) * slower // faster

    def log_duration(self, duration: Duration) -> Duration:
        """Log time that a window of this wall duration can touch at most, wherever it begins."""
        if self._ratio == (1, 1):
            return min(duration, FAR)
        # A begin that is rounded up to a whole microsecond of the wall moves the window by up to `speed`.
        return min(math.ceil(duration * self.speed) + math.ceil(self.speed), FAR)
