"""Two-phase commit between a user and the resources (paper section 5.1.1, from step 5)."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Signed
from ramp.model.communicative_acts import Content, Interaction, Performative, said
from ramp.model.contents.orders import FundsReserved, PaymentMade
from ramp.model.instant import Duration
from ramp.model.offer import Offer, RefusalCode
from ramp.model.seal import BY_RESOURCE, BY_TRADER, BY_USER, Seal


@said(Performative.ACCEPT_PROPOSAL, interaction=Interaction.CONTRACT_NET, by=BY_USER)
@dataclass(frozen=True, slots=True)
class Acceptance(Content):
    """ACCEPT_PROPOSAL, the first phase: will you hold the slot?"""

    request_id: str
    offer_id: str


@said(Performative.AGREE, interaction=Interaction.CONTRACT_NET, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class HoldGranted(Content):
    """AGREE: the vote yes, with the reservation's id and how long the hold lasts from the moment of sending."""

    request_id: str
    offer_id: str
    reservation_id: str
    hold_for: Duration


@said(Performative.REFUSE, interaction=Interaction.CONTRACT_NET, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class HoldRefused(Content):
    """REFUSE: the vote no; also to a commitment that comes after the hold's end or has wrong terms.

    Attributes:
        request_id: the auction.
        offer_id: the accepted offer.
        code: the reason.
        detail: one sentence for people.
        instead: the seller's next slot of the same size at the same price, if the accepted one was taken; at most one.
    """

    request_id: str
    offer_id: str
    code: RefusalCode
    detail: str = ""
    instead: tuple[Offer, ...] = ()


@said(Performative.CANCEL, Performative.INFORM, interaction=Interaction.CONTRACT_NET, by=BY_TRADER)
@dataclass(frozen=True, slots=True)
class HoldCancelled(Content):
    """CANCEL of a hold (step 9), and INFORM as its acknowledgement."""

    request_id: str
    offer_id: str


@said(Performative.CONFIRM, interaction=Interaction.CONTRACT_NET, by=BY_USER)
@dataclass(frozen=True, slots=True)
class Commitment(Content):
    """CONFIRM by the user: the signed agreement, with the bank's vote for its order.

    Attributes:
        agreement: signed by the user.
        vote: the bank's vote that the cost is set aside.
        vote_seal: the bank's seal on it.
    """

    agreement: Signed
    vote: FundsReserved
    vote_seal: Seal


@said(Performative.CONFIRM, interaction=Interaction.CONTRACT_NET, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class Confirmed(Content):
    """CONFIRM by the resource: the signed agreement has arrived and is on its way to the bank."""

    agreement_id: str
    offer_id: str


@said(Performative.INFORM, interaction=Interaction.CONTRACT_NET, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class Settled(Content):
    """INFORM: the bank has paid; the agreement with both signatures, and the bank's answer, as proof.

    Attributes:
        agreement_id: of the agreement.
        offer_id: the offer it came from.
        agreement: with both signatures.
        payment: the bank's answer to the resource.
        payment_seal: the bank's seal on it.
    """

    agreement_id: str
    offer_id: str
    agreement: Signed
    payment: PaymentMade
    payment_seal: Seal
