"""FIPA ACL messages: performatives in FIPA's spelling and the message value the pure machines exchange.

Source: FIPA SC00037 (communicative acts) and SC00061 (message structure); the market's use of them is the paper's
section 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model import contents
from ramp.model.agreement import Signed
from ramp.model.instant import Duration
from ramp.model.seal import Role, Seal

ONTOLOGY: Final = "ComputeMarket"
"""Ontology slot of every message, the original system's name."""

LANGUAGE: Final = "rfql-xml"
"""Content language slot: the XML documents of `schemas/`."""

WIRE_VERSION: Final = 1
"""Major version of metadata, documents and seals; a message that states none is of version 1."""


class Performative(StrEnum):
    """The communicative acts that the market uses."""

    CFP = "cfp"
    PROPOSE = "propose"
    REFUSE = "refuse"
    REJECT_PROPOSAL = "reject-proposal"
    ACCEPT_PROPOSAL = "accept-proposal"
    AGREE = "agree"
    CONFIRM = "confirm"
    CANCEL = "cancel"
    REQUEST = "request"
    INFORM = "inform"
    FAILURE = "failure"
    QUERY_REF = "query-ref"
    SUBSCRIBE = "subscribe"
    NOT_UNDERSTOOD = "not-understood"


CONTENT_OF: Final[dict[Performative, tuple[type, ...]]] = {
    Performative.CFP: (contents.CallForProposals,),
    Performative.PROPOSE: (contents.Proposal,),
    Performative.REFUSE: (
        contents.Proposal,
        contents.HoldRefused,
        contents.OrderRefused,
        contents.CancellationRefused,
        contents.PaymentRefused,
        contents.RefundRefused,
        contents.AccountQueryRefused,
        contents.KeeperRefused,
    ),
    Performative.REJECT_PROPOSAL: (contents.Rejection,),
    Performative.ACCEPT_PROPOSAL: (contents.Acceptance,),
    Performative.AGREE: (
        contents.HoldGranted,
        contents.FundsReserved,
        contents.PaymentMade,
        contents.RefundMade,
        contents.DepositMade,
    ),
    Performative.CONFIRM: (contents.Commitment, contents.Confirmed, contents.Unverified),
    Performative.CANCEL: (contents.HoldCancelled, Signed, contents.Deregistration, contents.Unverified),
    Performative.REQUEST: (
        Signed,
        contents.Unverified,
        contents.PaymentOrder,
        contents.OrderWithdrawal,
        contents.RefundClaim,
        contents.DepositOrder,
    ),
    Performative.INFORM: (
        contents.HoldCancelled,
        contents.OrderPosted,
        contents.OrderVoided,
        contents.Settled,
        contents.CancellationDone,
        contents.PaymentRefused,
        contents.RefundMade,
        contents.AccountStatement,
        contents.MarketOverview,
        contents.ClockReading,
        contents.MachineStatus,
        contents.Registered,
        contents.DirectoryListing,
    ),
    Performative.FAILURE: (contents.Failed,),
    Performative.QUERY_REF: (
        contents.PaymentQuery,
        contents.AccountQuery,
        contents.OverviewQuery,
        contents.ClockQuery,
        contents.MachineQuery,
        contents.DirectoryQuery,
    ),
    Performative.SUBSCRIBE: (contents.Registration,),
    Performative.NOT_UNDERSTOOD: (contents.NotUnderstood,),
}
"""Which contents each performative may carry; anything else is answered NOT_UNDERSTOOD."""

SEALED: Final[frozenset[type]] = frozenset(
    {
        contents.Acceptance,
        contents.HoldGranted,
        contents.HoldRefused,
        contents.HoldCancelled,
        contents.PaymentOrder,
        contents.FundsReserved,
        contents.OrderRefused,
        contents.OrderWithdrawal,
        contents.OrderPosted,
        contents.OrderVoided,
        contents.Commitment,
        contents.Confirmed,
        contents.Settled,
        contents.Failed,
        contents.RefundClaim,
        contents.CancellationDone,
        contents.CancellationRefused,
        contents.PaymentMade,
        contents.PaymentRefused,
        contents.RefundMade,
        contents.RefundRefused,
        contents.AccountQuery,
        contents.AccountStatement,
        contents.AccountQueryRefused,
        contents.DepositOrder,
        contents.DepositMade,
        contents.KeeperRefused,
        contents.OverviewQuery,
        contents.MarketOverview,
        contents.ClockReading,
        contents.Registration,
        contents.Registered,
        contents.Deregistration,
        contents.DirectoryListing,
    }
)
"""Contents that are believed for their sender's seal only: what creates an obligation, ends one, or tells of money."""

ANY_AGE: Final[frozenset[type]] = frozenset({contents.ClockReading})
"""Sealed contents that may be of any age by their reader's clock: they are what a clock that is wrong is known by.

They are believed as the answer to a question that is open only. The certificate must hold at the time they state.
"""

_USER: Final = frozenset({Role.USER})
_RESOURCE: Final = frozenset({Role.RESOURCE})
_TRADERS: Final = frozenset({Role.USER, Role.RESOURCE})
_BANK: Final = frozenset({Role.BANK})
_DIRECTORY: Final = frozenset({Role.DIRECTORY})
_KEEPER: Final = frozenset({Role.KEEPER})

ROLES_OF: Final[dict[type, frozenset[Role]]] = {
    **dict.fromkeys(
        (
            contents.CallForProposals,
            contents.Rejection,
            contents.Acceptance,
            contents.PaymentOrder,
            contents.OrderWithdrawal,
            contents.Commitment,
            contents.RefundClaim,
        ),
        _USER,
    ),
    **dict.fromkeys(
        (
            contents.Proposal,
            contents.HoldGranted,
            contents.HoldRefused,
            contents.Confirmed,
            contents.Settled,
            contents.Failed,
            contents.CancellationDone,
            contents.CancellationRefused,
            contents.Registration,
            contents.Deregistration,
        ),
        _RESOURCE,
    ),
    **dict.fromkeys((contents.HoldCancelled, contents.AccountQuery), _TRADERS),
    **dict.fromkeys(
        (
            contents.FundsReserved,
            contents.OrderRefused,
            contents.OrderPosted,
            contents.OrderVoided,
            contents.PaymentMade,
            contents.PaymentRefused,
            contents.RefundMade,
            contents.RefundRefused,
            contents.AccountStatement,
            contents.AccountQueryRefused,
            contents.DepositMade,
            contents.KeeperRefused,
            contents.MarketOverview,
            contents.ClockReading,
        ),
        _BANK,
    ),
    **dict.fromkeys((contents.Registered, contents.DirectoryListing), _DIRECTORY),
    **dict.fromkeys((contents.DepositOrder, contents.OverviewQuery), _KEEPER),
}
"""In which role a sealed content may be said; a right key in the wrong role is refused."""

OFFERS: Final[frozenset[type]] = frozenset({contents.CallForProposals, contents.Proposal, contents.Rejection})
"""Contents that are sealed as well where the market wants signed offers; canonical names stop their forging."""


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
