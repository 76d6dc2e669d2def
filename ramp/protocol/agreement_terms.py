"""What is held for a request, the order that pays for it, and the check that an agreement is as negotiated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ramp.model.agreement import Agreement
from ramp.model.contents import Commitment, FundsReserved, OrderLine, OrderPosted, OrderRefused, OrderVoided
from ramp.model.instant import Instant
from ramp.model.offer import Offer
from ramp.model.probable_start import probable_start_problem
from ramp.model.request import RequestUnit
from ramp.model.seal import Role, Seal
from ramp.protocol.rules.checked_rule import Priced

OrderWord = FundsReserved | OrderRefused | OrderPosted | OrderVoided
"""The bank's answers about an order; they name only the order."""


@dataclass(frozen=True, slots=True)
class HeldUnit:
    """A unit whose slot is held after a positive vote.

    Attributes:
        held_until: end of the hold as far as known here, counted from the first acceptance sent.
        seal: the resource's, on its vote.
        priced: the price paid; until all units are held, the price offered.
    """

    unit: int
    offer: Offer
    reservation_id: str
    held_until: Instant
    seal: Seal
    priced: Priced


def order_lines(agreements: Sequence[Agreement]) -> tuple[OrderLine, ...]:
    """Return the order lines that the bank must reserve for some agreements."""
    return tuple(OrderLine(each.agreement_id, each.resource, each.cost, each.offer.offer_id) for each in agreements)


def commitment_problem(
    commitment: Commitment, held: tuple[Offer, RequestUnit, str], parties: tuple[str, str, str]
) -> str:
    """Return the problem of an agreement and the bank's vote for it, or the empty string.

    `ramp.model.price_paid` checks a price other than the offered one.

    Args:
        commitment: agreement and vote, from the buyer.
        held: the offer held, the unit of the call, and the machine's name for the slot. The unit's asking price falls
            from round to round, while the agreement has the user's own.
        parties: buyer, seller, and the seller's bank.
    """
    body = commitment.agreement.body
    assert isinstance(body, Agreement)
    if (body.user, body.resource, body.bank) != parties:
        return "the parties differ from those agreed"
    offer, unit, reservation_id = held
    facts = (
        (body.offer, offer, "offer"),
        (body.request_id, offer.request_id, "request"),
        (body.reservation_id, reservation_id, "reservation id"),
        (body.cost if body.price is None else offer.cost, offer.cost, "cost"),
        (replace(body.request, cpu_hour_cost=unit.cpu_hour_cost), unit, "unit"),
    )
    problem = next((f"the {what} differs from what was agreed" for found, right, what in facts if found != right), "")
    return problem or probable_start_problem(body) or vote_problem(body, commitment.vote, commitment.vote_seal)


def vote_problem(agreement: Agreement, vote: FundsReserved, seal: Seal) -> str:
    """Return the problem of the bank's vote for an agreement, or the empty string."""
    if (seal.signer, seal.role, seal.receiver) != (agreement.bank, Role.BANK, agreement.user):
        return f"the vote is not from {agreement.bank} to the buyer"
    if vote.order_id != agreement.order_id or vote.user != agreement.user:
        return "the bank's vote is for another order"
    if vote.valid_until != agreement.valid_until:
        return "the bank must reserve the money until the agreement's deadline"
    if order_lines((agreement,))[0] not in vote.lines:
        return "the bank's order has no line for this agreement"
    if len(vote.lines) != agreement.units_total:
        return f"the order has {len(vote.lines)} units, expected {agreement.units_total}"
    return ""
