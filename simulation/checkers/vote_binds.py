"""A vote binds: who has agreed may not fail before the hold's deadline unless told to (two-phase commit)."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.agreement import Cancellation, Signed
from ramp.model.contents import Failed, HoldCancelled, HoldGranted, HoldRefused
from ramp.model.instant import Instant
from ramp.model.offer import RefusalCode
from simulation.checkers.observation import Checker, MarketView

FORGETFUL = (RefusalCode.UNKNOWN_OFFER, RefusalCode.HOLD_EXPIRED, RefusalCode.SLOT_TAKEN, RefusalCode.CANCELLED)


class VoteBinds(Checker):
    """Remembers every AGREE and every cancellation that reached its resource."""

    name = "vote_binds"

    def __init__(self) -> None:
        self._promised: dict[str, Instant] = {}
        self._freed: set[str] = set()

    def on_delivered(self, message: Message, view: MarketView) -> None:
        """A cancellation frees the resource from its promise."""
        content = message.content
        if isinstance(content, HoldCancelled):
            self._freed.add(content.offer_id)
        elif isinstance(content, Signed) and isinstance(content.body, Cancellation):
            self._freed.add(content.body.offer_id)

    def on_sent(self, message: Message, view: MarketView) -> None:
        """A promise is given, or broken."""
        content = message.content
        if message.sender in view.liars:
            return
        if isinstance(content, HoldGranted):
            self._promised.setdefault(content.offer_id, view.time_of(message.sender) + content.hold_for)
        elif isinstance(content, Failed | HoldRefused) and content.code in FORGETFUL:
            until = self._promised.get(content.offer_id)
            now = view.time_of(message.sender)
            if until is not None and now < until and content.offer_id not in self._freed:
                raise self._violated(
                    f"{message.sender} agreed to {content.offer_id} until {until}, "
                    f"but says {content.code.value} at {now}"
                )
