"""Check that an agreement's price is the one owed; winner, bank and verifiers of the document use the same functions.

An agreement whose price differs from the price offered names its rule and contains the sealed offer that sets the
price. Under an unknown rule only the general bounds are checked: at least the winner's offer, at most the user's limit.
For the second-price rule (W. Vickrey, Journal of Finance 16, 1961) the price itself is recomputed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ramp.model import money
from ramp.model.agreement import ORDER_VALIDITY_MAX, Agreement, PricePaid
from ramp.model.called_terms import called_otherwise
from ramp.model.instant import MINUTE, iso
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit
from ramp.model.seal import Role, Seal
from ramp.model.shortcoming import cost_problem, shortcoming
from ramp.model.sizes.moldable import cost_cap

SECOND_PRICE: Final = "second-price"
"""Name of the rule by which the cheapest other offer sets the price, or the cap if there is no other offer."""

CLOCKS_APART: Final = 5 * MINUTE
"""Maximum lead of a seller's clock over that of the party that begins a purchase (`Timing.message_age`)."""


class PriceFault(StrEnum):
    """Kinds of wrong prices."""

    NOT_AS_OFFERED = "not_as_offered"
    RULE_NOT_AGREED = "rule_not_agreed"
    CAP_LOWERED = "cap_lowered"
    BELOW_OFFER = "below_offer"
    ABOVE_CAP = "above_cap"
    RUNNER_UP_FORGED = "runner_up_forged"
    RUNNER_UP_FOREIGN = "runner_up_foreign"
    RUNNER_UP_SHAM = "runner_up_sham"
    RUNNER_UP_EXPIRED = "runner_up_expired"
    RUNNER_UP_TOO_LOW = "runner_up_too_low"
    CALLED_OTHERWISE = "called_otherwise"
    NOT_THE_RULES = "not_the_rules_price"


def second_price(unit: RequestUnit, winner: Offer, runner_up: Offer | None) -> int:
    """Return the winner's payment under the second-price rule, in minor units.

    Args:
        unit: as the user wants it; its price is the cap.
        winner: the cheapest offer that is held.
        runner_up: the cheapest remaining offer; None without one, when the cap is paid.
    """
    cap = cost_cap(unit, winner.end - winner.start)
    return cap if runner_up is None else min(cap, runner_up.cost)


def stands_at(offer: Offer, seal: Seal, at: int) -> bool:
    """Whether an offer holds at an instant: sealed by then, as far as two clocks can tell, and not lapsed."""
    return seal.signed_at - CLOCKS_APART <= at < seal.signed_at + offer.valid_for


def price_problem(agreement: Agreement) -> str:
    """Say what is wrong with an agreement's price by the agreement itself, after its `PriceFault`; may be empty."""
    price, offer, cost = agreement.price, agreement.offer, agreement.cost
    if not agreement.best_offer and (dear := cost_problem(agreement.request, offer, cost)):
        return _problem(PriceFault.ABOVE_CAP, dear)
    if price is None:
        if cost == offer.cost:
            return ""
        return _problem(PriceFault.NOT_AS_OFFERED, f"wrong cost: got {_text(cost)}, expected {_text(offer.cost)}")
    if agreement.best_offer:
        return _problem(PriceFault.RULE_NOT_AGREED, "a best offer is paid at the price offered")
    if price.runner_up is not None and (problem := _runner_up_problem(agreement, price, price.runner_up)):
        return problem
    for each in (offer,) if price.runner_up is None else (offer, price.runner_up):
        if other := called_otherwise(agreement.request, price.rule, each, sealed=price.rule == SECOND_PRICE):
            return _problem(PriceFault.CALLED_OTHERWISE, f"{each.offer_id}: {other}")
    if cost < offer.cost:
        return _problem(PriceFault.BELOW_OFFER, f"{_text(cost)} is below the {_text(offer.cost)} offered")
    if price.rule == SECOND_PRICE and cost != (owed := second_price(agreement.request, offer, price.runner_up)):
        return _problem(PriceFault.NOT_THE_RULES, f"wrong cost: got {_text(cost)}, expected {_text(owed)}")
    return ""


def _runner_up_problem(agreement: Agreement, price: PricePaid, other: Offer) -> str:
    seal = price.seal
    if seal is None or (seal.signer, seal.role) != (other.resource, Role.RESOURCE):
        return _problem(PriceFault.RUNNER_UP_FORGED, f"{other.offer_id} is not sealed by {other.resource}")
    if other.resource in (agreement.resource, agreement.user):
        return _problem(PriceFault.RUNNER_UP_SHAM, f"{other.offer_id} is an offer of a party of the agreement")
    told = seal.receiver, seal.conversation_id, other.request_id, other.unit
    if told != (agreement.user, agreement.request_id, agreement.request_id, agreement.request.number):
        return _problem(PriceFault.RUNNER_UP_FOREIGN, f"{other.offer_id} was made for another request")
    if unmet := shortcoming(agreement.request, other):
        return _problem(PriceFault.RUNNER_UP_FOREIGN, f"{other.offer_id} does not meet the request: {unmet}")
    if agreement.valid_until - agreement.issued_at > ORDER_VALIDITY_MAX:
        # the buyer states when it was issued, the bank limits its validity: a false date would revive lapsed offers
        most = f"agreements are valid for at most {ORDER_VALIDITY_MAX // MINUTE} minutes, this one is backdated"
        return _problem(PriceFault.RUNNER_UP_EXPIRED, f"{other.offer_id} may have expired: {most}")
    if not stands_at(other, seal, agreement.issued_at):
        valid = f"from {iso(seal.signed_at)} until {iso(seal.signed_at + other.valid_for)}"
        return _problem(PriceFault.RUNNER_UP_EXPIRED, f"{other.offer_id} was valid only {valid}")
    if other.cost < agreement.offer.cost:
        low = f"{_text(other.cost)} of {other.offer_id} is below the {_text(agreement.offer.cost)} of the winner"
        return _problem(PriceFault.RUNNER_UP_TOO_LOW, low)
    return ""


def agreed_price_problem(agreement: Agreement, unit: RequestUnit, rule: str) -> str:
    """Say what is wrong with a price for the seller, who knows the call, as `price_problem` does; empty if it is right.

    Args:
        agreement: as the user has signed it.
        unit: as in the call.
        rule: named in the call; empty if the price paid is the price offered.
    """
    price = agreement.price
    if price is None and rule and not shortcoming(unit, agreement.offer):
        return _problem(PriceFault.RULE_NOT_AGREED, f"the call says that {rule} finds the price")
    if price is not None and price.rule != rule:
        said = f"by {rule}" if rule else "as offered"
        return _problem(PriceFault.RULE_NOT_AGREED, f"wrong auction rule: got {price.rule}, expected {said}")
    if price is not None and agreement.request.cpu_hour_cost < unit.cpu_hour_cost:
        lower = f"{agreement.request.cpu_hour_cost} credits/core-hour is below the {unit.cpu_hour_cost} of the call"
        return _problem(PriceFault.CAP_LOWERED, lower)
    return price_problem(agreement)


def how_priced(agreement: Agreement) -> str:
    """Say how a price was found that differs from the one offered; empty for others."""
    price = agreement.price
    if price is None:
        return ""
    said = f"{price.rule}: {_text(agreement.cost)} are paid for an offer of "
    said += f"{_text(agreement.offer.cost)}"
    if price.runner_up is None:
        return f"{said}; no other offer sets the price"
    return f"{said}; the sealed offer {price.runner_up.offer_id} of {price.runner_up.resource} sets the price"


def _problem(fault: PriceFault, detail: str) -> str:
    return f"{fault}: {detail}"


def _text(minor_units: int) -> str:
    return f"{money.credits_text(minor_units)} credits"
