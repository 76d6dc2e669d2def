"""FIPA ACL messages: the value that the pure machines exchange, and the tables of permitted messages.

Source: FIPA SC00037 (communicative acts) and SC00061 (message structure); the market's use of them is the paper's
section 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.fast_dataclass import fast_dataclass
from ramp.model import contents
from ramp.model.communicative_acts import DECLARED, Performative
from ramp.model.instant import Duration
from ramp.model.seal import Role, Seal

__all__ = [
    "ANY_AGE",
    "CONTENT_OF",
    "LANGUAGE",
    "OFFERS",
    "ONTOLOGY",
    "ROLES_OF",
    "SEALED",
    "WIRE_VERSION",
    "Message",
    "Performative",
]

ONTOLOGY: Final = "ComputeMarket"
"""Ontology slot of every message, the original system's name."""

LANGUAGE: Final = "rfql-xml"
"""Content language slot: the XML documents of `schemas/`."""

WIRE_VERSION: Final = 1
"""Version of metadata, documents and seals; every message states it, and other versions are refused."""

CONTENT_OF: Final[dict[Performative, tuple[type, ...]]] = {
    performative: tuple(kind for kind, how in DECLARED.items() if performative in how.performatives)
    for performative in Performative
}
"""Contents that each performative may carry; others are answered with NOT_UNDERSTOOD."""

ROLES_OF: Final[dict[type, frozenset[Role]]] = {kind: how.by for kind, how in DECLARED.items() if how.by}
"""Roles that may send a sealed content; a right key in the wrong role is refused."""

OFFERS: Final = frozenset(kind for kind, how in DECLARED.items() if how.is_offer)
"""Contents that are also sealed if the market wants signed offers; canonical names prevent forged ones."""

SEALED: Final = frozenset(ROLES_OF) - OFFERS
"""Contents that require their sender's seal: they create an obligation, end one, or report money."""

ANY_AGE: Final = frozenset(kind for kind, how in DECLARED.items() if how.any_age)
"""Sealed contents that may be of any age by their reader's clock, because they reveal a wrong clock.

They count only as the answer to an open question. The certificate must be valid at the time they state.
"""


@fast_dataclass(frozen=True, slots=True)
class Message:
    """One ACL message between two parties.

    Attributes:
        performative: the communicative act.
        sender: name of the sending party (bare JID over XMPP).
        receiver: name of the receiving party.
        conversation_id: the request, agreement or query that the message is about.
        content: the typed content.
        reply_with: id for an answer to quote.
        in_reply_to: the id that this message answers.
        reply_by: how long the sender waits for an answer, from the moment of sending; None if it waits for no answer.
        seal: the sender's seal; the host adds it to outgoing messages, and has verified it on incoming ones.
    """

    performative: Performative
    sender: str
    receiver: str
    conversation_id: str
    content: contents.Content
    reply_with: str = ""
    in_reply_to: str = ""
    reply_by: Duration | None = None
    seal: Seal | None = None


@dataclass(frozen=True, slots=True)
class EncodedMessage:
    """A message as it travels; `ramp.rfql.codec` converts it from and to a `Message`.

    Attributes:
        peer: the other party, `user@domain`: the receiver of an outgoing message, or the sender of an incoming one as
            the server states it. Only the signature in the document proves identity.
        body: the document.
        metadata: FIPA slots by name, and the seal.
        thread: conversation id; "" if the peer gave none.
    """

    peer: str
    body: str
    metadata: dict[str, str]
    thread: str
