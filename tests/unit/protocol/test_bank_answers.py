"""What the bank's answers carry: whose question they answer, why something is refused, what was asked to be shown."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR, MINUTE
from ramp.protocol import events as ev
from ramp.protocol.bank.answers import agreement_answer
from ramp.protocol.events import OrderFate, OrderStanding

COST = 96_000


def paid(bank: Any) -> None:
    bank.order()
    bank.countersign(bank.line())


def test_an_answer_names_the_message_that_it_answers(bank: Any) -> None:
    (sent,) = bank.hear("alice", c.PaymentOrder("o1", (bank.line(),), 2 * MINUTE), 10)
    assert (sent.message.in_reply_to, sent.message.conversation_id) == ("w", "r1")


def test_answers_of_the_ledger_go_to_who_asked_in_whatever_order_they_come(bank: Any, seal_message: Any) -> None:
    asked = [
        seal_message(Message(Performative.QUERY_REF, name, "bank", name, c.AccountQuery(f"n-{name}", name)), at=10)
        for name in ("alice", "mallory")
    ]
    effects = [effect for message in asked for effect in bank.party.handle(ev.MessageReceived(message), 10)]
    answers = [bank.party.handle(bank.books.answer(effect, 11), 11)[0].message for effect in reversed(effects)]
    assert [(each.receiver, each.content.nonce) for each in answers] == [("mallory", "n-mallory"), ("alice", "n-alice")]


def test_a_void_is_remembered_as_long_as_an_order_may_last_and_no_longer(bank: Any, said: Any) -> None:
    def withdrawn(order_id: str, until: int) -> Any:
        (answer,) = said(bank.hear("alice", c.OrderWithdrawal(order_id, until, "no longer"), 10))
        return answer

    assert isinstance(withdrawn("o1", 7 * 24 * HOUR + 10), c.OrderVoided)  # of a job that waits for its start
    refused = withdrawn("o2", 7 * 24 * HOUR + 11)
    assert (type(refused), refused.code) == (c.OrderRefused, "bad_terms")
    assert refused.detail.endswith("at most 15 minutes, or for one queued job 168 hours")


@pytest.mark.parametrize(
    ("since", "until", "kinds"),
    [(None, None, []), (0, 5, ["deposit"]), (5, HOUR, ["payment"]), (0, HOUR, ["deposit", "payment"])],
)
def test_a_statement_has_the_transfers_of_its_period(
    bank: Any, said: Any, since: int | None, until: int | None, kinds: list[str]
) -> None:
    paid(bank)
    (statement,) = said(bank.hear("alice", c.AccountQuery("n1", "alice", since, until), 2 * HOUR))
    assert [line.kind for line in statement.lines] == kinds


def test_the_overview_comes_in_pages(bank: Any, said: Any) -> None:
    for number in range(300):
        bank.ledger.deposit(f"more-{number}", "mallory", 1, at=3)
    (first,) = said(bank.hear("keeper", c.OverviewQuery("q"), 30))
    assert first.next_after > 0
    (second,) = said(bank.hear("keeper", c.OverviewQuery("q", after=first.next_after), 31))
    numbers = [each.transfer_id for page in (first, second) for each in page.trades]
    assert (len(numbers), len(set(numbers)), second.next_after) == (301, 301, 0)


@pytest.mark.parametrize(("reason", "told"), [("it burns", "it burns"), ("", "slot_taken")])
@pytest.mark.parametrize("sender", ["res1", "alice"])
def test_why_a_resource_failed_is_told_on(bank: Any, said: Any, reason: str, told: str, sender: str) -> None:
    bank.order()
    answers = said(bank.hear(sender, bank.failure(reason=reason), 30))
    (voided,) = [each for each in answers if isinstance(each, c.OrderVoided)]
    assert voided.detail == told


def test_a_claim_for_what_was_never_paid_says_so(bank: Any, said: Any) -> None:
    bank.order()
    answers = said(bank.hear("alice", bank.failure(), 30))
    (refused,) = [each for each in answers if isinstance(each, c.ChangeRefused)]
    assert (refused.agreement_id, refused.code, refused.detail) == ("a1", "resource_failed", "it burns")


def test_a_document_that_does_not_hold_is_no_evidence(bank: Any) -> None:
    bank.order()
    bank.hear("res1", c.Unverified("agreement", "a1", "bad_signature", "the digest does not fit"), 20)
    assert [each.kind for each in bank.ledger.evidence("o1")] == ["order"]


def test_every_refusal_says_why(bank: Any, said: Any) -> None:
    """Codes are for programs; whoever reads a log needs a sentence."""
    answers = said(bank.hear("alice", bank.failure(), 10))  # nobody has ordered anything
    answers += said(bank.hear("res1", c.AccountQuery("n1", "alice"), 10))
    answers += said(bank.hear("keeper", c.DepositOrder("d9", "nobody", 5), 10))
    answers.append(bank.order(bank.line(cost=300_000), order_id="o2"))
    paid(bank)
    answers += said(bank.cancellation(bank.line(), ("mallory",), "mallory", 30))
    answers += said(bank.cancellation(bank.line(), ("alice",), "alice", 2 * HOUR))
    assert [type(each).__name__ for each in answers] == [
        "ChangeRefused",
        "RequestRefused",
        "RequestRefused",
        "OrderRefused",
        "ChangeRefused",
        "ChangeRefused",
    ]
    assert [each for each in answers if not each.detail] == []


def test_a_buyer_is_told_which_agreements_never_came(bank: Any, said: Any) -> None:
    here, missing = bank.line(1), bank.line(2, "res2")
    bank.order(here, missing)
    bank.countersign(here, units_total=2)
    (voided,) = [each for each in said(bank.tick(2 * MINUTE)) if isinstance(each, c.OrderVoided)]
    assert voided.awaited == (missing,)


@pytest.mark.parametrize(
    ("since", "until", "deposits"), [(None, None, 3), (10, None, 2), (None, 10, 2), (10, 10, 1), (21, None, 0)]
)
def test_the_overview_is_of_its_period(
    bank: Any, said: Any, since: int | None, until: int | None, deposits: int
) -> None:
    for number, at in enumerate((10, 20)):
        bank.ledger.deposit(f"more-{number}", "mallory", 1, at=at)
    (told,) = said(bank.hear("keeper", c.OverviewQuery("q", since, until), 30))
    assert len(told.trades) == deposits


def test_a_failure_that_is_told_twice_voids_once(bank: Any, said: Any) -> None:
    bank.order()
    assert c.OrderVoided in map(type, said(bank.hear("res1", bank.failure(), 20)))
    assert [type(each) for each in said(bank.hear("res1", bank.failure(), 21))] == [c.ChangeRefused]


def test_the_banks_clock_is_told_to_who_asks(bank: Any) -> None:
    """Everybody dates by it what the bank will judge by its date."""
    (sent,) = bank.hear("res1", c.ClockQuery("q7"), 12_345, conversation="q7")
    assert (sent.message.receiver, sent.message.conversation_id, sent.message.in_reply_to) == ("res1", "q7", "w")
    assert (sent.message.performative, sent.message.content) == (Performative.INFORM, c.ClockReading("q7", 12_345))


def test_a_bank_that_comes_back_voids_what_ran_out_and_knows_what_is_open(bank: Any, said: Any) -> None:
    for number, until in ((1, 2 * MINUTE), (2, 5 * MINUTE), (3, 3 * MINUTE)):
        bank.order(bank.line(number, cost=50_000), order_id=f"o{number}", until=until)
    told = said(bank.restart(3 * MINUTE))
    assert [each.order_id for each in told if isinstance(each, c.OrderVoided)] == ["o1", "o3"]
    assert bank.reserved() == 50_000
    assert bank.order(bank.line(2, cost=50_000), order_id="o2", until=5 * MINUTE, now=3 * MINUTE).order_id == "o2"
    (voided,) = [each for each in said(bank.tick(5 * MINUTE)) if isinstance(each, c.OrderVoided)]
    assert voided.order_id == "o2"
    assert bank.reserved() == 0


def test_who_asks_of_an_amendment_whose_order_is_void_is_told_of_an_amendment() -> None:
    line = c.OrderLine("a1#3", "res1", COST, "offer-a1", "state-0", "state-1")
    order = OrderStanding(
        "o1", "alice", (c.OrderLine("a2", "res2", COST), line), HOUR, OrderFate.VOIDED, "gone", "it is"
    )
    amended = c.ChangeRefused("a1", 3, "gone", "it is")
    assert agreement_answer(order, "a1#3") == (Performative.REFUSE, amended)
    assert agreement_answer(order, "a2") == (Performative.REFUSE, c.PaymentRefused("a2", "gone", "it is"))


def test_of_an_order_that_was_void_before_it_came_nobody_knows_the_lines() -> None:
    void = OrderStanding("o1", "alice", (), HOUR, OrderFate.VOIDED, "withdrawn", "no longer")
    refused = c.PaymentRefused("a1", "withdrawn", "no longer")
    assert agreement_answer(void, "a1") == (Performative.REFUSE, refused)
