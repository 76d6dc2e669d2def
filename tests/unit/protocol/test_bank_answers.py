"""What the bank's answers carry: whose question they answer, why something is refused, what was asked to be shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.instant import HOUR
from ramp.model.offer import RefusalCode
from ramp.protocol.bank.answers import agreement_answer
from ramp.protocol.events import OrderFate, OrderStanding

FAILED = c.Failed("a1", "offer-a1", RefusalCode.SLOT_TAKEN, "it burns")


def paid(bank: Any) -> None:
    bank.order()
    bank.countersign(bank.line())


def test_a_void_is_remembered_as_long_as_an_order_may_last_and_no_longer(bank: Any, said: Any) -> None:
    def withdrawn(order_id: str, until: int) -> Any:
        (answer,) = said(bank.hear("alice", c.OrderWithdrawal(order_id, until, "no longer"), 10))
        return answer

    assert isinstance(withdrawn("o1", 7 * 24 * HOUR + 10), c.OrderVoided)  # of a job that waits for its start
    refused = withdrawn("o2", 7 * 24 * HOUR + 11)
    assert (type(refused), refused.code) == (c.OrderRefused, "bad_terms")
    assert refused.detail.endswith("at most 15 minutes, or for one queued job 168 hours")


@pytest.mark.parametrize(("detail", "told"), [("it burns", "it burns"), ("", "slot_taken")])
@pytest.mark.parametrize("claimed", [False, True])
def test_why_a_resource_failed_is_told_on(
    bank: Any, said: Any, seal_for: Any, detail: str, told: str, claimed: bool
) -> None:
    bank.order()
    failed = replace(FAILED, detail=detail)
    sender, content = "res1", failed
    if claimed:
        sender, content = "alice", c.RefundClaim(failed, seal_for(failed, "res1", "alice"))
    answers = said(bank.hear(sender, content, 30))
    (voided,) = [each for each in answers if isinstance(each, c.OrderVoided)]
    assert voided.detail == told


def test_every_refusal_says_why(bank: Any, said: Any, seal_for: Any) -> None:
    """Codes are for programs; whoever reads a log needs a sentence."""
    claim = c.RefundClaim(FAILED, seal_for(FAILED, "res1", "alice"))
    answers = said(bank.hear("alice", claim, 10))  # nobody has ordered anything
    answers += said(bank.hear("res1", c.AccountQuery("n1", "alice"), 10))
    answers += said(bank.hear("keeper", c.DepositOrder("d9", "nobody", 5), 10))
    answers.append(bank.order(bank.line(cost=300_000), order_id="o2"))
    paid(bank)
    answers += said(bank.cancellation(bank.line(), ("mallory",), "mallory", 30))
    answers += said(bank.cancellation(bank.line(), ("alice",), "alice", 2 * HOUR))
    assert [type(each).__name__ for each in answers] == [
        "ChangeRefused",
        "AccountQueryRefused",
        "KeeperRefused",
        "OrderRefused",
        "ChangeRefused",
        "ChangeRefused",
    ]
    assert [each for each in answers if not each.detail] == []


def test_the_banks_clock_is_told_to_who_asks(bank: Any) -> None:
    """Everybody dates by it what the bank will judge by its date."""
    (sent,) = bank.hear("res1", c.ClockQuery("q7"), 12_345, conversation="q7")
    assert (sent.message.receiver, sent.message.conversation_id, sent.message.in_reply_to) == ("res1", "q7", "w")
    assert (sent.message.performative, sent.message.content) == (Performative.INFORM, c.ClockReading("q7", 12_345))


def test_of_an_order_that_was_void_before_it_came_nobody_knows_the_lines() -> None:
    void = OrderStanding("o1", "alice", (), HOUR, OrderFate.VOIDED, "withdrawn", "no longer")
    refused = c.PaymentRefused("a1", "withdrawn", "no longer")
    assert agreement_answer(void, "a1") == (Performative.REFUSE, refused)
