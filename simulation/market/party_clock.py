"""Each party's own wall clock: how far it is off, how it drifts, and when it is set.

An agent follows the system's clock: it tells its party by how much the clock has been set before it passes on the
time again (`ramp.runtime.clock`). One that is down reads the clock anew when it starts.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.instant import Duration, Instant

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ClockFault:
    """What is wrong with one clock.

    Attributes:
        offset: by how much it is ahead of the true time; negative: behind.
        drift_ppm: microseconds that it gains in a second; a crystal has some tens.
        steps: when, counted from the run's start, the clock is set, and by how much.
    """

    offset: Duration = 0
    drift_ppm: int = 0
    steps: tuple[tuple[Duration, Duration], ...] = ()

    @property
    def is_stepped(self) -> bool:
        """Return whether the clock is ever set."""
        return bool(self.steps)

    def offset_after(self, passed: Duration) -> Duration:
        """Return how far it is ahead of the true time, without drift, this long after the run's start."""
        return self.offset + sum(by for when, by in self.steps if when <= passed)

    @property
    def offsets(self) -> tuple[Duration, ...]:
        """By how much it is ahead at first and after every step."""
        return self.offset, *(self.offset_after(when) for when, _ in self.steps)


RIGHT = ClockFault()


class PartyClock:
    """One party's clock; `start` is the true time at which the run begins.

    Attributes:
        is_right: whether it always shows the true time.
    """

    def __init__(self, fault: ClockFault, start: Instant) -> None:
        self.is_right = fault == RIGHT
        self._fault = fault
        self._start = start
        self._ahead = fault.offset

    def follow(self, now: Instant) -> Duration:
        """Read the system's clock at a true time; return by how much it was set since the last call."""
        before = self._ahead
        self._ahead = self._fault.offset_after(now - self._start)
        return self._ahead - before

    def time(self, now: Instant) -> Instant:
        """Return what it shows at a true time."""
        drift = self._fault.drift_ppm
        return now + self._ahead + (drift * (now - self._start) // MILLION if drift else 0)

    def when(self, reading: Instant) -> Instant:
        """Return the first true time at which it shows a reading, or more."""
        drift = self._fault.drift_ppm
        if not drift:
            return reading - self._ahead
        now = self._start + (reading - self._ahead - self._start) * MILLION // (MILLION + drift)
        while self.time(now) < reading:
            now += 1
        while self.time(now - 1) >= reading:
            now -= 1
        return now
