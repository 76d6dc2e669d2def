"""An offer is judged once: what a user has rejected it does not accept."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.contents import Acceptance, Rejection
from simulation.market.market_view import Checker, MarketView


class JudgedOnce(Checker):
    """Remembers every REJECT_PROPOSAL."""

    name = "judged_once"

    def __init__(self) -> None:
        self._rejected: set[str] = set()

    def on_sent(self, message: Message, view: MarketView) -> None:
        """The resource has forgotten what was rejected, and may have sold the slot."""
        content = message.content
        if message.sender in view.liars or message.receiver in view.liars:  # a liar may make one offer twice
            return
        if isinstance(content, Rejection):
            self._rejected.add(content.offer_id)
        elif isinstance(content, Acceptance) and content.offer_id in self._rejected:
            raise self._violated(f"{message.sender} accepts {content.offer_id} after rejecting it")
