"""Nothing is paid but on an agreement with both signatures that its resource has brought (paper section 5.1.2)."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.agreement import TERMINAL, Agreement, Signed, change_key
from ramp.model.contents import ChangePosted, OrderPosted, PaymentMade
from simulation.market.actors import BANK
from simulation.market.market_view import Checker, MarketView


class BothSignatures(Checker):
    """Remembers which agreements have reached the bank with both signatures."""

    name = "both_signatures"

    def __init__(self) -> None:
        self._brought: set[str] = set()

    def on_delivered(self, message: Message, view: MarketView) -> None:
        """The resource brings the agreement."""
        content = message.content
        if message.receiver == BANK and isinstance(content, Signed):
            body = content.body
            if content.signers == (body.user, body.resource) and message.sender == body.resource:
                self._brought.add(body.agreement_id if isinstance(body, Agreement) else body.key)

    def on_sent(self, message: Message, view: MarketView) -> None:
        """The bank says what it has paid."""
        content = message.content
        if message.sender != BANK:
            return
        match content:
            case OrderPosted(transfers=payments):
                posted = [payment.agreement_id for payment in payments]
            case PaymentMade(agreement_id=agreement_id):
                posted = [agreement_id]
            case ChangePosted(agreement_id=agreement_id, number=number) if number != TERMINAL:
                posted = [change_key(agreement_id, number)]
            case _:
                return
        for key in posted:
            if key not in self._brought:
                raise self._violated(f"{key} was paid, but never came with both signatures")
