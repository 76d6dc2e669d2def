"""Which calls of a round to repeat, and when.

A lost call must be repeated. A call whose answer is only late must not, or a busy market gets busier. The rules are
those of TCP:

- every answer restarts the time-out (RFC 6298, 5.3);
- when it passes, a few calls are repeated and the pause doubles (5.4 and 5.5);
- an answer to a repeated call, while no other call is answered, shows that calls were lost: two more are repeated, and
  two for each answer to those (slow start, RFC 5681, 3.1);
- an answer to a call that was sent once shows that answers are late: nothing more is repeated (F-RTO, RFC 5682).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ramp.model.instant import Duration, Instant
from ramp.protocol.timing import Pace, moved

FEW: Final = 2
"""Calls repeated at the first time-out, and for every answer that shows a loss."""


class Calls:
    """The calls of one round.

    Attributes:
        due: when the time-out passes; None when all have answered.
        sent_again: number of repeated calls.
    """

    def __init__(self, pace: Pace, names: Iterable[str], now: Instant) -> None:
        self.due: Instant | None
        self.sent_again = 0
        self._pace = pace
        self._begun = now
        self._missing = dict.fromkeys(names, 1)  # how often each has been called
        self._lost = False
        self._few = FEW
        self._pause = pace.pause
        self.due = now + self._pause if self._missing else None

    def is_due(self, now: Instant) -> bool:
        return self.due is not None and now >= self.due

    def answered(self, name: str, now: Instant) -> list[str]:
        """Record an answer; return the resources to call again now."""
        times = self._missing.pop(name, None)
        if times is None:
            return []
        again: list[str] = []
        if times == 1:
            self._pace.observe(now - self._begun)
            self._pause, self._few, self._lost = self._pace.pause, FEW, False
        elif self._lost:
            self._pause = self._pace.pause
            again = self._next([each for each, called in self._missing.items() if called == 1], FEW)
        self.due = now + self._pause if self._missing else None
        return again

    def clock_set(self, by: Duration) -> None:
        self.due, self._begun = moved(self.due, by), self._begun + by

    def time_out(self, now: Instant) -> list[str]:
        """Return the resources to call again after the time-out."""
        self._lost = True
        self._pause = self._pace.back_off(self._pause)
        again = self._next(list(self._missing), self._few)
        self._few *= 2
        self.due = now + self._pause if self._missing else None
        return again

    def _next(self, names: list[str], most: int) -> list[str]:
        """Choose the resources called least often, the last of the round first, as their answers are due last."""
        last_first = names[::-1]
        chosen = sorted(last_first, key=self._missing.__getitem__)[:most]
        for name in chosen:
            self._missing[name] += 1
        self.sent_again += len(chosen)
        return chosen
