"""Agreements: their state in one word, and what is wrong with one that says something else than was agreed."""

from typing import Any

from ramp.model import contents as c
from ramp.protocol import events as ev
from ramp.protocol.progress import ChangeEnded
from ramp.protocol.user.changing.desk import NOT_ACTIVE
from tests.unit.protocol.conftest import reports


def ended(effects: list[Any]) -> Any:
    (report,) = reports(effects, ChangeEnded)
    return report.outcome


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
