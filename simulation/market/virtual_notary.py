"""The simulator's notary: signatures and seals without keys.

It says of a document what the real one says after verifying: who signed, in which order, in which role. A seal's text
remembers the message that it was made for, so a seal moved to another message is detected as with a real one.
Nobody can seal in another's name, for that takes the other's notary.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ramp.errors import SignatureInvalid
from ramp.model.acl import ANY_AGE, SEALED, Message
from ramp.model.agreement import Agreement, Signed
from ramp.model.contents import (
    ChangeDone,
    Commitment,
    Content,
    Proposal,
    Settled,
)
from ramp.model.instant import Instant
from ramp.model.seal import SEAL_AGE_MAX, Role, Seal

EXAMINED: Final = SEALED | {Commitment, Settled, Signed, ChangeDone}
"""Contents that are sealed, or that pass on what is; all others are delivered as they are."""


class SealedText(str):
    """The text of a seal that knows its message, and who has sealed it when and in which role."""

    __slots__ = ("message", "said")
    message: Message
    said: tuple[str, Role, str, str, Instant]


class VirtualNotary:
    """Signs by writing the party's name behind the earlier signers."""

    def __init__(self, name: str, role: Role) -> None:
        self._name = name
        self._role = role

    def sign(self, signed: Signed, now: Instant) -> Signed:
        """Add this party as the outermost signer."""
        return replace(signed, signers=(*signed.signers, self._name))

    def seal(self, message: Message, now: Instant) -> Message:
        """Seal a message of this party's."""
        text = SealedText(f"sealed by {self._name}")
        text.message = message
        text.said = self._name, self._role, message.receiver, message.conversation_id, now
        return replace(message, seal=Seal(*text.said, text))

    def open(self, text: str, now: Instant) -> Message:
        """Read a sealed message that was kept.

        Raises:
            SignatureInvalid: if it is no text of a seal.
        """
        if not isinstance(text, SealedText):
            raise SignatureInvalid("the message has no valid seal")
        return text.message

    def verify(self, document: str, now: Instant) -> Signed:
        """Documents never become text in the simulator, so there is nothing to verify.

        Raises:
            SignatureInvalid: always.
        """
        raise SignatureInvalid("the simulator passes typed documents, not text")


def is_admitted(message: Message, now: Instant, sealed: frozenset[type] = SEALED) -> bool:
    """Return whether a message may be delivered: it and the messages passed on in it bear the seals that they must.

    A seal of its own must not be too old by the receiver's clock. The shell of the agents verifies signatures and drops
    the rest.
    """
    content = message.content
    if type(content) in sealed:
        if not _is_sealed(content, message.seal, message):
            return False
        if type(content) in ANY_AGE:
            return True
        if message.seal is not None and message.seal.signed_at < now - SEAL_AGE_MAX:
            return False
    match content:
        case Commitment():
            return _is_sealed(content.vote, content.vote_seal) and _has_own_price(content.agreement)
        case Settled():
            return _is_sealed(content.payment, content.payment_seal) and _has_own_price(content.agreement)
        case Signed():
            return _has_own_price(content)
        case ChangeDone():
            return _is_sealed(content.posted, content.posted_seal)
    return True


def _has_own_price(signed: Signed) -> bool:
    """Return whether the offer that sets an agreement's price, where there is one, is what its resource has sealed."""
    body = signed.body
    price = body.price if isinstance(body, Agreement) else None
    if price is None or price.runner_up is None:
        return True
    if price.seal is None or not isinstance(price.seal.text, SealedText):
        return False
    proposal = price.seal.text.message.content
    return isinstance(proposal, Proposal) and price.runner_up in proposal.offers and _is_sealed(proposal, price.seal)


def _slots(message: Message) -> tuple[object, ...]:
    return (
        message.performative,
        message.sender,
        message.receiver,
        message.conversation_id,
        message.reply_with,
        message.in_reply_to,
        message.reply_by,
    )


def _is_sealed(content: Content, seal: Seal | None, message: Message | None = None) -> bool:
    if seal is None or not isinstance(seal.text, SealedText):
        return False
    original = seal.text.message
    said = seal.signer, seal.role, seal.receiver, seal.conversation_id, seal.signed_at
    if seal.signer != original.sender or said != seal.text.said:
        return False
    if message is not None and _slots(message) != _slots(original):
        return False
    return original.content is content or original.content == content
