"""A decision is final: a user that has confirmed an offer never treats it as undecided again (presumed abort)."""

from __future__ import annotations

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement
from ramp.model.contents import Commitment, HoldCancelled, OrderVoided
from simulation.market.market_view import Checker, MarketView


class DecisionIsFinal(Checker):
    """Remembers every CONFIRM of a user, and every order that the bank has told it to be void."""

    name = "decision_is_final"

    def __init__(self) -> None:
        self._confirmed: dict[tuple[str, str], Agreement] = {}
        self._voided: set[str] = set()

    def on_delivered(self, message: Message, view: MarketView) -> None:
        """The bank's word that an order is void frees its user from the decision."""
        if isinstance(message.content, OrderVoided):
            self._voided.add(message.content.order_id)

    def on_sent(self, message: Message, view: MarketView) -> None:
        """After CONFIRM only the bank or a cancellation ends it, and there is only one agreement per offer."""
        content = message.content
        if message.sender in view.liars:
            return
        if message.performative is Performative.CONFIRM and isinstance(content, Commitment):
            body = content.agreement.body
            assert isinstance(body, Agreement)
            known = self._confirmed.setdefault((message.sender, body.offer.offer_id), body)
            if known.agreement_id != body.agreement_id:
                raise self._violated(
                    f"{message.sender} confirms {body.offer.offer_id} as {body.agreement_id} after {known.agreement_id}"
                )
        to_liar = message.receiver in view.liars  # a liar that invents votes hears that no hold is wanted
        if message.performative is Performative.CANCEL and isinstance(content, HoldCancelled) and not to_liar:
            confirmed = self._confirmed.get((message.sender, content.offer_id))
            if confirmed is not None and confirmed.order_id not in self._voided:
                raise self._violated(f"{message.sender} cancels the hold of {content.offer_id} after confirming it")
