"""How an order ends at the bank, and what its buyer does then: who is passed over, what is said, what is no news."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.agreement import Signed
from ramp.model.instant import HOUR, SECOND
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.user.confirmation import ORDER_EXPIRED


def accepted(effects: list[Any]) -> list[str]:
    return [
        each.message.receiver
        for each in effects
        if isinstance(each, fx.Send) and isinstance(each.message.content, c.Acceptance)
    ]


def stages(effects: list[Any]) -> list[tuple[int, str]]:
    told = [each.progress for each in effects if isinstance(each, fx.Report)]
    return [(each.unit, each.stage) for each in told if isinstance(each, UnitAdvanced)]


def line(agreement: Any) -> c.OrderLine:
    return c.OrderLine(agreement.agreement_id, agreement.resource, agreement.cost, agreement.offer.offer_id)


def compare_clocks(one: Any, offset: int) -> None:
    """The user's clock is ahead of the bank's by so much."""
    one.command(ev.ClockAsked("clock-1"), 10 * SECOND)
    one.hear("bank", c.ClockReading("clock-1", 10 * SECOND - offset), 10 * SECOND)


def test_when_the_bank_voids_by_itself_it_says_who_is_passed_over(alice: Any) -> None:
    """The order has run out there: its buyer has not given anybody up yet."""
    alice.committed()
    (agreement,) = alice.confirmation.agreements
    effects = alice.hear("bank", c.OrderVoided(agreement.order_id, ORDER_EXPIRED, "", (line(agreement),)))
    assert accepted(effects) == ["res2"]
    assert alice.outcome is None


def test_when_the_bank_names_nobody_its_buyer_passes_over_who_was_silent(alice: Any) -> None:
    alice.committed()
    order_id = alice.confirmation.order_id
    while alice.confirmation.state.value == "confirming":
        now = alice.party.deadline
        alice.tick(now)
    assert accepted(alice.hear("bank", c.OrderVoided(order_id, "withdrawn"), now)) == ["res2"]


def test_an_order_that_ends_while_nobody_is_to_blame_ends_the_request(alice: Any) -> None:
    alice.committed()
    effects = alice.hear("bank", c.OrderVoided(alice.confirmation.order_id, "told by the operator"))
    assert accepted(effects) == []
    assert alice.outcome.status is RequestStatus.FAILED


def test_every_unit_of_a_void_order_is_said_to_be_void_but_those_that_have_failed(alice_with_two_units: Any) -> None:
    one = alice_with_two_units
    one.committed(same_resource=False)
    assert stages(one.hear("res1", one.failed())) == [(1, "failed")]
    effects = one.hear("bank", c.OrderVoided(one.confirmation.order_id, "withdrawn"))
    assert [each for each in stages(effects) if each[1] != "asking"] == [(2, "voided")]


@pytest.mark.parametrize("offset", [0, 3 * SECOND])
@pytest.mark.parametrize("code", [ORDER_EXPIRED, "no_funds"])
def test_whose_order_has_run_out_too_early_reads_that_the_clock_is_wrong(alice: Any, code: str, offset: int) -> None:
    compare_clocks(alice, offset)
    alice.auction()
    alice.grant()
    alice.hear("bank", c.OrderRefused(alice.confirmation.order_id, code, "it says why"))
    refused, _, warning = alice.outcome.reason.partition("; ")
    assert refused == "the bank refuses the order: it says why"
    assert bool(warning) is (code == ORDER_EXPIRED and offset > 0)
    assert warning.startswith("the clock here is 3.000 s ahead of the bank's" if warning else "")


def test_what_is_paid_before_a_void_is_asked_for_is_proved_by_the_resources(alice: Any) -> None:
    """The bank says so only to who asks for a void: unasked it is a copy, and the proof is still awaited."""
    alice.committed()
    (agreement,) = alice.confirmation.agreements
    paid = (c.PaymentMade(agreement.agreement_id, "t1", agreement.cost),)
    assert alice.hear("bank", c.OrderPosted(agreement.order_id, paid)) == []
    alice.hear("res1", alice.proof())
    assert alice.outcome.status is RequestStatus.COMMITTED


def test_what_is_no_word_of_a_commitment_is_refused_and_who_was_not_understood_answers_nothing(alice: Any) -> None:
    alice.committed()
    assert alice.hear("res1", c.NotUnderstood("garbled")) == []
    with pytest.raises(RemoteProtocolError, match="Rejection is not a message of a commitment"):
        alice.hear("res1", c.Rejection("r1", "offer-res1-1", "no"))
    assert alice.confirmation.state.value == "confirming"


def test_a_request_of_another_life_is_still_given_the_clocks_warning(alice: Any, restarted_user: Any) -> None:
    """Its order is taken up again after a restart, and has run out meanwhile."""
    alice.committed()
    order_id = alice.confirmation.order_id
    again, _ = restarted_user(alice.journal, SECOND)
    compare_clocks(again, HOUR)
    again.hear("bank", c.OrderVoided(order_id, ORDER_EXPIRED), 10 * SECOND)
    assert "the clock here is 3600.000 s ahead of the bank's" in again.outcome.reason


def test_a_claim_that_the_bank_has_refused_is_not_made_again_when_the_request_hears_more(alice: Any, said: Any) -> None:
    alice.committed()
    (agreement,) = alice.confirmation.agreements
    alice.hear("res1", alice.failed())
    paid = (c.PaymentMade(agreement.agreement_id, "t1", agreement.cost),)
    effects = alice.hear("bank", c.OrderPosted(agreement.order_id, paid))
    assert [type(each) for each in said(effects) if isinstance(each, Signed)] == [Signed]
    alice.hear("bank", c.ChangeRefused(agreement.agreement_id, 0, "no_funds"))
    late = c.Proposal("r1", 2, (replace(alice.offer("res2", 40), offer_id="late"),))
    effects = alice.hear("res2", late, performative=Performative.PROPOSE)
    assert [type(each) for each in said(effects)] == [c.Rejection]
    assert alice.party.agreement_state(agreement.agreement_id) == "active"
