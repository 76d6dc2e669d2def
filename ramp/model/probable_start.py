"""Probable starts: a machine that cannot reserve sells a submitted job.

Its offer states the probability that the job starts by `Offer.start`, the latest start at which it is complete within
the window of the request. The money stays aside until the job has started, and is paid then: the resource's
countersignature under the agreement states that it has. If that does not reach the bank by `Offer.start`, by the bank's
clock, the order is void and all money is free again. So an agreement holds exactly as long as the job may start:
`Agreement.valid_until` is `Offer.start`.

Buyer, seller, bank and verifiers of the document use the same functions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ramp.model.agreement import ORDER_VALIDITY_MAX, Agreement
from ramp.model.instant import HOUR, MINUTE, Duration, iso
from ramp.model.offer import Offer
from ramp.model.request import RequestForQuotation, RequestUnit

QUEUE_WAIT_MAX: Final[Duration] = 7 * 24 * HOUR
"""Longest time from now for which the bank sets money aside for a job that waits for its start."""


class RefundRule(StrEnum):
    """Refund for a job that has not started in time."""

    WHOLE = "whole"
    """Everything is refunded, and the job is deleted."""


def start_shortcoming(unit: RequestUnit, offer: Offer) -> str:
    """Say why an offer's start is not certain enough for the user's unit; empty if it is."""
    offered, asked = offer.start_probability, unit.start_probability
    if offered is None:
        return ""
    if asked is None:
        return "its start is only probable, but the request needs a reserved slot"
    if offered < asked:
        return f"its start probability is too low: got {offered:.6g}, expected at least {asked:.6g}"
    if offer.if_late not in set(RefundRule):
        return f"unknown refund rule for a late start: got {offer.if_late!r}, expected {', '.join(RefundRule)}"
    return ""


def probable_start_problem(agreement: Agreement) -> str:
    """Say how an agreement's promise of a start is invalid; empty if it is valid.

    Args:
        agreement: of a reserved slot, which holds for minutes only, or of a submitted job, alone in its order.
    """
    offer = agreement.offer
    stands = agreement.valid_until - agreement.issued_at
    if offer.start_probability is None:
        if offer.if_late:
            return "it has a refund rule for a late start but no start probability"
        if stands > ORDER_VALIDITY_MAX:
            return f"it is valid for more than the {ORDER_VALIDITY_MAX // MINUTE} minutes allowed for a reserved slot"
        return ""
    if agreement.valid_until != offer.start:
        return f"it is valid until {iso(agreement.valid_until)}, but the job may start until {iso(offer.start)}"
    if agreement.units_total != 1:
        return f"too many units in its order: got {agreement.units_total}, expected 1 with a start probability"
    return start_shortcoming(agreement.request, offer)


def request_problem(request: RequestForQuotation, *, pays_offer: bool = True) -> str:
    """Say why a request cannot be bought with a probable start; empty if it can."""
    asking = [unit.number for unit in request.units if unit.start_probability is not None]
    if not asking:
        return ""
    if not pays_offer:
        return f"unit {asking[0]} has a StartProbability; use an auction rule that pays the price offered"
    if len(request.units) > 1:
        several = f"unit {asking[0]} has a StartProbability in a request of {len(request.units)} units"
        return f"{several}; put it into a request of its own, because queued jobs are paid one by one"
    return ""
