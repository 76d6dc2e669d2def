"""Calls, offers and rejections of an auction (paper section 5.1.1)."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.fast_dataclass import fast_dataclass
from ramp.model.communicative_acts import Content, Interaction, Performative, said
from ramp.model.offer import Offer, Refusal
from ramp.model.request import RequestForQuotation
from ramp.model.seal import BY_RESOURCE, BY_USER


@fast_dataclass(frozen=True, slots=True)
class Bid:
    """One offer of an earlier round as all bidders may see it: bidding is open (paper section 5.1.1)."""

    unit: int
    resource: str
    cpu_hour_cost: int


@said(Performative.CFP, interaction=Interaction.CONTRACT_NET, by=BY_USER, is_offer=True)
@dataclass(frozen=True, slots=True)
class CallForProposals(Content):
    """CFP: all units of the request at this round's asking prices.

    Attributes:
        request_id: the auction.
        round_number: from 1.
        request: the units, `cpu_hour_cost` being the asking price.
        bids: the offers of the round before, of each unit the lowest.
        best_offer: True in the extra round in which resources may offer less than the request (section 4.1).
        rule: name of the auction rule if the price paid may differ from the price offered: then proposals must be
            sealed; empty if the price offered is paid.
    """

    request_id: str
    round_number: int
    request: RequestForQuotation
    bids: tuple[Bid, ...] = ()
    best_offer: bool = False
    rule: str = ""


@said(Performative.PROPOSE, Performative.REFUSE, interaction=Interaction.CONTRACT_NET, by=BY_RESOURCE, is_offer=True)
@fast_dataclass(frozen=True, slots=True)
class Proposal(Content):
    """PROPOSE (with offers) or REFUSE (without): one answer for all units of a call."""

    request_id: str
    round_number: int
    offers: tuple[Offer, ...] = ()
    refusals: tuple[Refusal, ...] = ()


@said(Performative.REJECT_PROPOSAL, interaction=Interaction.CONTRACT_NET, by=BY_USER, is_offer=True)
@fast_dataclass(frozen=True, slots=True)
class Rejection(Content):
    """REJECT_PROPOSAL: an offer that does not meet the request, or that lost."""

    request_id: str
    offer_id: str
    reason: str
