"""The auction's documents: call for proposals, proposal, and the two phases of the commit (schemas/offer.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.errors import DocumentError
from ramp.model import contents
from ramp.model.offer import Offer, Refusal
from ramp.rfql import request_for_quotation
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element
from ramp.rfql.xml.record import BOOLEAN, TEXT, Record

OFFER: Final = Record(Offer)
REFUSAL: Final = Record(Refusal)
BID: Final = Record(contents.Bid)

PROPOSAL: Final = Record(contents.Proposal, children={"offers": OFFER, "refusals": REFUSAL})
HOLD_REFUSED: Final = Record(contents.HoldRefused, children={"instead": OFFER})

CALL: Final = "CallForProposals"


def write_call(call: contents.CallForProposals) -> str:
    """Write a call for proposals, which contains the request as an RFQL document.

    Raises:
        DocumentError: for values that the document cannot carry.
    """
    best_offer = ' bestOffer="true"' if call.best_offer else ""
    rule = f' rule="{TEXT.write(call.rule)}"' if call.rule else ""
    bids = "".join([BID.write(bid, root=False) for bid in call.bids])
    request_id = TEXT.write(call.request_id)
    return (
        f'<{CALL} xmlns="{MARKET}" requestId="{request_id}" roundNumber="{call.round_number}"{best_offer}{rule}>'
        f"{request_for_quotation.write_request(call.request)}{bids}</{CALL}>"
    )


def read_call(element: Element) -> contents.CallForProposals:
    """Read a call for proposals that has passed the schema check.

    Raises:
        DocumentError: if the request makes no sense.
    """
    request = element.find(request_for_quotation.ROOT)
    assert request is not None, "the schema requires it"
    return contents.CallForProposals(
        request_id=element.get("requestId", ""),
        round_number=int(element.get("roundNumber", "")),
        request=request_for_quotation.read_request(request),
        bids=tuple([BID.read(child) for child in element.iterchildren(BID.tag)]),
        best_offer=BOOLEAN.read(element.get("bestOffer", "false")),
        rule=element.get("rule", ""),
    )


def read_proposal(element: Element) -> contents.Proposal:
    """Read a proposal that has passed the schema check.

    Raises:
        DocumentError: for an offer whose slot ends before it starts, or that belongs to another request.
    """
    proposal = PROPOSAL.read(element)
    for offer in proposal.offers:
        check_offer(offer)
        if offer.request_id != proposal.request_id:
            raise DocumentError(
                f"Offer {offer.offer_id}: requestId {offer.request_id!r} in a Proposal for {proposal.request_id!r}"
            )
    return proposal


def read_hold_refused(element: Element) -> contents.HoldRefused:
    """Read a refused hold that has passed the schema check.

    Raises:
        DocumentError: for an offer whose slot ends before it starts.
    """
    refused = HOLD_REFUSED.read(element)
    for offer in refused.instead:
        check_offer(offer)
    return refused


def check_offer(offer: Offer) -> None:
    """Check what the schema cannot: the slot ends after it starts.

    Raises:
        DocumentError: if it does not.
    """
    if offer.end <= offer.start:
        raise DocumentError(f"Offer {offer.offer_id}: the slot's end must be after its start")
