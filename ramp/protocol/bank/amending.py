"""The bank's part in amendments: posting what both have signed, and voiding what the buyer withdraws."""

from __future__ import annotations

from collections.abc import Callable

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Amendment, Signed
from ramp.model.contents import AmendmentPosted, AmendmentRefused, AmendmentWithdrawal, Unverified
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.protocol.amending.asking import AmendmentDecided, PostAmendment, VoidAmendment
from ramp.protocol.belief import sealed_lately
from ramp.protocol.timing import Timing


def is_about(message: Message) -> bool:
    """Whether a message is about an amendment."""
    content = message.content
    if isinstance(content, Unverified):
        return content.kind == "amendment"
    return isinstance(content, AmendmentWithdrawal) or (
        isinstance(content, Signed) and isinstance(content.body, Amendment)
    )


def asked(
    message: Message, bank: str, now: Instant, timing: Timing, wait: Callable[[Message], str]
) -> PostAmendment | VoidAmendment:
    """What the ledger is asked when a resource brings an amendment, or its buyer gives it up.

    Whoever else brings one, or one that lacks a signature, is answered NOT_UNDERSTOOD: nothing is decided by it, and
    its resource brings it again.

    Args:
        message: as it came.
        bank: the bank's name.
        now: the present.
        timing: the protocol's limits.
        wait: keeps the message until the ledger has answered, and names the question.

    Raises:
        RemoteProtocolError: if an amendment is not countersigned by its sender, or names another bank; if a withdrawal
            is not its sender's own word, said lately.
    """
    content = message.content
    if isinstance(content, AmendmentWithdrawal):
        seal = sealed_lately(message, Role.USER, now, timing)
        return VoidAmendment(wait(message), content.agreement_id, content.number, message.sender, seal.text)
    if isinstance(content, Unverified):
        raise RemoteProtocolError(f"the amendment does not verify: {content.code}: {content.detail}")
    assert isinstance(content, Signed)
    assert isinstance(content.body, Amendment)
    body = content.body
    if content.signers != (body.user, body.resource) or message.sender != body.resource:
        raise RemoteProtocolError("the amendment is not signed by its user and countersigned by its sender")
    if body.bank != bank:
        raise RemoteProtocolError(f"the amendment names {body.bank} as its bank")
    return PostAmendment(wait(message), body, content.document)


def decided(found: AmendmentDecided, message: Message) -> tuple[Performative, AmendmentPosted | AmendmentRefused]:
    """What whoever has asked is told."""
    if found.code:
        refused = AmendmentRefused(found.agreement_id, found.number, found.code, found.detail)
        return Performative.REFUSE, refused
    posted = AmendmentPosted(found.agreement_id, found.number, found.transfer_id, found.refund)
    brought = isinstance(message.content, Signed)
    return Performative.AGREE if brought else Performative.INFORM, posted
