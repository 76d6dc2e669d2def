"""Persist before send: whatever a party says that binds it, its journal or ledger has before the message leaves."""

from __future__ import annotations

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed, change_key
from ramp.model.contents import OrderState, TransferKind
from ramp.protocol import records as rc
from ramp.protocol.records import CapacityTaken, ChangeConcluded, ChangeProposed, ChangeReceived
from simulation.market.actors import BANK
from simulation.market.market_view import Checker, MarketView


class WrittenBeforeSaid(Checker):
    """Remembers every record of every party, and looks up what a message rests on."""

    name = "written_before_said"

    def __init__(self) -> None:
        self._written: set[tuple[str, type, str]] = set()

    def on_written(self, name: str, record: rc.Record, view: MarketView) -> None:
        """Remember it under its party and subject."""
        self._written.add((name, type(record), _subject_of_record(record)))

    def on_sent(self, message: Message, view: MarketView) -> None:
        """What is said must rest on what is written."""
        if message.sender in view.liars:
            return
        if message.sender == BANK:
            self._check_bank(message, view)
            return
        *kinds, subject = _foundation_of_change(message) or _foundation(message) or ("",)
        for kind in kinds:
            if (message.sender, kind, subject) not in self._written:
                said = type(message.content).__name__
                raise self._violated(
                    f"{message.sender} says {said} of {subject} without having written {kind.__name__}"
                )

    def _check_bank(self, message: Message, view: MarketView) -> None:
        content, ledger = message.content, view.ledger
        match content:
            case c.FundsReserved(order_id=order_id):
                self._check_order(order_id, OrderState.RESERVED, view)
            case c.OrderPosted(order_id=order_id):
                self._check_order(order_id, OrderState.POSTED, view)
            case c.OrderVoided(order_id=order_id) if ledger.order(order_id) is not None:
                self._check_order(order_id, OrderState.VOIDED, view)
            case c.PaymentMade(agreement_id=agreement_id):
                paid = ledger.transfer(agreement_id)
                if paid is None or paid.posted_at is None:
                    raise self._violated(f"the bank says that {agreement_id} is paid, its ledger does not")
            case c.ChangePosted(agreement_id=agreement_id) if content.is_terminal:
                if ledger.transfer(agreement_id, TransferKind.REFUND) is None:
                    raise self._violated(f"the bank says that {agreement_id} is refunded, its ledger does not")

    def _check_order(self, order_id: str, state: OrderState, view: MarketView) -> None:
        order = view.ledger.order(order_id)
        found = order.state.value if order is not None else "unknown"
        if found != state.value:
            raise self._violated(f"the bank says that {order_id} is {state.value}, its ledger says {found}")


def _foundation(message: Message) -> tuple[*tuple[type, ...], str] | None:
    """The kinds and the subject of the records on which a trader's message rests, or None."""
    match message.content:
        case c.Acceptance(offer_id=offer_id):
            return rc.AcceptanceAsked, offer_id
        case c.HoldGranted(offer_id=offer_id):
            return rc.HoldIntended, rc.HoldMade, offer_id
        case c.PaymentOrder(order_id=order_id):
            return rc.FundsAsked, order_id
        case c.Commitment(vote=vote):
            return rc.CommitDecided, vote.order_id
        case c.OrderWithdrawal(order_id=order_id):
            return rc.VoidAsked, order_id
        case c.Confirmed(offer_id=offer_id):
            return rc.AgreementReceived, offer_id
        case c.Settled(offer_id=offer_id):
            return rc.AgreementPaid, offer_id
        case c.SlotMoveHeard(agreement_id=agreement_id):
            return rc.MoveHeard, agreement_id
        case Signed(body=Agreement() as agreement):
            return rc.AgreementReceived, agreement.offer.offer_id
    return None


def _foundation_of_change(message: Message) -> tuple[type, str] | None:
    match message.content:
        case c.PaymentOrder(lines=(c.OrderLine(agreement_id=key, amended=(_, _)), *_)):
            return ChangeProposed, key
        case c.ChangeAgreed(agreement_id=agreement_id, number=number) if message.performative is Performative.CONFIRM:
            return ChangeProposed, change_key(agreement_id, number)
        case c.OrderWithdrawal(order_id=order_id) if order_id == message.conversation_id:
            return ChangeProposed, message.reply_with
        case Signed(body=ContractChange() as change):
            if message.sender == change.user:
                return ChangeProposed, change.key
            if change.is_failure:
                return None
            kind = ChangeReceived if change.is_terminal else CapacityTaken
            return kind, change_key(change.offer_id, change.number)
    return None


def _subject_of_record(record: rc.Record) -> str:
    match record:
        case rc.AcceptanceAsked(offer=offer) | rc.HoldIntended(offer=offer):
            return offer.offer_id
        case rc.FundsAsked() | rc.CommitDecided() | rc.VoidAsked() | rc.OrderClosed():
            return record.order_id
        case rc.FailureTold():
            return record.failure.body.agreement_id
        case rc.MoveHeard(word=word):
            return word.agreement_id
        case ChangeConcluded():
            return record.outcome.agreement_id
        case ChangeProposed():
            return record.signed.change.key
        case ChangeReceived() | CapacityTaken():
            return change_key(record.offer_id, record.number)
        case rc.SlotReleased() | rc.UnitSettled():
            return record.agreement_id
        case rc.RequestStarted() | rc.RequestConcluded() | rc.JobOrdered() | rc.JobHeard():
            return record.request_id
    return record.offer_id
