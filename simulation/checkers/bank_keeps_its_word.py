"""The bank's word on an order is final: once reported, posted, void or refused stays so."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.agreement import TERMINAL, change_key
from ramp.model.contents import (
    ChangePosted,
    ChangeRefused,
    FundsReserved,
    OrderPosted,
    OrderRefused,
    OrderState,
    OrderVoided,
    PaymentMade,
    PaymentRefused,
)
from simulation.market.actors import BANK
from simulation.market.market_view import Checker, MarketView


class BankKeepsItsWord(Checker):
    """Remembers what the bank has told whom of which order or agreement."""

    name = "bank_keeps_its_word"

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], str] = {}

    def on_sent(self, message: Message, view: MarketView) -> None:
        """Compare with the last word."""
        content, receiver = message.content, message.receiver
        if message.sender != BANK:
            return
        match content:
            case FundsReserved(order_id=order_id):
                self._say(order_id, receiver, "reserved")
            case OrderPosted(order_id=order_id):
                self._say(order_id, receiver, "posted")
            case OrderVoided(order_id=order_id):
                self._say(order_id, receiver, "void")
            case OrderRefused(order_id=order_id):
                order = view.ledger.order(order_id)
                if order is not None and order.user == receiver and order.state is OrderState.REFUSED:
                    self._say(order_id, receiver, "void")
            case PaymentMade(agreement_id=agreement_id):
                self._say(agreement_id, receiver, "posted")
            case ChangePosted(agreement_id=agreement_id, number=number) if number != TERMINAL:
                self._say(change_key(agreement_id, number), receiver, "posted")
            case ChangeRefused(agreement_id=agreement_id, number=number) if number and receiver not in view.liars:
                self._say(change_key(agreement_id, number), receiver, "void")
            case PaymentRefused(agreement_id=agreement_id) if receiver not in view.liars:
                self._say(agreement_id, receiver, "void")

    def _say(self, subject: str, receiver: str, word: str) -> None:
        before = self._told.get((subject, receiver), "reserved")
        if before not in ("reserved", word):
            raise self._violated(f"{subject} is {word}, the bank tells {receiver}, which had heard that it is {before}")
        self._told[subject, receiver] = word
