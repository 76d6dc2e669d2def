"""What alice has bought of a seller, and what she proposes to change of it, with the amounts that are owed."""

from dataclasses import replace
from typing import Any

from ramp.model.agreement import Agreement, ContractChange
from ramp.model.instant import MINUTE, Instant
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit
from ramp.model.sizes.amended import SlotState, charge_owed, first_state, is_growth, refund_owed
from ramp.protocol.timing import Timing

NOTICE = Timing().amendment_notice


def agreement_of(offer: Offer, request: RequestUnit, /, **changes: Any) -> Agreement:
    """Return the only agreement of an order, at the price offered."""
    sold = (offer.resource, "bank", request, offer, f"R-{offer.offer_id}", offer.cost)
    return replace(Agreement("a1", offer.request_id, 1, "alice", *sold, 0, "order-1", 2 * MINUTE), **changes)


def change_of(
    agreement: Agreement,
    cores: int,
    at: Instant = 0,
    price: int = 0,
    *,
    state: SlotState | None = None,
    until: Instant = 0,
    effective_at: Instant = 0,
    **changes: Any,
) -> ContractChange:
    """Return a proposal of other cores, or of another end, after the notice; `changes` differ from what is right."""
    before = state or first_state(agreement)
    until, begin = until or before.until, effective_at or at + NOTICE
    who = (agreement.agreement_id, 1, agreement.offer.offer_id, agreement.user, agreement.resource, agreement.bank)
    body = ContractChange(*who, at, before.digest, cores, until, begin, 0, begin + MINUTE)
    if is_growth(before, cores, until):
        added = replace(body, cpu_hour_cost=price, order_id="order-2")
        body = replace(added, amount=charge_owed(before, added))
    else:
        body = replace(body, amount=-refund_owed(agreement, before, cores, until, begin))
    return replace(body, **changes)
