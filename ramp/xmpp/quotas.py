"""How many messages a second an agent takes from one sender.

Asked before anything of a message is unpacked, parsed or verified: a verification costs a third of a millisecond,
this a millionth of a second.
"""

from __future__ import annotations

from ramp.model.instant import SECOND, Instant
from ramp.runtime.config import QuotaConfig

SENDERS_MAX = 20_000
"""Senders whose use is remembered, about 4 MB; forgotten are those that were silent for longest."""


class SenderQuota:
    """A token bucket for every sender (as GCRA, ITU-T I.371: one number a sender says when its bucket is full again).

    A sender may send `burst` messages at once and `messages_per_sender_per_second` in the long run. The state of a
    bucket is lost only if half of `senders_max` other senders have sent since its last message; it is then full.

    Args:
        limits: rate and burst.
        senders_max: how many senders are remembered at most.
    """

    def __init__(self, limits: QuotaConfig, senders_max: int = SENDERS_MAX) -> None:
        self._rate = limits.messages_per_sender_per_second
        self._room = (limits.burst - 1) * SECOND
        self._generation_max = max(1, senders_max // 2)
        # instants in microseconds times the rate, so that the time of one message is a whole number
        self._full_again: dict[str, int] = {}
        self._earlier: dict[str, int] = {}

    def __len__(self) -> int:
        """How many senders are remembered."""
        return len(self._full_again) + len(self._earlier)

    def admits(self, sender: str, now: Instant) -> bool:
        """Whether one more message of a sender is taken; if so it counts.

        Args:
            sender: canonical bare address.
            now: of a clock that never goes back, in microseconds.
        """
        scaled = now * self._rate
        known = self._full_again.get(sender)
        if known is None:
            known = self._earlier.pop(sender, 0)
            if len(self._full_again) >= self._generation_max:
                self._earlier, self._full_again = self._full_again, {}
        start = max(scaled, known)
        if start - scaled > self._room:
            self._full_again[sender] = start
            return False
        self._full_again[sender] = start + SECOND
        return True
