"""The bank: votes, orders, refunds, and what it says to whom, over a ledger in memory."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from ramp.ledger.entry import EvidenceKind, Order
from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.instant import HOUR, MINUTE
from ramp.protocol import effects as fx
from ramp.protocol.bank.party import agreement_answer
from ramp.protocol.progress import KeeperOrdered
from tests.unit.protocol.conftest import contents

UNTIL = 2 * MINUTE
COST = 96_000  # 60 credits for each of 16 core hours


def told(effects: list[Any]) -> list[tuple[str, type]]:
    return [(each.message.receiver, type(each.message.content)) for each in effects if isinstance(each, fx.Send)]


def withdraw(bank: Any, now: int = 30, order_id: str = "o1", sender: str = "alice", until: int = UNTIL) -> list[Any]:
    return bank.hear(sender, c.OrderWithdrawal(order_id, until, "no longer"), now)


# -- the vote --------------------------------------------------------------------------------------------------------


def test_money_is_not_set_aside_for_long(bank: Any) -> None:
    lines = (bank.line(), bank.line(2))
    refused = bank.order(*lines, until=15 * MINUTE + 11, now=10)
    assert (type(refused), refused.code) == (c.OrderRefused, "bad_terms")
    assert isinstance(bank.order(*lines, order_id="o2", until=15 * MINUTE + 10, now=10), c.FundsReserved)


def test_an_order_that_is_repeated_with_other_terms_is_refused_and_stands(bank: Any) -> None:
    bank.order()
    assert bank.order(bank.line(cost=1)).code == "duplicate_differs"
    assert bank.order(sender="mallory").code == "duplicate_differs"
    assert isinstance(bank.order(now=20), c.FundsReserved)


# -- posting ---------------------------------------------------------------------------------------------------------


def test_nobody_voids_anothers_order(bank: Any) -> None:
    bank.order()
    (refused,) = contents(withdraw(bank, sender="mallory"))
    assert (type(refused), refused.code, refused.detail) == (c.OrderRefused, "unknown_order", "mallory has no order o1")
    withdraw(bank, now=5, order_id="o2", sender="mallory")  # in advance: remembered as her own, not as alice's
    assert isinstance(bank.order(bank.line(2), order_id="o2"), c.FundsReserved)
    assert bank.reserved() == 2 * COST


def test_a_bank_looks_for_expired_orders_only_while_one_is_open(bank: Any) -> None:
    paid(bank)
    bank.order(bank.line(2, cost=1), order_id="o2", until=UNTIL + 1)
    bank.order(bank.line(3, cost=1), order_id="o3", until=UNTIL + MINUTE)
    assert bank.party.tick(UNTIL) == []  # the first one is posted
    assert told(bank.tick(UNTIL + 1)) == [("alice", c.OrderVoided), ("res1", c.PaymentRefused)]
    assert (bank.party.tick(UNTIL + 2), bank.party.deadline) == ([], UNTIL + MINUTE)


def test_a_void_says_why_and_which_agreements_were_awaited(bank: Any) -> None:
    bank.order(bank.line(), bank.line(2))
    bank.countersign(bank.line(), units_total=2)
    void = c.OrderVoided("o1", "expired", "the order was valid until 1970-01-01T00:02:00Z", (bank.line(2),))
    assert void in contents(bank.tick(UNTIL))
    assert bank.order(bank.line(), bank.line(2), now=UNTIL) == void


def test_the_deadline_of_an_order_is_a_date(bank: Any) -> None:
    bank.order()
    bank.party.clock_set(HOUR)
    assert bank.party.deadline == UNTIL


# -- who may bring an agreement --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sender", ["res2", "alice", "mallory"])
def test_an_agreement_brought_by_another_leaves_no_trace(bank: Any, sender: str) -> None:
    bank.order()
    entries = bank.ledger.snapshot()
    (refused,) = contents(bank.countersign(bank.line(), sender=sender))
    assert (type(refused), refused.code) == (c.PaymentRefused, "unknown_agreement")
    assert bank.ledger.snapshot() == entries
    assert told(bank.countersign(bank.line())) == [("res1", c.PaymentMade)]


def test_an_agreement_that_no_order_names_leaves_no_trace(bank: Any) -> None:
    """Attack A6: who learns an id in advance cannot have it refused for good."""
    entries = bank.ledger.snapshot()
    (refused,) = contents(bank.countersign(bank.line()))
    assert refused == c.PaymentRefused("a1", "unknown_agreement", "no order contains it")
    broken = c.Unverified("agreement", "a1", "bad_signature", "the digest does not fit")
    assert type(contents(bank.hear("res1", broken, 10))[0]) is c.PaymentRefused
    assert bank.ledger.snapshot() == entries
    assert isinstance(bank.order(), c.FundsReserved)
    bank.hear("res1", broken, 20)
    assert [each.kind for each in bank.ledger.evidence("o1")] == [EvidenceKind.ORDER]  # a broken document is none


@pytest.mark.parametrize(
    "change",
    [
        {"bank": "another-bank"},
        {"user": "mallory"},
        {"valid_until": UNTIL + 1},
        {"units_total": 2},
        {"resource": "res2"},
        {"cost": COST - 1},
    ],
    ids=str,
)
def test_an_agreement_must_say_what_was_ordered(bank: Any, change: dict[str, Any]) -> None:
    bank.order()
    effects = bank.countersign(bank.line(), **change)
    assert set(told(effects)) == {("alice", c.OrderVoided), ("res1", c.PaymentRefused)}
    assert (bank.posted("alice"), bank.reserved()) == (200_000, 0)
    assert [each.kind for each in bank.ledger.evidence("o1")] == [EvidenceKind.ORDER, EvidenceKind.VOID]


@pytest.mark.parametrize(("price", "cost"), [(61, COST), (59, COST // 60 * 59), (61, COST // 60 * 61)])
def test_offer_agreement_and_order_have_one_cost(bank: Any, price: int, cost: int) -> None:
    bank.order()
    offer = replace(bank.agreement(bank.line()).offer, cpu_hour_cost=price)
    assert set(told(bank.countersign(bank.line(), offer=offer, cost=cost))) == {
        ("alice", c.OrderVoided),
        ("res1", c.PaymentRefused),
    }


# -- failures and claims ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signer", "sender"), [*product(("alice", "res2", "mallory"), ("alice", "res1")), ("res1", "mallory")]
)
@pytest.mark.parametrize("posted", [True, False])
def test_nobody_signs_that_another_has_failed_or_claims_what_another_has_bought(
    bank: Any, signer: str, sender: str, posted: bool
) -> None:
    bank.order()
    if posted:
        bank.countersign(bank.line())
    entries = bank.ledger.snapshot()
    (refused,) = contents(bank.hear(sender, bank.failure(signer), 30))
    assert (type(refused), refused.code) == (c.ChangeRefused, "bad_signature")
    assert bank.ledger.snapshot() == entries


@pytest.mark.parametrize("signers", [("alice", "res1"), ("res1", "alice"), ("res1", "res1"), ()])
def test_a_failure_has_the_signature_of_its_resource_alone(bank: Any, signers: tuple[str, ...]) -> None:
    paid(bank)
    (refused,) = contents(bank.hear("alice", replace(bank.failure(), signers=signers), 30))
    assert (type(refused), refused.code) == (c.ChangeRefused, "bad_signature")
    assert bank.posted("res1") == COST


@pytest.mark.parametrize("change", [{"offer_id": "offer-a2"}, {"user": "mallory"}, {"resource": "res2"}], ids=str)
def test_a_failure_counts_for_its_offer_and_parties_only(bank: Any, change: dict[str, str]) -> None:
    paid(bank)
    failure = bank.failure(change.get("resource", "res1"), **change)
    (refused,) = contents(bank.hear(change.get("user", "alice"), failure, 30))
    assert isinstance(refused, c.ChangeRefused)
    assert bank.posted("res1") == COST


# -- cancellations ---------------------------------------------------------------------------------------------------


def paid(bank: Any) -> Any:
    bank.order()
    bank.countersign(bank.line())
    return bank.line()


@pytest.mark.parametrize(
    ("change", "signers", "sender"),
    [
        ({"resource": "res2"}, ("alice", "res2"), "res2"),
        ({"user": "mallory"}, ("mallory", "res1"), "res1"),
        ({"user": "mallory"}, ("mallory",), "mallory"),
    ],
)
def test_a_refund_is_for_the_two_who_paid(
    bank: Any, change: dict[str, Any], signers: tuple[str, ...], sender: str
) -> None:
    (refused,) = contents(bank.cancellation(paid(bank), signers, sender, 30, **change))
    assert (type(refused), refused.code) == (c.ChangeRefused, "unknown_transfer")
    assert bank.posted("res1") == COST


def test_both_together_end_an_agreement_while_its_slot_runs_and_the_keeper_finds_it_ended(bank: Any) -> None:
    effects = bank.cancellation(paid(bank), ("alice", "res1"), "res1", HOUR + MINUTE, reason="")
    effects += bank.hear("keeper", c.RefundOrder("a1", "the machine was down"), 2 * HOUR)
    effects += bank.hear("alice", c.PaymentQuery("a1"), 2 * HOUR)
    assert [(each.number, each.refund) for each in contents(effects)] == [(0, COST)] * 6
    assert bank.ledger.transfer("a1", c.TransferKind.REFUND).memo == ""


def test_the_words_on_which_money_moves_are_kept(bank: Any) -> None:
    paid(bank)
    bank.order(bank.line(2), order_id="o2")
    withdraw(bank, order_id="o2")
    bank.hear("alice", c.ChangeWithdrawal("a1", 1), 30)
    bank.hear("keeper", c.DepositOrder("d9", "alice", 5, "for tests"), 30)
    kept = [each for name in ("o1", "a1", "o2", "d9") for each in bank.ledger.evidence(name)]
    assert [each.kind for each in kept if each.text] == ["order", "agreement", "change", "order", "void", "deposit"]
    assert bank.ledger.transfer("d9", c.TransferKind.DEPOSIT).memo == "for tests"


def test_the_refund_after_a_failure_has_its_code_for_a_missing_reason_and_its_document(bank: Any) -> None:
    paid(bank)
    bank.hear("alice", bank.failure(reason=""), 30)
    assert bank.ledger.transfer("a1", c.TransferKind.REFUND).memo == "slot_taken"
    assert [each.text for each in bank.ledger.evidence("a1") if each.kind is EvidenceKind.CHANGE] == ["text"]


# -- questions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sender", "learns"), [("alice", True), ("res1", True), ("res2", False), ("mallory", False)])
def test_what_became_of_an_agreement_is_told_to_its_parties_only(bank: Any, sender: str, learns: bool) -> None:
    paid(bank)
    (answer,) = contents(bank.hear(sender, c.PaymentQuery("a1"), 30))
    assert type(answer) is (c.PaymentMade if learns else c.PaymentRefused)
    if not learns:
        assert (answer.code, answer.detail) == ("unknown_agreement", "no order contains it with its sender")


@pytest.mark.parametrize("sender", ["mallory", "res1"])
def test_an_account_is_shown_to_its_owner_only(bank: Any, sender: str) -> None:
    """Attack A7: a captured query, sent by another."""
    (refused,) = contents(bank.hear(sender, c.AccountQuery("n1", "alice"), 10))
    assert (type(refused), refused.code) == (c.RequestRefused, "not_own_account")
    (statement,) = contents(bank.hear("alice", c.AccountQuery("n1", "alice"), 11))
    assert (statement.balance, statement.lines) == (200_000, ())
    for since, until, amounts in ((0, 1, []), (0, 2, [200_000]), (3, None, [])):  # the only deposit was at 2
        query = c.AccountQuery(f"n-{since}-{until}", "alice", since, until)
        (statement,) = contents(bank.hear("alice", query, 11))
        assert [each.amount for each in statement.lines] == amounts


# -- the keeper ------------------------------------------------------------------------------------------------------


def test_the_overview_has_all_trades_and_accounts(bank: Any) -> None:
    paid(bank)
    (page,) = contents(bank.hear("keeper", c.OverviewQuery("q"), 30))
    assert [(each.kind, each.amount) for each in page.trades] == [("deposit", 200_000), ("payment", COST)]
    assert {(each.account, each.balance) for each in page.accounts} >= {("alice", 104_000), ("res1", COST)}
    assert sum(each.balance for each in page.accounts) == 0
    assert page.next_after == 0
    for period in ((3, None), (None, 1)):  # the only deposit was at 2
        (page,) = contents(bank.hear("keeper", c.OverviewQuery("q", *period), 30))
        assert "deposit" not in [each.kind for each in page.trades]
    for number in range(500):
        bank.ledger.deposit(f"d-{number}", "mallory", 1, at=31)
    (page,) = contents(bank.hear("keeper", c.OverviewQuery("q"), 31))
    assert page.next_after > 0
    (second,) = contents(bank.hear("keeper", c.OverviewQuery("q", after=page.next_after), 31))
    assert (len({*page.trades, *second.trades}), second.accounts) == (500, ())


# -- answers ---------------------------------------------------------------------------------------------------------


def test_a_void_is_remembered_as_long_as_an_order_may_last_and_no_longer(bank: Any) -> None:
    def withdrawn(order_id: str, until: int) -> Any:
        (answer,) = contents(bank.hear("alice", c.OrderWithdrawal(order_id, until, "no longer"), 10))
        return answer

    assert isinstance(withdrawn("o1", 7 * 24 * HOUR + 10), c.OrderVoided)  # of a job that waits for its start
    refused = withdrawn("o2", 7 * 24 * HOUR + 11)
    assert (type(refused), refused.code) == (c.OrderRefused, "bad_terms")
    assert refused.detail.endswith("at most 15 minutes, or for one queued job 168 hours")


def test_every_refusal_says_why(bank: Any) -> None:
    """Codes are for programs; whoever reads a log needs a sentence."""
    answers = contents(bank.hear("alice", bank.failure(), 10))  # nobody has ordered anything
    answers += contents(bank.hear("res1", c.AccountQuery("n1", "alice"), 10))
    answers += contents(bank.hear("keeper", c.DepositOrder("d9", "nobody", 5), 10))
    answers.append(bank.order(bank.line(cost=300_000), order_id="o2"))
    paid(bank)
    answers += contents(bank.cancellation(bank.line(), ("mallory",), "mallory", 30))
    answers += contents(bank.cancellation(bank.line(), ("alice",), "alice", 2 * HOUR))
    assert [type(each).__name__ for each in answers] == [
        "ChangeRefused",
        "RequestRefused",
        "RequestRefused",
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


def test_of_a_void_order_an_addition_is_refused_as_a_change() -> None:
    addition = c.OrderLine("a1#2", "res1", 5, becomes="digest")
    void = Order("o1", "alice", (addition,), HOUR, 1, c.OrderState.VOIDED, 2, "withdrawn", "why")
    assert agreement_answer(void, "a1#2") == (Performative.REFUSE, c.ChangeRefused("a1", 2, "withdrawn", "why"))


def test_the_keeper_refunds_what_is_left_once_and_both_parties_hear_of_it(bank: Any) -> None:
    order = c.RefundOrder("a1", "the machine was down")
    (refused,) = contents(bank.hear("keeper", order, 10))
    assert refused == c.RequestRefused("a1", "unknown_transfer", "there is no payment for a1")
    bank.order()
    (refused,) = contents(bank.hear("keeper", order, 11))
    assert (type(refused), refused.code) == (c.RequestRefused, "not_posted")
    bank.countersign(bank.line())
    for now in (10 * HOUR, 11 * HOUR):  # also long after the slot
        effects = bank.hear("keeper", order, now)
        assert told(effects) == [("keeper", c.ChangePosted), ("alice", c.ChangePosted), ("res1", c.ChangePosted)]
        assert {(each.refund, each.ordered_for) for each in contents(effects)} == {(COST, "the machine was down")}
        (report,) = [each for each in effects if isinstance(each, fx.Report)]
        assert report.progress == KeeperOrdered("keeper", "refund", f"960.00 credits of a1 to alice ({order.reason})")
        assert (bank.posted("alice"), bank.posted("res1")) == (200_000, 0)
    (kept,) = [each for each in bank.ledger.evidence("a1") if each.kind is EvidenceKind.CHANGE]
    assert kept.text


@pytest.mark.parametrize("sender", ["res1", "res2"])
def test_a_broken_document_voids_if_the_named_resource_brings_it(bank: Any, sender: str) -> None:
    bank.order()
    broken = c.Unverified("agreement", "a1", "bad_signature", "the digest does not fit")
    bank.hear(sender, broken, 20)
    (answer,) = contents(bank.countersign(bank.line(), now=30))
    assert type(answer) is (c.PaymentRefused if sender == "res1" else c.PaymentMade)
