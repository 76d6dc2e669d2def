"""Drawing up the agreements of a request, and checking that an agreement is the one that was meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ramp.model.agreement import Agreement
from ramp.model.contents import FundsReserved, OrderLine
from ramp.model.identifiers import IdSource
from ramp.model.instant import Duration, Instant
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.protocol.voting import HeldUnit


def draw_up_agreements(
    request_id: str,
    request: RequestForQuotation,
    held: Sequence[HeldUnit],
    meets_request: Mapping[int, bool],
    *,
    user: str,
    bank: str,
    ids: IdSource,
    valid_for: Duration,
    now: Instant,
) -> tuple[Agreement, ...]:
    """Draw up one agreement a held unit: RFQ unit, offer and reservation id (section 5.2.1); together one order."""
    order_id = ids.new("order")
    return tuple(
        Agreement(
            agreement_id=ids.new("agreement"),
            request_id=request_id,
            units_total=len(held),
            user=user,
            resource=unit.offer.resource,
            bank=bank,
            request=request.unit(unit.unit),
            offer=unit.offer,
            reservation_id=unit.reservation_id,
            cost=unit.offer.cost,
            issued_at=now,
            order_id=order_id,
            valid_until=now + valid_for,
            best_offer=not meets_request[unit.unit],
        )
        for unit in held
    )


def order_lines(agreements: Sequence[Agreement]) -> tuple[OrderLine, ...]:
    """What the bank is to set aside for some agreements."""
    return tuple(OrderLine(each.agreement_id, each.resource, each.cost) for each in agreements)


def same_unit(asked: RequestUnit, agreed: RequestUnit) -> bool:
    """Whether an agreement's unit is the one of the call; asking prices fall from round to round and may differ."""
    return replace(agreed, cpu_hour_cost=asked.cpu_hour_cost) == asked


def vote_problem(agreement: Agreement, vote: FundsReserved) -> str:
    """What is wrong with the bank's vote for an agreement, or the empty string."""
    if vote.order_id != agreement.order_id or vote.user != agreement.user:
        return "the bank's vote is for another order"
    if vote.valid_until != agreement.valid_until:
        return "the money is not set aside as long as the agreement holds"
    if OrderLine(agreement.agreement_id, agreement.resource, agreement.cost) not in vote.lines:
        return "the bank has set nothing aside for it"
    if len(vote.lines) != agreement.units_total:
        return f"the order has {len(vote.lines)} units, not {agreement.units_total}"
    return ""
