"""Cancellations and claims: whom they are sent to, when, what a late answer changes, and what state that leaves."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.agreement import ContractChange, Signed
from ramp.model.instant import SECOND
from ramp.model.offer import RefusalCode
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import ChangeEnded, UnitAdvanced
from ramp.protocol.records import ChangeProposed, FailureTold, OrderClosed, VoidAsked
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.changing.change import BuyerChange
from ramp.protocol.user.changing.desk import NOT_ACTIVE
from tests.unit.protocol.conftest import messages, records, reports, restarted_user


def asked(effects: list[Any]) -> list[tuple[str, str]]:
    """Who is asked to give what back."""
    sent = messages(effects)
    return [(each.receiver, each.reply_with) for each in sent if isinstance(each.content, Signed)]


def test_a_bank_that_was_not_asked_refuses_nothing(alice: Any) -> None:
    agreement_id = alice.bought()
    alice.command(ev.AgreementCancelled(agreement_id, "no"), 1)
    assert alice.hear("bank", c.ChangeRefused(agreement_id, 0, "started"), 2) == []
    assert alice.party.agreement_state(agreement_id) == "cancelling"


@pytest.mark.parametrize("limit", [8 * SECOND, 11 * SECOND, 20 * SECOND])
def test_a_silent_resource_is_passed_over_at_the_limit(limit: int, alice: Any) -> None:
    """Wherever the limit lies between two repetitions."""
    alice.bought()
    (agreement,) = alice.party.agreements.values()
    body = ContractChange(agreement.agreement_id, 0, "o", "alice", "res1", "bank", 0, reason="no")
    request = BuyerChange([(Signed(body), agreement)], Pace(Timing(cancellation_limit=limit)))
    request.start(0)
    while request.deadline is not None and request.deadline < limit:
        assert asked(request.on_timer(request.deadline)) == [("res1", agreement.agreement_id)]
    assert request.deadline == limit
    assert asked(request.on_timer(limit)) == [("bank", agreement.agreement_id)]


def test_what_came_back_late_is_known_to_be_back_after_a_restart(alice: Any) -> None:
    """First the bank refuses, then the money is back after all: two ends of one cancellation are on record."""
    agreement_id = alice.bought()
    alice.command(ev.AgreementCancelled(agreement_id, "no"), 2)
    alice.hear("res1", c.ChangeRefused(agreement_id, 0, "started"))
    alice.hear("bank", c.ChangeRefused(agreement_id, 0, "started"))
    alice.hear("bank", c.ChangePosted(agreement_id, 0, "t", -5000))
    again, effects = restarted_user(alice.journal, SECOND)
    assert effects == []
    assert again.party.agreement_state(agreement_id) == "cancelled"
    assert again.hear("bank", c.ChangePosted(agreement_id, 0, "t", -5000)) == []  # it is told once


def written(effects: list[Any]) -> list[type]:
    return [type(each.record) for each in effects if isinstance(each, fx.Persist)]


def test_of_a_bought_unit_only_its_own_offer_can_have_failed(alice: Any) -> None:
    alice.committed()
    failed = alice.failed()
    alice.hear("res1", alice.proof())
    with pytest.raises(RemoteProtocolError, match="wrong parties or offer"):
        alice.hear("res1", replace(failed, body=replace(failed.body, offer_id="offer-res9-9")))
    assert ChangeProposed in written(alice.hear("res1", failed))


def test_of_a_unit_that_is_being_confirmed_too(alice: Any) -> None:
    alice.committed()
    failed = alice.failed()
    with pytest.raises(RemoteProtocolError, match="wrong parties or offer"):
        alice.hear("res1", replace(failed, body=replace(failed.body, offer_id="offer-res9-9")))
    for signers in ((), ("alice",), ("alice", "res1")):
        with pytest.raises(RemoteProtocolError, match="res1 has not signed that it fails"):
            alice.hear("res1", replace(failed, signers=signers))
    assert FailureTold in written(alice.hear("res1", failed))


@pytest.mark.parametrize("how", ["failure", "refusal"])
def test_a_unit_that_fails_without_a_word_is_quoted_with_its_code(alice: Any, how: str) -> None:
    alice.committed()
    failed = alice.failed()
    answer = c.HoldRefused("r1", "offer-res1-1", RefusalCode.SLOT_TAKEN)
    if how == "failure":
        answer = replace(failed, body=replace(failed.body, reason=""))
    effects = alice.hear("res1", answer)
    (void,) = [each for each in records(effects) if isinstance(each, VoidAsked)]
    assert void.reason == "unit 1 failed at res1: slot_taken"
    assert [each.detail for each in reports(effects, UnitAdvanced)] == ["slot_taken"]
    order, paid = alice.confirmation.order_id, alice.proof().payment
    effects = alice.hear("bank", c.OrderPosted(order, (paid,)))  # it was posted before the bank heard of the void
    (closed,) = [each for each in records(effects) if isinstance(each, OrderClosed)]
    assert closed.detail == ""


def test_a_unit_goes_on_without_a_word(alice: Any) -> None:
    effects = [*alice.committed(), *alice.hear("res1", alice.proof())]
    told = reports(effects, UnitAdvanced)
    assert [(each.stage, each.detail) for each in told] == [("confirming", ""), ("settled", "")]
    assert alice.outcome.units[0].paid is None  # the price offered


# -- the state of an agreement in one word ---------------------------------------------------------------------------


def ended(effects: list[Any]) -> Any:
    (report,) = reports(effects, ChangeEnded)
    return report.outcome


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
    alice.go("auction", "grant")
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
