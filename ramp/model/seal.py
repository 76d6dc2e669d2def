"""Seals: a detached signature over a message exactly as it was sent, and the roles in which parties sign.

XML signatures are for documents that people keep (`ramp.model.agreement`); a seal proves every other message that
creates an obligation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model.instant import MINUTE, Duration, Instant

SEAL_AGE_MAX: Final[Duration] = 10 * MINUTE
"""Maximum age of a seal: five minutes between the clocks, five for delivery."""


class Role(StrEnum):
    """The certified role of a party; a right key in the wrong role is refused.

    KEEPER is the paper's administrator of the Banking Agent (section 6.3): deposits, and the view of all trading.
    ENROLMENT is the office that answers requests for certificates and hands out revocation lists.
    """

    USER = "user"
    RESOURCE = "resource"
    BANK = "bank"
    DIRECTORY = "directory"
    KEEPER = "keeper"
    ENROLMENT = "enrolment"


BY_USER: Final = frozenset({Role.USER})
BY_RESOURCE: Final = frozenset({Role.RESOURCE})
BY_TRADER: Final = BY_USER | BY_RESOURCE
BY_BANK: Final = frozenset({Role.BANK})
BY_DIRECTORY: Final = frozenset({Role.DIRECTORY})
BY_KEEPER: Final = frozenset({Role.KEEPER})
BY_ENROLMENT: Final = frozenset({Role.ENROLMENT})
"""The roles that may send a content."""


@dataclass(frozen=True, slots=True)
class Seal:
    """Proof that a message is its sender's own, as the host's notary has verified it.

    The seal covers purpose (performative and kind of document), sender, receiver, conversation, the message it answers,
    the instant, and the document; so it fits no other message.

    Attributes:
        signer: the certified name, equal to the message's sender.
        role: the certified role.
        receiver: the addressee.
        conversation_id: the conversation.
        signed_at: the signer's clock.
        text: the sealed message as text, to be kept and passed on; `Notary.open` reads it again.
    """

    signer: str
    role: Role
    receiver: str
    conversation_id: str
    signed_at: Instant
    text: str
