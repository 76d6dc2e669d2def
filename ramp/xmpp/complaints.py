"""Decides which of many complaints are worth a line in the log: one of a kind a minute about each sender."""

from __future__ import annotations

from typing import Final

from ramp.model.instant import SECOND, Duration, Instant

PAUSE: Final[Duration] = 60 * SECOND
"""At most one line of a kind about a sender in this time."""

SENDERS_MAX: Final = 200
"""Senders remembered; while so many have been complained of within a pause, others are counted without a line."""


class Complaints:
    """Lets one line a pause, kind and sender through; memory and log stay bounded whatever names senders invent.

    Args:
        pause: between two lines about a sender, in microseconds.
        senders_max: how many senders are remembered, and so how many lines a pause can have.
    """

    def __init__(self, pause: Duration = PAUSE, senders_max: int = SENDERS_MAX) -> None:
        self._pause = pause
        self._senders_max = senders_max
        self._said: dict[tuple[str, str], Instant] = {}  # oldest first

    def is_due(self, kind: str, sender: str, now: Instant) -> bool:
        """Whether a line about this sender is to be written now; it counts as written.

        Args:
            kind: of complaint; one kind does not silence another.
            sender: whatever the stanza says.
            now: of a clock that never goes back, in microseconds.
        """
        key = kind, sender[:100]  # a name may be 64 kB long
        last = self._said.get(key)
        if last is not None and now < last + self._pause:
            return False
        self._said.pop(key, None)
        if len(self._said) >= self._senders_max:
            oldest = next(iter(self._said))
            if now < self._said[oldest] + self._pause:
                return False
            del self._said[oldest]
        self._said[key] = now
        return True
