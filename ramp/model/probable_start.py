"""Probable starts: what is bought on a machine that cannot reserve is a submitted job.

Its offer says with which probability the job starts by `Offer.start`, the latest start at which it is complete within
the window of the request. The money stays aside until the job has started and is paid then: by its countersignature
under such an agreement the resource says that it has. Where that has not come to the bank by `Offer.start`, by the
bank's clock, the order is void and all of the money is free again. So the agreement stands exactly as long as the job
may start: `Agreement.valid_until` is `Offer.start`.

Buyer, seller, bank and whoever verifies the document ask the same here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ramp.model.agreement import ORDER_VALIDITY_MAX, Agreement
from ramp.model.instant import HOUR, MINUTE, Duration, iso
from ramp.model.offer import Offer
from ramp.model.request import RequestForQuotation, RequestUnit

QUEUE_WAIT_MAX: Final[Duration] = 7 * 24 * HOUR
"""The bank keeps money aside for a job that waits for its start, for so long from now on at most."""


class RefundRule(StrEnum):
    """What becomes of the price where a job has not started in time."""

    WHOLE = "whole"
    """All of it goes back, and the job is deleted."""


def start_shortcoming(unit: RequestUnit, offer: Offer) -> str:
    """Why an offer's start is not certain enough for a unit, or the empty string.

    Args:
        unit: as the user wants it.
        offer: what is offered; a reserved slot is certain.
    """
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
    """What is wrong with an agreement for how its start is promised, or the empty string.

    Args:
        agreement: of a reserved slot, which stands for minutes only, or of a submitted job, alone in its order.
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
    """Why a request cannot be bought with a probable start, or the empty string.

    Args:
        request: what is asked for.
        pays_offer: whether the auction's rule pays what the winner has offered.
    """
    asking = [unit.number for unit in request.units if unit.start_probability is not None]
    if not asking:
        return ""
    if not pays_offer:
        return f"unit {asking[0]} has a StartProbability; use an auction rule that pays the price offered"
    if len(request.units) > 1:
        several = f"unit {asking[0]} has a StartProbability in a request of {len(request.units)} units"
        return f"{several}; put it into a request of its own, because queued jobs are paid one by one"
    return ""
