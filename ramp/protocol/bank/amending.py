"""The bank's part in amendments: posting what both parties signed, and voiding what the buyer withdraws.

An addition to a slot is a line of an order, like an agreement: it needs both signatures, and the bank posts the whole
order with its last line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.contents import ChangePosted, ChangeRefused, ChangeWithdrawal, Unverified
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.model.sizes.amended import order_line
from ramp.protocol.amending.asking import AmendmentDecided, PostAmendment, VoidAmendment
from ramp.protocol.belief import sealed_lately
from ramp.protocol.effects import CountersignLine, LookUpAgreement, Send, VoidOrder, reply
from ramp.protocol.events import OrderStanding
from ramp.protocol.timing import Timing

UNKNOWN_ORDER: Final = "unknown_order"
"""Code of an addition without an order that pays for it."""

BAD_TERMS: Final = "bad_terms"
"""Code of a void order whose signed documents differ from it."""


def is_about(message: Message) -> bool:
    """Return whether a message is about an amendment."""
    content = message.content
    if isinstance(content, Unverified):
        return content.kind == "amendment"
    return isinstance(content, ChangeWithdrawal) or (
        isinstance(content, Signed) and isinstance(content.body, ContractChange) and not content.body.is_terminal
    )


def asked(
    message: Message,
    bank: str,
    now: Instant,
    timing: Timing,
    wait: Callable[[Message], str],
    orders: Mapping[str, OrderStanding],
) -> PostAmendment | VoidAmendment | CountersignLine | VoidOrder | LookUpAgreement | Send:
    """Return the question to the ledger when a resource sends an amendment, or its buyer withdraws it.

    An amendment from another sender, or without a signature, is answered NOT_UNDERSTOOD and decides nothing; its
    resource sends it again.

    Args:
        message: as received.
        bank: the bank's name.
        now: the present.
        timing: the protocol's limits.
        wait: keeps the message until the ledger answers, and names the question.
        orders: the open orders by id.

    Returns:
        The question, or the answer if none is needed.

    Raises:
        RemoteProtocolError: if an amendment is not countersigned by its sender, or names another bank; if a withdrawal
            has no recent seal of its sender.
    """
    content = message.content
    if isinstance(content, ChangeWithdrawal):
        seal = sealed_lately(message, Role.USER, now, timing)
        return VoidAmendment(wait(message), content.agreement_id, content.number, message.sender, seal.text)
    if isinstance(content, Unverified):
        raise RemoteProtocolError(f"invalid amendment: {content.code}: {content.detail}")
    assert isinstance(content, Signed)
    assert isinstance(content.body, ContractChange)
    body = content.body
    if content.signers != (body.user, body.resource) or message.sender != body.resource:
        raise RemoteProtocolError("the amendment must be signed by its user and countersigned by its sender")
    if body.bank != bank:
        raise RemoteProtocolError(f"the amendment names another bank: {body.bank}")
    if body.grows:
        return _paid_by_order(message, content, body, wait, orders.get(body.order_id))
    return PostAmendment(wait(message), body, content.document)


def _paid_by_order(
    message: Message,
    signed: Signed,
    body: ContractChange,
    wait: Callable[[Message], str],
    order: OrderStanding | None,
) -> CountersignLine | VoidOrder | LookUpAgreement | Send:
    if order is None:
        return LookUpAgreement(wait(message), body.key)
    if (body.key, message.sender) not in {(line.agreement_id, line.resource) for line in order.lines}:
        unknown = ChangeRefused(body.agreement_id, body.number, UNKNOWN_ORDER, "the amendment is not in its order")
        return reply(message, Performative.REFUSE, unknown)
    if (order.user, order.valid_until) != (body.user, body.valid_until) or order_line(body) not in order.lines:
        detail = "the amendment differs from its order"
        call_id = wait(message)
        return VoidOrder(call_id, order.order_id, order.user, order.valid_until, BAD_TERMS, detail, signed.document)
    return CountersignLine(wait(message), body.key, body.effective_at, signed.document)


def decided(found: AmendmentDecided, message: Message) -> tuple[Performative, ChangePosted | ChangeRefused]:
    """Return the answer about a decided amendment."""
    if found.code:
        refused = ChangeRefused(found.agreement_id, found.number, found.code, found.detail)
        return Performative.REFUSE, refused
    posted = ChangePosted(found.agreement_id, found.number, found.transfer_id, -found.refund)
    brought = isinstance(message.content, Signed)
    return Performative.AGREE if brought else Performative.INFORM, posted
