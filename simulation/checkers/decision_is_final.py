"""A decision is final: a user that has confirmed an offer never treats it as undecided again (presumed abort)."""

from __future__ import annotations

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Signed
from ramp.model.contents import HoldCancelled
from simulation.checkers.observation import Checker, MarketView


class DecisionIsFinal(Checker):
    """Remembers every CONFIRM of a user."""

    name = "decision_is_final"

    def __init__(self) -> None:
        self._confirmed: dict[str, str] = {}

    def on_sent(self, message: Message, view: MarketView) -> None:
        """After CONFIRM only a signed cancellation may follow, and only one agreement per offer."""
        content = message.content
        if message.performative is Performative.CONFIRM and isinstance(content, Signed):
            assert isinstance(content.body, Agreement)
            offer_id, agreement_id = content.body.offer.offer_id, content.body.agreement_id
            known = self._confirmed.setdefault(offer_id, agreement_id)
            if known != agreement_id:
                raise self._violated(f"{message.sender} confirms {offer_id} as {agreement_id} after {known}")
        cancels = message.performative is Performative.CANCEL
        if cancels and isinstance(content, HoldCancelled) and content.offer_id in self._confirmed:
            raise self._violated(f"{message.sender} cancels the hold of {content.offer_id} after confirming it")
