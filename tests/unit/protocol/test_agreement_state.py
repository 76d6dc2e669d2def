"""Agreements: their state in one word, and what is wrong with one that says something else than was agreed."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.agreement import Agreement
from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.agreement_terms import agreement_problem
from ramp.protocol.progress import CancellationEnded
from ramp.protocol.user.changing.desk import NOT_ACTIVE


def ended(effects: list[Any]) -> Any:
    (outcome,) = [
        each.progress.outcome
        for each in effects
        if isinstance(each, fx.Report) and isinstance(each.progress, CancellationEnded)
    ]
    return outcome


def test_an_agreement_settles_and_is_active_until_it_is_given_back(alice: Any) -> None:
    alice.auction()
    alice.grant()
    agreement_id = alice.confirmation.agreements[0].agreement_id
    states = [alice.party.agreement_state(agreement_id)]
    alice.vote()
    states.append(alice.party.agreement_state(agreement_id))
    alice.hear("res1", alice.proof())
    states.append(alice.party.agreement_state(agreement_id))
    alice.command(ev.AgreementCancelled(agreement_id, "no"))
    states.append(alice.party.agreement_state(agreement_id))
    alice.hear("bank", c.ChangePosted(agreement_id, 0, "t", -5))
    states.append(alice.party.agreement_state(agreement_id))
    assert states == ["settling", "settling", "active", "cancelling", "cancelled"]


def test_the_agreement_of_an_order_that_is_void_stays_void(alice: Any) -> None:
    """While the next best is asked, while that one is bought, and when the request has ended."""
    alice.committed()
    first = alice.confirmation.agreements[0]
    alice.hear("res1", alice.failed())
    assert alice.party.agreement_state(first.agreement_id) == "settling"
    alice.hear("bank", c.OrderVoided(first.order_id, "withdrawn"))
    states = [alice.party.agreement_state(first.agreement_id)]
    alice.grant("res2")
    second = alice.confirmation.agreements[0].agreement_id
    assert alice.party.agreement_state(second) == "settling"
    states.append(alice.party.agreement_state(first.agreement_id))
    alice.vote()
    alice.hear("res2", alice.proof())
    assert alice.party.agreement_state(second) == "active"
    states.append(alice.party.agreement_state(first.agreement_id))
    assert states == ["void"] * 3


def test_the_agreements_of_a_request_that_has_ended_without_a_purchase_are_void(alice: Any) -> None:
    alice.auction()
    alice.grant()
    agreement = alice.confirmation.agreements[0]
    alice.command(ev.RequestWithdrawn("r1"))
    alice.hear("bank", c.OrderVoided(agreement.order_id, "withdrawn"))
    assert alice.outcome is not None
    assert alice.party.agreement_state(agreement.agreement_id) == "void"


def test_only_what_is_active_can_be_given_back(alice: Any) -> None:
    alice.committed()
    agreement_id = alice.confirmation.agreements[0].agreement_id
    for wrong, state in ((agreement_id, "settling"), ("a9", "unknown")):
        outcome = ended(alice.command(ev.AgreementCancelled(wrong, "no")))
        assert (outcome.agreement_id, outcome.done, outcome.refund, outcome.code) == (wrong, False, 0, NOT_ACTIVE)
        assert outcome.detail.endswith(f"{wrong} is {state}")


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
