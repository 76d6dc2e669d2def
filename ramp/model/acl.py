"""FIPA ACL messages: the value that the pure machines exchange, and the tables of what may be said.

Source: FIPA SC00037 (communicative acts) and SC00061 (message structure); the market's use of them is the paper's
section 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
"""Version of metadata, documents and seals; every message states it, and one of another version is refused."""

CONTENT_OF: Final[dict[Performative, tuple[type, ...]]] = {
    performative: tuple(kind for kind, how in DECLARED.items() if performative in how.performatives)
    for performative in Performative
}
"""Which contents each performative may carry; anything else is answered NOT_UNDERSTOOD."""

ROLES_OF: Final[dict[type, frozenset[Role]]] = {kind: how.by for kind, how in DECLARED.items() if how.by}
"""In which role a sealed content may be said; a right key in the wrong role is refused."""

OFFERS: Final = frozenset(kind for kind, how in DECLARED.items() if how.is_offer)
"""Contents that are sealed as well where the market wants signed offers; canonical names stop their forging."""

SEALED: Final = frozenset(ROLES_OF) - OFFERS
"""Contents that are believed for their sender's seal only: what creates an obligation, ends one, or tells of money."""

ANY_AGE: Final = frozenset(kind for kind, how in DECLARED.items() if how.any_age)
"""Sealed contents that may be of any age by their reader's clock: they are what a clock that is wrong is known by.

They are believed as the answer to a question that is open only. The certificate must hold at the time they state.
"""


@dataclass(frozen=True, slots=True)
class Message:
    """One ACL message between two parties.

    Attributes:
        performative: the communicative act.
        sender: name of the sending party (bare JID over XMPP).
        receiver: name of the receiving party.
        conversation_id: the request, agreement or query that the message is about.
        content: what it says.
        reply_with: what an answer should quote.
        in_reply_to: what this message answers.
        reply_by: how long the sender waits for an answer, from the moment of sending; None where it waits for none.
        seal: that this is the sender's own word; the host adds it to what leaves, and has verified it on what comes.
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
