"""Agreements: what they must say, and what is wrong with one that says something else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model.agreement import Agreement
from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.protocol.agreement_terms import agreement_problem

UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
OFFER = Offer("offer-1", "r1", 1, "res", 60, HOUR, 2 * HOUR, 16, 0.5, HOUR)
AGREED = Agreement(
    "a1", "r1", 1, "alice", "res", "bank", UNIT, OFFER, "R-1", OFFER.cost, 0, order_id="o1", valid_until=2 * MINUTE
)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"offer": replace(OFFER, cpu_hour_cost=59)}, "offer"),
        ({"request_id": "r2"}, "request"),
        ({"reservation_id": "R-2"}, "reservation id"),
        ({"cost": OFFER.cost - 1}, "cost"),
        ({"request": replace(UNIT, deadline=4 * HOUR)}, "unit"),
    ],
)
def test_the_seller_says_what_is_not_as_agreed(changes: dict[str, Any], what: str) -> None:
    problem = agreement_problem(replace(AGREED, **changes), OFFER, UNIT, "R-1")
    assert problem == f"the {what} differs from what was agreed"


def test_the_asking_price_of_the_last_call_is_not_the_users_own() -> None:
    assert agreement_problem(AGREED, OFFER, replace(UNIT, cpu_hour_cost=55), "R-1") == ""
