"""The bank's answers about orders in the ledger."""

from __future__ import annotations

from ramp.model.acl import Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.contents import (
    ChangePosted,
    ChangeRefused,
    Content,
    FundsReserved,
    OrderLine,
    OrderPosted,
    OrderRefused,
    OrderState,
    OrderVoided,
    PaymentMade,
    PaymentQuery,
    PaymentRefused,
    Unverified,
)
from ramp.model.instant import Instant
from ramp.protocol.events import OrderStanding


def order_answer(order: OrderStanding, now: Instant) -> tuple[Performative, Content]:
    """Return the answer to the buyer about an order."""
    if order.state is OrderState.RESERVED:
        left = order.valid_until - now
        vote = FundsReserved(order.order_id, order.user, order.lines, left, order.valid_until, now)
        return Performative.AGREE, vote
    if order.state is OrderState.POSTED:
        return Performative.INFORM, OrderPosted(order.order_id, order.transfers)
    if order.state is OrderState.REFUSED:
        return Performative.REFUSE, OrderRefused(order.order_id, order.code, order.detail)
    return Performative.INFORM, OrderVoided(order.order_id, order.code, order.detail, order.awaited)


def agreement_answer(order: OrderStanding, agreement_id: str) -> tuple[Performative, Content] | None:
    """Return the answer about one agreement of an order; None while other agreements are awaited."""
    refund = next((each for each in order.refunds if each.agreement_id == agreement_id), None)
    if refund is not None:
        return Performative.AGREE, refund
    line = next((each for each in order.lines if each.agreement_id == agreement_id), None)
    if order.state is OrderState.POSTED:
        made = next(each for each in order.transfers if each.agreement_id == agreement_id)
        return Performative.AGREE, _paid(line, made)
    if order.state is OrderState.RESERVED:
        return None
    return Performative.REFUSE, _unpaid(line, PaymentRefused(agreement_id, order.code, order.detail))


def _paid(line: OrderLine | None, made: PaymentMade) -> PaymentMade | ChangePosted:
    named = None if line is None else line.amended
    return made if named is None else ChangePosted(*named, made.transfer_id, made.amount)


def _unpaid(line: OrderLine | None, refused: PaymentRefused) -> PaymentRefused | ChangeRefused:
    named = None if line is None else line.amended
    return refused if named is None else ChangeRefused(*named, refused.code, refused.detail)


def announcements(order: OrderStanding) -> list[tuple[str, Performative, Content]]:
    """Return the unrequested messages after an order was posted or voided."""
    told: list[tuple[str, Performative, Content]] = []
    if order.state is OrderState.VOIDED:
        told.append(
            (order.user, Performative.INFORM, OrderVoided(order.order_id, order.code, order.detail, order.awaited))
        )
        for line in order.lines:
            refused = _unpaid(line, PaymentRefused(line.agreement_id, order.code, order.detail))
            how = Performative.INFORM if isinstance(refused, PaymentRefused) else Performative.REFUSE
            told.append((line.resource, how, refused))
    for line, made in zip(order.lines, order.transfers, strict=False):
        told.append((line.resource, Performative.AGREE, _paid(line, made)))
    return told


def agreement_of(content: Content) -> str:
    """Return the agreement id that a resource or user asks about."""
    match content:
        case Signed(body=ContractChange() as change):
            return change.key
        case Signed(body=body):
            return body.agreement_id
        case PaymentQuery(agreement_id):
            return agreement_id
        case Unverified(reference=reference):
            return reference
    raise AssertionError(f"{type(content).__name__} does not ask about an agreement")
