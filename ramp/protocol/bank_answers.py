"""What the bank says of an order as the ledger has it."""

from __future__ import annotations

from ramp.model.acl import Performative
from ramp.model.agreement import Signed
from ramp.model.contents import (
    Content,
    FundsReserved,
    OrderPosted,
    OrderRefused,
    OrderVoided,
    PaymentQuery,
    Unverified,
)
from ramp.model.instant import Instant
from ramp.protocol.events import OrderFate, OrderStanding


def order_answer(order: OrderStanding, now: Instant) -> tuple[Performative, Content]:
    """What the buyer is told of an order as it stands."""
    if order.fate is OrderFate.RESERVED:
        left = order.valid_until - now
        vote = FundsReserved(order.order_id, order.user, order.lines, left, order.valid_until, now)
        return Performative.AGREE, vote
    if order.fate is OrderFate.POSTED:
        return Performative.INFORM, OrderPosted(order.order_id, order.transfers)
    if order.fate is OrderFate.REFUSED:
        return Performative.REFUSE, OrderRefused(order.order_id, order.code, order.detail)
    return Performative.INFORM, OrderVoided(order.order_id, order.code, order.detail)


def agreement_of(content: Content) -> str:
    """The agreement that a resource or user asks about."""
    match content:
        case Signed(body=body):
            return body.agreement_id
        case PaymentQuery(agreement_id):
            return agreement_id
        case Unverified(reference=reference):
            return reference
    raise AssertionError(f"{type(content).__name__} asks about no agreement")
