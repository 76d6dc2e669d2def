"""Which calls of a round to send again, and when.

A lost call must be sent again; where the answer is only late it must not, or a crowded market gets still more to do.
TCP has the same problem, and its rules are taken over:

- every answer puts the time-out off (RFC 6298, 5.3);
- when it passes without one, a few calls are sent again, and the pause doubles (5.4 and 5.5);
- an answer to one of these few, while no other call is answered, means that calls were lost: two more follow, and two
  for each answer to those (slow start, RFC 5681, 3.1);
- an answer to a call that was sent only once means that answers are late: nothing more is sent (F-RTO, RFC 5682).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ramp.model.instant import Duration, Instant
from ramp.protocol.timing import Pace, moved

FEW: Final = 2
"""Calls sent again when a round's first time-out has passed, and for every answer that shows a loss."""


class Calls:
    """The calls of one round.

    Args:
        pace: of the calling party.
        names: who has been called, in the order of sending.
        now: when.

    Attributes:
        due: when the time-out passes, or None when everybody has answered.
        sent_again: how many calls have been sent again.
    """

    def __init__(self, pace: Pace, names: Iterable[str], now: Instant) -> None:
        self.due: Instant | None = None
        self.sent_again = 0
        self._pace = pace
        self._begun = now
        self._missing = dict.fromkeys(names, 1)  # how often each has been called
        self._lost = False
        self._few = FEW
        self._pause = pace.pause
        self._wait(now)

    def is_due(self, now: Instant) -> bool:
        """Whether the time-out has passed."""
        return self.due is not None and now >= self.due

    def answered(self, name: str, now: Instant) -> list[str]:
        """Somebody has answered; returns whom to call again now."""
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
        self._wait(now)
        return again

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: the time-out stays as far away as it was."""
        self.due, self._begun = moved(self.due, by), self._begun + by

    def time_out(self, now: Instant) -> list[str]:
        """The time-out has passed; returns whom to call again."""
        self._lost = True
        self._pause = self._pace.back_off(self._pause)
        again = self._next(list(self._missing), self._few)
        self._few *= 2
        self._wait(now)
        return again

    def _next(self, names: list[str], most: int) -> list[str]:
        """Those called least often, the last ones of the round first: their answers are the last to be expected."""
        last_first = names[::-1]
        chosen = sorted(last_first, key=self._missing.__getitem__)[:most]
        for name in chosen:
            self._missing[name] += 1
        self.sent_again += len(chosen)
        return chosen

    def _wait(self, now: Instant) -> None:
        self.due = now + self._pause if self._missing else None
