"""How an order ends at the bank, and what its buyer does then: who is passed over, what is said, what is no news."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.instant import SECOND
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.user.confirmation import ORDER_EXPIRED


def stages(effects: list[Any]) -> list[tuple[int, str]]:
    told = [each.progress for each in effects if isinstance(each, fx.Report)]
    return [(each.unit, each.stage) for each in told if isinstance(each, UnitAdvanced)]


def compare_clocks(one: Any, offset: int) -> None:
    """The user's clock is ahead of the bank's by so much."""
    one.command(ev.ClockAsked("clock-1"), 10 * SECOND)
    one.hear("bank", c.ClockReading("clock-1", 10 * SECOND - offset), 10 * SECOND)


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


def test_a_claim_that_the_bank_has_refused_is_not_made_again_when_the_request_hears_more(alice: Any, said: Any) -> None:
    alice.committed()
    (agreement,) = alice.confirmation.agreements
    alice.hear("res1", alice.failed())
    paid = (c.PaymentMade(agreement.agreement_id, "t1", agreement.cost),)
    effects = alice.hear("bank", c.OrderPosted(agreement.order_id, paid))
    assert [type(each) for each in said(effects) if isinstance(each, c.RefundClaim)] == [c.RefundClaim]
    alice.hear("bank", c.ChangeRefused(agreement.agreement_id, 0, "no_funds"))
    late = c.Proposal("r1", 2, (replace(alice.offer("res2", 40), offer_id="late"),))
    effects = alice.hear("res2", late, performative=Performative.PROPOSE)
    assert [type(each) for each in said(effects)] == [c.Rejection]
    assert alice.party.agreement_state(agreement.agreement_id) == "active"
