"""The bank: it votes for all of an order or none of it, decides once, and listens to those only who have a say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.ledger.evidence import EvidenceKind
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR, MINUTE
from ramp.model.seal import Role
from ramp.protocol import effects as fx

UNTIL = 2 * MINUTE
COST = 96_000  # 60 credits for each of 16 core hours


def told(effects: list[Any]) -> list[tuple[str, type]]:
    return [(each.message.receiver, type(each.message.content)) for each in effects if isinstance(each, fx.Send)]


def withdraw(bank: Any, now: int = 30, order_id: str = "o1", sender: str = "alice", until: int = UNTIL) -> list[Any]:
    return bank.hear(sender, c.OrderWithdrawal(order_id, until, "no longer"), now)


# -- the vote --------------------------------------------------------------------------------------------------------


def test_the_vote_says_for_how_long_the_money_is_set_aside(bank: Any) -> None:
    vote = bank.order(now=10)
    assert vote == c.FundsReserved("o1", "alice", (bank.line(),), UNTIL - 10, UNTIL, 10)
    assert (bank.reserved(), bank.posted("alice")) == (COST, 200_000)


@pytest.mark.parametrize("costs", [(COST, 200_000 - COST + 1), (200_001,), (COST, COST, COST)])
def test_all_lines_are_set_aside_or_none(bank: Any, costs: tuple[int, ...]) -> None:
    lines = [bank.line(number, f"res{1 + number % 2}", cost) for number, cost in enumerate(costs)]
    refused = bank.order(*lines)
    assert (type(refused), refused.code) == (c.OrderRefused, "insufficient_funds")
    assert bank.reserved() == 0


def test_a_refusal_is_final(bank: Any) -> None:
    line = bank.line(cost=300_000)
    assert bank.order(line).code == "insufficient_funds"
    bank.ledger.deposit("d2", "alice", 10**9, at=11)
    assert bank.order(line, now=12).code == "insufficient_funds"
    assert bank.restart(13) == []
    assert bank.order(line, now=14).code == "insufficient_funds"
    assert bank.reserved() == 0


def test_money_is_not_set_aside_for_long(bank: Any) -> None:
    lines = (bank.line(), bank.line(2))
    refused = bank.order(*lines, until=15 * MINUTE + 11, now=10)
    assert (type(refused), refused.code) == (c.OrderRefused, "bad_terms")
    assert isinstance(bank.order(*lines, order_id="o2", until=15 * MINUTE + 10, now=10), c.FundsReserved)


def test_for_one_job_that_may_wait_money_is_set_aside_for_a_week(bank: Any) -> None:
    refused = bank.order(until=7 * 24 * HOUR + 11, now=10)
    assert (type(refused), refused.code) == (c.OrderRefused, "bad_terms")
    assert isinstance(bank.order(order_id="o2", until=7 * 24 * HOUR + 10, now=10), c.FundsReserved)


def test_an_order_that_is_repeated_with_other_terms_is_refused_and_stands(bank: Any) -> None:
    bank.order()
    assert bank.order(bank.line(cost=1)).code == "duplicate_differs"
    assert bank.order(sender="mallory").code == "duplicate_differs"
    assert isinstance(bank.order(now=20), c.FundsReserved)


def test_no_lines_and_too_many_are_refused(bank: Any) -> None:
    assert type(bank.hear("alice", c.PaymentOrder("o5", (), UNTIL), 10)[0].message.content) is c.OrderRefused
    many = tuple(bank.line(number, cost=1) for number in range(10_000))
    assert type(bank.hear("alice", c.PaymentOrder("o6", many, UNTIL), 10)[0].message.content) is c.OrderRefused
    twice = bank.hear("alice", c.PaymentOrder("o7", (bank.line(), bank.line()), UNTIL), 10)
    assert type(twice[0].message.content) is c.OrderRefused
    assert bank.reserved() == 0


# -- posting ---------------------------------------------------------------------------------------------------------


def two_units(bank: Any) -> tuple[c.OrderLine, c.OrderLine]:
    lines = bank.line(1), bank.line(2, "res2")
    bank.order(*lines)
    return lines


def test_nothing_is_posted_before_all_agreements_are_there(bank: Any) -> None:
    first, second = two_units(bank)
    assert bank.countersign(first, units_total=2) == []
    assert (bank.posted("res1"), bank.posted("res2"), bank.reserved()) == (0, 0, 2 * COST)
    effects = bank.countersign(second, units_total=2)
    assert told(effects) == [("res1", c.PaymentMade), ("res2", c.PaymentMade)]
    assert (bank.posted("res1"), bank.posted("res2"), bank.reserved()) == (COST, COST, 0)
    (again,) = bank.countersign(first, units_total=2)  # a copy: the same answer, paid once
    assert (again.message.content.agreement_id, bank.posted("res1")) == ("a1", COST)


def test_void_beats_what_comes_later(bank: Any, said: Any) -> None:
    first, second = two_units(bank)
    bank.countersign(first, units_total=2)
    effects = withdraw(bank)
    assert told(effects) == [("res1", c.PaymentRefused), ("res2", c.PaymentRefused), ("alice", c.OrderVoided)]
    assert said(effects)[-1].awaited == (second,)
    (refused,) = said(bank.countersign(second, units_total=2))
    assert (type(refused), refused.code) == (c.PaymentRefused, "withdrawn")
    assert type(bank.order(first, second, now=50)) is c.OrderVoided
    assert (bank.posted("alice"), bank.reserved()) == (200_000, 0)


def test_nobody_voids_anothers_order(bank: Any, said: Any) -> None:
    bank.order()
    (refused,) = said(withdraw(bank, sender="mallory"))
    assert (type(refused), refused.code, refused.detail) == (c.OrderRefused, "unknown_order", "mallory has no order o1")
    withdraw(bank, now=5, order_id="o2", sender="mallory")  # in advance: remembered as her own, not as alice's
    assert isinstance(bank.order(bank.line(2), order_id="o2"), c.FundsReserved)
    assert bank.reserved() == 2 * COST


@pytest.mark.parametrize("swept", [True, False])
@pytest.mark.parametrize("late", [0, 1])
def test_at_the_deadline_by_the_banks_clock_the_order_is_void(bank: Any, said: Any, swept: bool, late: int) -> None:
    bank.order()
    assert bank.party.deadline == UNTIL
    now = UNTIL + late
    if swept:
        assert told(bank.tick(now)) == [("alice", c.OrderVoided), ("res1", c.PaymentRefused)]
    answers = [each for each in said(bank.countersign(bank.line(), now=now)) if type(each) is c.PaymentRefused]
    assert [each.code for each in answers] == ["expired"]
    assert type(bank.order(now=now)) is c.OrderVoided
    assert (bank.posted("res1"), bank.reserved()) == (0, 0)


def test_an_instant_before_the_deadline_it_is_posted(bank: Any) -> None:
    bank.order()
    assert bank.tick(UNTIL - 1) == []
    assert told(bank.countersign(bank.line(), now=UNTIL - 1)) == [("res1", c.PaymentMade)]


def test_a_bank_that_was_down_at_the_deadline_tells_when_it_is_back(bank: Any) -> None:
    bank.order()
    assert told(bank.restart(UNTIL + HOUR)) == [("alice", c.OrderVoided), ("res1", c.PaymentRefused)]
    assert bank.restart(UNTIL + HOUR) == []


# -- who may bring an agreement --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sender", ["res2", "alice", "mallory"])
def test_an_agreement_brought_by_another_leaves_no_trace(bank: Any, said: Any, sender: str) -> None:
    bank.order()
    entries = bank.ledger.entries()
    (refused,) = said(bank.countersign(bank.line(), sender=sender))
    assert (type(refused), refused.code) == (c.PaymentRefused, "unknown_agreement")
    assert bank.ledger.entries() == entries
    assert told(bank.countersign(bank.line())) == [("res1", c.PaymentMade)]


def test_an_agreement_that_no_order_names_leaves_no_trace(bank: Any, said: Any) -> None:
    """Attack A6: who learns an id in advance cannot have it refused for good."""
    entries = bank.ledger.entries()
    (refused,) = said(bank.countersign(bank.line()))
    assert refused == c.PaymentRefused("a1", "unknown_agreement", "no order contains it")
    broken = c.Unverified("agreement", "a1", "bad_signature", "the digest does not fit")
    assert type(said(bank.hear("res1", broken, 10))[0]) is c.PaymentRefused
    assert bank.ledger.entries() == entries
    assert isinstance(bank.order(), c.FundsReserved)


@pytest.mark.parametrize("sender", ["res1", "res2"])
def test_a_broken_document_voids_if_the_named_resource_brings_it(bank: Any, said: Any, sender: str) -> None:
    bank.order()
    broken = c.Unverified("agreement", "a1", "bad_signature", "the digest does not fit")
    bank.hear(sender, broken, 20)
    (answer,) = said(bank.countersign(bank.line(), now=30))
    assert type(answer) is (c.PaymentRefused if sender == "res1" else c.PaymentMade)


@pytest.mark.parametrize(
    "change",
    [
        {"signers": ("alice",)},
        {"signers": ("res1", "alice")},
        {"signers": ("mallory", "res1")},
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


@pytest.mark.parametrize(("price", "cost"), [(61, COST), (59, COST // 60 * 59), (61, COST // 60 * 61)])
def test_offer_agreement_and_order_have_one_cost(bank: Any, price: int, cost: int) -> None:
    bank.order()
    offer = replace(bank.agreement(bank.line()).offer, cpu_hour_cost=price)
    assert set(told(bank.countersign(bank.line(), offer=offer, cost=cost))) == {
        ("alice", c.OrderVoided),
        ("res1", c.PaymentRefused),
    }


# -- failures and claims ---------------------------------------------------------------------------------------------


def test_a_resources_own_failure_voids_the_whole_order(bank: Any, said: Any) -> None:
    first, _ = two_units(bank)
    bank.countersign(first, units_total=2)
    effects = bank.hear("res1", bank.failure(), 30)
    assert set(told(effects)) == {
        ("alice", c.OrderVoided),
        ("res1", c.PaymentRefused),
        ("res2", c.PaymentRefused),
        ("res1", c.ChangeRefused),
    }
    assert bank.reserved() == 0


@pytest.mark.parametrize("signer", ["alice", "res2", "mallory"])
@pytest.mark.parametrize("sender", ["alice", "res1"])
@pytest.mark.parametrize("posted", [True, False])
def test_nobody_signs_that_another_has_failed(bank: Any, said: Any, signer: str, sender: str, posted: bool) -> None:
    bank.order()
    if posted:
        bank.countersign(bank.line())
    entries = bank.ledger.entries()
    (refused,) = said(bank.hear(sender, bank.failure(signer), 30))
    assert (type(refused), refused.code) == (c.ChangeRefused, "bad_signature")
    assert bank.ledger.entries() == entries


@pytest.mark.parametrize("signers", [("alice", "res1"), ("res1", "alice"), ("res1", "res1"), ()])
def test_a_failure_has_the_signature_of_its_resource_alone(bank: Any, said: Any, signers: tuple[str, ...]) -> None:
    bank.order()
    bank.countersign(bank.line())
    (refused,) = said(bank.hear("alice", replace(bank.failure(), signers=signers), 30))
    assert (type(refused), refused.code) == (c.ChangeRefused, "bad_signature")
    assert bank.posted("res1") == COST


def test_a_failure_that_its_resource_has_signed_brings_the_money_back(bank: Any) -> None:
    """Attack A5: the resource takes the money and says that it has failed, even after the slot."""
    bank.order()
    bank.countersign(bank.line())
    effects = bank.hear("alice", bank.failure(), 2 * HOUR)
    assert told(effects) == [("alice", c.ChangePosted), ("res1", c.ChangePosted)]
    assert (bank.posted("alice"), bank.posted("res1")) == (200_000, 0)
    bank.hear("alice", bank.failure(), 2 * HOUR)
    assert bank.posted("alice") == 200_000  # once


@pytest.mark.parametrize("change", [{"offer_id": "offer-a2"}, {"user": "mallory"}, {"resource": "res2"}], ids=str)
def test_a_failure_counts_for_its_offer_and_parties_only(bank: Any, said: Any, change: dict[str, str]) -> None:
    bank.order()
    bank.countersign(bank.line())
    failure = bank.failure(change.get("resource", "res1"), **change)
    (refused,) = said(bank.hear(change.get("user", "alice"), failure, 30))
    assert isinstance(refused, c.ChangeRefused)
    assert bank.posted("res1") == COST


@pytest.mark.parametrize("posted", [True, False])
def test_nobody_claims_what_another_has_bought(bank: Any, said: Any, posted: bool) -> None:
    bank.order()
    if posted:
        bank.countersign(bank.line())
    entries = bank.ledger.entries()
    (refused,) = said(bank.hear("mallory", bank.failure(), 30))
    assert (type(refused), refused.code) == (c.ChangeRefused, "bad_signature")
    assert bank.ledger.entries() == entries


def test_a_claim_for_what_was_never_paid_voids_and_refunds_nothing(bank: Any, said: Any) -> None:
    bank.order()
    answers = said(bank.hear("alice", bank.failure(), 30))
    assert c.ChangeRefused in map(type, answers)
    assert (bank.posted("alice"), bank.reserved()) == (200_000, 0)


# -- cancellations ---------------------------------------------------------------------------------------------------


def paid(bank: Any) -> Any:
    bank.order()
    bank.countersign(bank.line())
    return bank.line()


BOTH, BUYER = ("alice", "res1"), ("alice",)


@pytest.mark.parametrize(("now", "refunds"), [(HOUR - 1, True), (HOUR, False), (2 * HOUR, False)])
def test_the_buyer_alone_is_refunded_while_the_slot_has_not_begun(
    bank: Any, said: Any, now: int, refunds: bool
) -> None:
    line = paid(bank)
    effects = bank.cancellation(line, BUYER, "alice", now)
    if refunds:
        assert told(effects) == [("alice", c.ChangePosted), ("res1", c.ChangePosted)]
    else:
        assert [(type(each), each.code) for each in said(effects)] == [(c.ChangeRefused, "started")]
    assert bank.posted("res1") == (0 if refunds else COST)


def test_both_together_are_refunded_at_any_time(bank: Any) -> None:
    effects = bank.cancellation(paid(bank), BOTH, "res1", 2 * HOUR)
    assert told(effects) == [("res1", c.ChangePosted), ("alice", c.ChangePosted)]
    assert bank.posted("alice") == 200_000


@pytest.mark.parametrize(
    ("signers", "sender"),
    [
        (BUYER, "res1"),
        (BUYER, "mallory"),
        (BOTH, "alice"),
        (BOTH, "res2"),
        (("mallory",), "mallory"),
        (("res1",), "res1"),
        ((), "alice"),
        (("res1", "alice"), "res1"),
    ],
)
def test_a_cancellation_is_its_bearers_own(bank: Any, said: Any, signers: tuple[str, ...], sender: str) -> None:
    (refused,) = said(bank.cancellation(paid(bank), signers, sender, 30))
    assert (type(refused), refused.code) == (c.ChangeRefused, "bad_signature")
    assert bank.posted("res1") == COST


@pytest.mark.parametrize(
    ("change", "signers", "sender"),
    [
        ({"resource": "res2"}, ("alice", "res2"), "res2"),
        ({"user": "mallory"}, ("mallory", "res1"), "res1"),
        ({"user": "mallory"}, ("mallory",), "mallory"),
    ],
)
def test_a_refund_is_for_the_two_who_paid(
    bank: Any, said: Any, change: dict[str, Any], signers: tuple[str, ...], sender: str
) -> None:
    (refused,) = said(bank.cancellation(paid(bank), signers, sender, 30, **change))
    assert (type(refused), refused.code) == (c.ChangeRefused, "bad_terms")
    assert bank.posted("res1") == COST


# -- questions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sender", "learns"), [("alice", True), ("res1", True), ("res2", False), ("mallory", False)])
def test_what_became_of_an_agreement_is_told_to_its_parties_only(
    bank: Any, said: Any, sender: str, learns: bool
) -> None:
    paid(bank)
    (answer,) = said(bank.hear(sender, c.PaymentQuery("a1"), 30))
    assert type(answer) is (c.PaymentMade if learns else c.PaymentRefused)
    if not learns:
        assert (answer.code, answer.detail) == ("unknown_agreement", "no order contains it with its sender")


def test_while_others_are_awaited_a_question_is_not_answered(bank: Any, said: Any) -> None:
    two_units(bank)
    assert said(bank.hear("res1", c.PaymentQuery("a1"), 30)) == []


@pytest.mark.parametrize("sender", ["mallory", "res1"])
def test_an_account_is_shown_to_its_owner_only(bank: Any, said: Any, sender: str) -> None:
    """Attack A7: a captured query, sent by another."""
    (refused,) = said(bank.hear(sender, c.AccountQuery("n1", "alice"), 10))
    assert (type(refused), refused.code) == (c.RequestRefused, "not_own_account")
    (statement,) = said(bank.hear("alice", c.AccountQuery("n1", "alice"), 11))  # and the nonce is not used up
    assert (statement.balance, statement.lines) == (200_000, ())


def test_a_resource_sees_its_account_and_reserved_money_is_shown(bank: Any, said: Any) -> None:
    (statement,) = said(bank.hear("res1", c.AccountQuery("n1", "res1"), 11))
    assert statement.account == "res1"
    bank.order()
    (statement,) = said(bank.hear("alice", c.AccountQuery("n2", "alice"), 12))
    assert (statement.balance, statement.reserved) == (200_000, COST)


@pytest.mark.parametrize("role", [Role.BANK, Role.DIRECTORY, Role.KEEPER])
def test_others_have_no_accounts(bank: Any, role: Role) -> None:
    with pytest.raises(RemoteProtocolError, match="must come from a user"):
        bank.hear("alice", c.AccountQuery("n1", "alice"), 10, role=role)


# -- the keeper ------------------------------------------------------------------------------------------------------


def test_deposits_are_the_keepers_orders_and_count_once(bank: Any, said: Any) -> None:
    order = c.DepositOrder("d9", "mallory", 500, "prize")
    for role in set(Role) - {Role.KEEPER}:
        with pytest.raises(RemoteProtocolError, match="must come from a keeper"):
            bank.hear("mallory", order, 10, role=role)
    first, second = (said(bank.hear("keeper", order, now))[-1] for now in (10, 11))
    assert first == second
    assert bank.posted("mallory") == 500
    (refused,) = said(bank.hear("keeper", replace(order, amount=501), 12))
    assert (type(refused), refused.code) == (c.RequestRefused, "duplicate_differs")


def test_a_deposit_is_logged(bank: Any) -> None:
    effects = bank.hear("keeper", c.DepositOrder("d9", "mallory", 500), 10)
    (report,) = [each for each in effects if isinstance(each, fx.Report)]
    assert "500 minor units to mallory" in str(report.progress)


def test_the_keeper_refunds_what_is_left_once_and_both_parties_hear_of_it(bank: Any, said: Any) -> None:
    order = c.RefundOrder("a1", "the machine was down")
    (refused,) = said(bank.hear("keeper", order, 10))
    assert (type(refused), refused.reference, refused.code) == (c.RequestRefused, "a1", "unknown_transfer")
    bank.order()
    (refused,) = said(bank.hear("keeper", order, 11))
    assert (type(refused), refused.code) == (c.RequestRefused, "not_posted")
    bank.countersign(bank.line())
    for role in set(Role) - {Role.KEEPER}:
        with pytest.raises(RemoteProtocolError, match="must come from a keeper"):
            bank.hear("alice", order, 12, role=role)
    for now in (10 * HOUR, 11 * HOUR):  # also long after the slot
        effects = bank.hear("keeper", order, now)
        assert told(effects) == [("keeper", c.ChangePosted), ("alice", c.ChangePosted), ("res1", c.ChangePosted)]
        assert {each.refund for each in said(effects)} == {COST}
        (report,) = [each for each in effects if isinstance(each, fx.Report)]
        assert "minor units to alice (the machine was down)" in str(report.progress)
        assert (bank.posted("alice"), bank.posted("res1")) == (200_000, 0)
    (kept,) = [each for each in bank.ledger.evidence("a1") if each.kind is EvidenceKind.CHANGE]
    assert kept.text


def test_the_overview_is_the_keepers(bank: Any, said: Any) -> None:
    with pytest.raises(RemoteProtocolError, match="must come from a keeper"):
        bank.hear("alice", c.OverviewQuery("q"), 10)
    paid(bank)
    (page,) = said(bank.hear("keeper", c.OverviewQuery("q"), 30))
    assert [(each.kind, each.amount) for each in page.trades] == [("deposit", 200_000), ("payment", COST)]
    assert {(each.account, each.balance) for each in page.accounts} >= {("alice", 104_000), ("res1", COST)}
    assert sum(each.balance for each in page.accounts) == 0
    assert page.next_after == 0


def test_what_is_nothing_for_a_bank(bank: Any) -> None:
    with pytest.raises(RemoteProtocolError, match="Confirmed is not a message for a bank"):
        bank.hear("res1", c.Confirmed("a1", "o1"))
    plain = Message(Performative.NOT_UNDERSTOOD, "res1", "bank", "r1", c.NotUnderstood("what?"))
    assert bank.take(plain) == []
