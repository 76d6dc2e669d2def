"""The bank's part in contract changes: posting what is signed, voiding what the buyer withdraws, and its answers.

A change needs both signatures. Before the slot begins, the buyer's suffices to end its agreement; a seller that has
failed ends it by its own at any time. An addition to a slot is a line of an order, like an agreement: the bank posts
the whole order with its last line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ramp.errors import RemoteProtocolError
from ramp.ledger.entry import Grounds, Order
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import TERMINAL, ContractChange, Signed
from ramp.model.instant import Instant
from ramp.model.money import credits_text
from ramp.model.seal import Role
from ramp.model.sizes.amended import order_line
from ramp.protocol import effects as fx
from ramp.protocol.belief import sealed_lately
from ramp.protocol.events import ChangeDecided
from ramp.protocol.progress import KeeperOrdered
from ramp.protocol.timing import Timing

UNKNOWN_ORDER: Final = "unknown_order"
"""Code of an addition without an order that pays for it."""

BAD_TERMS: Final = "bad_terms"
"""Code of a void order whose signed documents differ from it."""

BAD_SIGNATURE: Final = "bad_signature"
"""Code of a document that lacks a signature."""


def is_about(message: Message) -> bool:
    """Return whether a message asks for a change."""
    content = message.content
    if isinstance(content, c.Unverified):
        return content.kind != "agreement"
    return isinstance(content, c.ChangeWithdrawal | c.RefundOrder) or (
        isinstance(content, Signed) and isinstance(content.body, ContractChange)
    )


def asked(
    message: Message,
    bank: str,
    now: Instant,
    timing: Timing,
    orders: Mapping[str, Order],
) -> fx.Effect:
    """Return the question to the ledger about a change, or the answer if none is needed.

    A change of size from another sender, or without a signature, is answered NOT_UNDERSTOOD and decides nothing; its
    resource sends it again. A cancellation is refused then, and its buyer may ask again.

    Raises:
        RemoteProtocolError: if a change of size is not countersigned by its sender, or names another bank; if a
            withdrawal has no recent seal of its sender, or the keeper's order none of the keeper.
    """
    content = message.content
    if isinstance(content, c.RefundOrder):
        sealed_lately(message, Role.KEEPER, now, timing)
        return fx.CarryOut(message)
    if isinstance(content, c.ChangeWithdrawal):
        sealed_lately(message, Role.USER, now, timing)
        return fx.CarryOut(message)
    if isinstance(content, c.Unverified):
        if content.kind == "cancellation":
            return _refuse(message, content.reference, TERMINAL, content.code, content.detail)
        raise RemoteProtocolError(f"invalid {content.kind}: {content.code}: {content.detail}")
    assert isinstance(content, Signed)
    body = content.change
    both = (body.user, body.resource)
    if body.is_failure:  # its buyer may pass it on
        grounds, is_signed = Grounds.SELLER, content.signers == both[1:] and message.sender in both
    elif body.is_terminal and content.signers == both[:1]:
        grounds, is_signed = Grounds.BUYER, message.sender == body.user
    else:
        grounds, is_signed = Grounds.BOTH, content.signers == both and message.sender == body.resource
    if body.is_terminal and not is_signed:
        detail = "the cancellation must be signed or countersigned by its sender"
        return _refuse(message, body.agreement_id, TERMINAL, BAD_SIGNATURE, detail)
    if not is_signed:
        raise RemoteProtocolError("the amendment must be signed by its user and countersigned by its sender")
    if body.bank != bank:
        raise RemoteProtocolError(f"the change names another bank: {body.bank}")
    if body.grows:
        return _paid_by_order(message, body, orders.get(body.order_id))
    return fx.PostChange(message, grounds)


def _paid_by_order(message: Message, body: ContractChange, order: Order | None) -> fx.Effect:
    if order is None:
        return fx.LookUpAgreement(message, body.key)
    if (body.key, message.sender) not in {(line.agreement_id, line.resource) for line in order.lines}:
        detail = "the amendment is not in its order"
        return _refuse(message, body.agreement_id, body.number, UNKNOWN_ORDER, detail)
    if (order.user, order.valid_until) != (body.user, body.valid_until) or order_line(body) not in order.lines:
        return fx.VoidOrder(message, order, BAD_TERMS, "the amendment differs from its order")
    return fx.CountersignLine(message, body.key, body.effective_at)


def posted(found: ChangeDecided, bank: str) -> list[fx.Effect]:
    """Return the answers about a posted change: to the party that asked, and about an end also to the others."""
    message = found.message
    order = message.content if isinstance(message.content, c.RefundOrder) else None
    change, ordered_for = found.change, "" if order is None else order.reason
    told = c.ChangePosted(change.agreement_id, change.number, change.transfer_id, change.amount, ordered_for)
    withdrawn = isinstance(message.content, c.ChangeWithdrawal)
    effects: list[fx.Effect] = [fx.reply(message, Performative.INFORM if withdrawn else Performative.AGREE, told)]
    if told.is_terminal:
        others = [name for name in (found.user, found.resource) if name != message.sender]
        effects += [fx.Send(Message(Performative.INFORM, bank, name, message.conversation_id, told)) for name in others]
    if order is not None:
        what = f"{credits_text(told.refund)} credits of {order.agreement_id} to {found.user} ({order.reason})"
        effects.append(fx.Report(KeeperOrdered(message.sender, "refund", what)))
    return effects


def _refuse(message: Message, agreement_id: str, number: int, code: str, detail: str) -> fx.Send:
    return fx.reply(message, Performative.REFUSE, c.ChangeRefused(agreement_id, number, code, detail))
