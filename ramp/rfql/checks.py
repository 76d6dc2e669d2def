"""Checks of contents that the schemas cannot make: values that go together.

`CHECKS` has a function for each content that needs one; each raises `DocumentError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ramp.errors import DocumentError
from ramp.model import contents
from ramp.model.agreement import Agreement, ContractChange
from ramp.model.offer import Offer
from ramp.model.probable_start import probable_start_problem


def _check_offer(offer: Offer) -> None:
    if offer.end <= offer.start:
        raise DocumentError(f"Offer {offer.offer_id}: the slot's end must be after its start")


def _check_proposal(proposal: contents.Proposal) -> None:
    for offer in proposal.offers:
        _check_offer(offer)
        if offer.request_id != proposal.request_id:
            raise DocumentError(
                f"Offer {offer.offer_id}: requestId {offer.request_id!r} in a Proposal for {proposal.request_id!r}"
            )


def _check_hold_refused(refused: contents.HoldRefused) -> None:
    for offer in refused.instead:
        _check_offer(offer)


def _check_order(order: contents.JobOrder) -> None:
    if not order.arguments and not order.application:
        raise DocumentError("JobOrder: expected a JobArgument, or an application")


def _check_posted(posted: contents.ChangePosted) -> None:
    if posted.amount > 0 if posted.is_terminal else posted.amount == 0:
        expected = "0 or less" if posted.is_terminal else "another than 0"
        raise DocumentError(f"ChangePosted: wrong amount: got {posted.amount}, expected {expected}")


def _check_change(body: ContractChange) -> None:
    name = f"Change {body.number} of {body.agreement_id}"
    if body.is_terminal:
        parties = (body.agreement_id, body.number, body.offer_id, body.user, body.resource, body.bank)
        if body != ContractChange(*parties, body.issued_at, reason=body.reason, code=body.code):
            raise DocumentError(f"{name}: a change that ends an agreement leaves no cores and has no price")
        return
    if not body.previous or not body.cores or body.is_failure:
        raise DocumentError(f"{name}: previous and cores are required, and no code")
    if not body.issued_at < body.effective_at < body.valid_until <= body.until:
        times = "issuedAt, effectiveAt, validUntil and until"
        raise DocumentError(f"{name}: {times} are not in this order")
    if not body.amount or (body.amount > 0) != body.grows:
        raise DocumentError(f"{name}: expected either an amount below zero, or one above zero with an order")


def _check_agreement(agreement: Agreement) -> None:
    offer = agreement.offer
    _check_offer(offer)
    contradictions = tuple(
        f"{name}: got {outer!r}, expected the {where} {inner!r}"
        for name, outer, where, inner in (
            # another price is for the parties to judge, and for `ramp verify` (`ramp.model.price_paid`)
            ("cost", agreement.cost if agreement.price is None else offer.cost, "offer's", offer.cost),
            ("requestId", agreement.request_id, "offer's", offer.request_id),
            ("resource", agreement.resource, "offer's", offer.resource),
            ("Unit number", agreement.request.number, "offer's", offer.unit),
        )
        if outer != inner
    )
    if agreement.request.number > agreement.units_total:
        contradictions += (f"Unit number: got {agreement.request.number}, expected at most {agreement.units_total}",)
    if agreement.valid_until <= agreement.issued_at:
        contradictions += ("validUntil: must be after issuedAt",)
    if unclear := probable_start_problem(agreement):
        contradictions += (unclear,)
    if contradictions:
        raise DocumentError(f"Agreement {agreement.agreement_id}: " + "; ".join(contradictions))


def _check_commitment(commitment: contents.Commitment) -> None:
    body = commitment.agreement.body
    if not isinstance(body, Agreement):
        raise DocumentError(f"Commitment: the document is a {type(body).__name__}")


def _check_settled(settled: contents.Settled) -> None:
    body = settled.agreement.body
    named = (settled.agreement_id, settled.offer_id, settled.agreement_id)
    payment = settled.payment
    if not isinstance(body, Agreement) or (body.agreement_id, body.offer.offer_id, payment.agreement_id) != named:
        raise DocumentError(f"Settled: agreementId {settled.agreement_id!r} with the proof of something else")


def _check_done(done: contents.ChangeDone) -> None:
    body, posted = done.change.body, done.posted
    if not isinstance(body, ContractChange):
        raise DocumentError(f"ChangeDone: the document is a {type(body).__name__}")
    if (body.agreement_id, body.number) != (posted.agreement_id, posted.number):
        raise DocumentError(f"ChangeDone: change {body.number} of {body.agreement_id} with the proof of another")


CHECKS: Final[Mapping[type, Callable[[Any], None]]] = {
    contents.JobOrder: _check_order,
    Agreement: _check_agreement,
    ContractChange: _check_change,
    contents.ChangeDone: _check_done,
    contents.ChangePosted: _check_posted,
    contents.Commitment: _check_commitment,
    contents.HoldRefused: _check_hold_refused,
    contents.Proposal: _check_proposal,
    contents.Settled: _check_settled,
}
