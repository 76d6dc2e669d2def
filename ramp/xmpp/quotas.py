"""Limits per sender: messages that an agent accepts, and lines that it writes to the log.

The transport checks the quota before it unpacks, parses or verifies a message. A verification takes a third of a
millisecond, the check a microsecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ramp.model.instant import SECOND, Duration, Instant

if TYPE_CHECKING:  # the XMPP server needs no configuration
    from ramp.runtime.configuration.values import QuotaConfig

SENDERS_MAX: Final = 20_000
"""Maximum number of senders with a remembered quota, about 4 MB; those silent for longest are forgotten first."""

COMPLAINT_PAUSE: Final[Duration] = 60 * SECOND
"""Minimum time between two log lines of one kind about one sender."""

COMPLAINED_SENDERS_MAX: Final = 200
"""Maximum number of remembered pairs of kind and sender, and so of lines in one pause; further ones get no line."""


class SenderQuota:
    """A token bucket for each sender.

    A sender may send `burst` messages at once and `messages_per_sender_per_second` in the long run. The algorithm is
    GCRA (ITU-T I.371): one number for each sender says when its bucket is full again. A bucket is forgotten only after
    `SENDERS_MAX` other senders have sent since its last message; it then counts as full.
    """

    def __init__(self, limits: QuotaConfig) -> None:
        self._rate = limits.messages_per_sender_per_second
        self._room = (limits.burst - 1) * SECOND
        # instants in microseconds times the rate, so that the time of one message is a whole number; the sender that is
        # silent for longest comes first
        self._full_again: dict[str, int] = {}

    def admits(self, sender: str, now: Instant) -> bool:
        """Return whether the quota has room for one more message of a sender, and if so count it.

        Args:
            sender: canonical bare address.
            now: time of a monotonic clock in microseconds.
        """
        scaled = now * self._rate
        start = max(scaled, self._full_again.pop(sender, 0))
        if len(self._full_again) >= SENDERS_MAX:
            del self._full_again[next(iter(self._full_again))]
        is_admitted = start - scaled <= self._room
        self._full_again[sender] = start + SECOND * is_admitted
        return is_admitted


class Complaints:
    """Decides which log lines about senders to write: one in each pause for each kind and sender.

    Memory and log stay bounded, whatever names senders invent.
    """

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], Instant] = {}  # oldest first

    def is_due(self, kind: str, sender: str, now: Instant) -> bool:
        """Return whether to write a line about this sender now; if so, count it as written.

        Args:
            kind: kind of complaint; one kind does not silence another.
            sender: sender as the stanza states it.
            now: time of a monotonic clock in microseconds.
        """
        key = kind, sender[:100]  # a name may be 64 kB long
        last = self._said.get(key)
        if last is not None and now < last + COMPLAINT_PAUSE:
            return False
        self._said.pop(key, None)
        if len(self._said) >= COMPLAINED_SENDERS_MAX:
            oldest = next(iter(self._said))
            if now < self._said[oldest] + COMPLAINT_PAUSE:
                return False
            del self._said[oldest]
        self._said[key] = now
        return True
