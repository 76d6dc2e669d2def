"""What the bank makes of amendments: whose word posts one, whose word voids one, and what is told to whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.sizes.amended import first_state, order_line, state_digest
from ramp.protocol import effects as fx
from ramp.protocol.bank import changes
from ramp.protocol.progress import KeeperOrdered

NOW = 30 * SECOND
BODY = ContractChange(
    "a1", 1, "offer-a1", "alice", "res1", "bank", NOW, "state-0", 8, 2 * HOUR, MINUTE, -40_000, 3 * MINUTE
)
SIGNERS = ("alice", "res1")


@pytest.fixture
def paid(bank: Any) -> Any:
    """Alice has paid 960.00 of her 2 000.00 to res1."""
    bank.order()
    bank.countersign(bank.line())
    assert (bank.posted("alice"), bank.posted("res1")) == (104_000, 96_000)
    return bank


def sends(effects: list[fx.Effect]) -> list[fx.Send]:
    return [each for each in effects if isinstance(each, fx.Send)]


def brought(
    bank: Any, body: ContractChange = BODY, signers: tuple[str, ...] = SIGNERS, sender: str = "res1", now: int = NOW
) -> Message:
    """The bank's one answer to an amendment."""
    effects = bank.hear(sender, Signed(body, signers, "text"), now, performative=Performative.REQUEST)
    (said,) = sends(effects)
    return said.message


def withdrawn(bank: Any, number: int = 1, sender: str = "alice", now: int = NOW) -> Message:
    effects = bank.hear(sender, c.ChangeWithdrawal("a1", number), now, performative=Performative.REQUEST)
    (said,) = sends(effects)
    return said.message


def test_what_both_have_signed_is_posted_and_its_seller_told(paid: Any) -> None:
    said = brought(paid)
    posted = c.ChangePosted("a1", 1, "refund:a1#1", -40_000)
    assert (said.performative, said.receiver, said.content) == (Performative.AGREE, "res1", posted)
    assert (paid.posted("alice"), paid.posted("res1")) == (144_000, 56_000)
    assert brought(paid, now=HOUR).content == posted  # again, long after its time
    assert (paid.posted("alice"), paid.posted("res1")) == (144_000, 56_000)


def test_the_buyer_who_comes_too_late_hears_that_it_is_posted(paid: Any) -> None:
    brought(paid)
    said = withdrawn(paid)
    assert (said.performative, said.receiver) == (Performative.INFORM, "alice")
    assert said.content == c.ChangePosted("a1", 1, "refund:a1#1", -40_000)


def test_what_the_buyer_gives_up_is_never_posted(paid: Any) -> None:
    for said in (withdrawn(paid), brought(paid), withdrawn(paid)):
        refused = c.ChangeRefused("a1", 1, "withdrawn", "the buyer withdrew the change")
        assert (said.performative, said.content) == (Performative.REFUSE, refused)
    assert paid.posted("alice") == 104_000


def test_a_bank_posts_for_the_resource_that_both_have_named_only(paid: Any, refused: Any) -> None:
    cases: tuple[dict[str, Any], ...] = (
        {"signers": ("alice",)},
        {"signers": ("res1", "alice")},
        {"signers": ("alice", "res2")},
        {"signers": ("mallory", "res1")},
        {"sender": "alice"},
        {"sender": "res2"},
        {"body": replace(BODY, resource="res2")},
        {"body": replace(BODY, user="mallory")},
        {"body": replace(BODY, bank="other")},
    )
    for case in cases:
        with refused:
            brought(paid, **case)
    assert paid.posted("alice") == 104_000
    assert brought(paid).performative is Performative.AGREE  # none of them has decided anything


def test_the_keeper_gives_back_what_is_left_and_both_parties_hear_why(paid: Any) -> None:
    order = c.RefundOrder("a1", "the machine was down")
    effects = paid.hear("keeper", order, 3 * HOUR, performative=Performative.REQUEST)
    posted = c.ChangePosted("a1", 0, "refund:a1", -96_000, "the machine was down")
    said = [(each.message.performative, each.message.receiver, each.message.content) for each in sends(effects)]
    assert said == [
        (Performative.AGREE, "keeper", posted),
        (Performative.INFORM, "alice", posted),
        (Performative.INFORM, "res1", posted),
    ]
    what = "960.00 credits of a1 to alice (the machine was down)"
    assert [each.progress for each in effects if isinstance(each, fx.Report)] == [
        KeeperOrdered("keeper", "refund", what)
    ]


def test_the_keeper_hears_why_nothing_goes_back(paid: Any) -> None:
    order = c.RefundOrder("a9", "the machine was down")
    (said,) = sends(paid.hear("keeper", order, NOW, performative=Performative.REQUEST))
    refused = c.RequestRefused("a9", "unknown_transfer", "there is no payment for a9")
    assert (said.message.performative, said.message.content) == (Performative.REFUSE, refused)


def test_what_does_not_verify_is_not_understood(paid: Any, refused: Any) -> None:
    unverified = c.Unverified("amendment", "a1", "bad_signature", "it was changed")
    with refused:
        paid.hear("res1", unverified, NOW)


def test_only_the_buyer_withdraws_and_only_lately(paid: Any, refused: Any) -> None:
    said = withdrawn(paid, sender="mallory")
    assert isinstance(said.content, c.ChangeRefused)
    assert (said.receiver, said.content.code) == ("mallory", "unknown_transfer")
    with refused:
        paid.take(Message(Performative.REQUEST, "alice", "bank", "r1", c.ChangeWithdrawal("a1", 1)), NOW)
    assert brought(paid).performative is Performative.AGREE


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"amount": -96_000}, "more_than_paid"),
        ({"valid_until": NOW}, "expired"),
        ({"agreement_id": "a9"}, "unknown_transfer"),
    ],
)
def test_what_the_ledger_refuses_is_told_with_its_code(paid: Any, changes: dict[str, Any], code: str) -> None:
    said = brought(paid, replace(BODY, **changes))
    assert said.performative is Performative.REFUSE
    assert isinstance(said.content, c.ChangeRefused)
    assert (said.content.agreement_id, said.content.number) == (changes.get("agreement_id", "a1"), 1)
    assert (said.content.code, bool(said.content.detail)) == (code, True)


def test_the_next_one_changes_the_state_that_this_one_has_made(paid: Any) -> None:
    first = replace(BODY, previous=first_state(paid.agreement(paid.line())).digest)
    brought(paid, first)
    second = replace(first, number=2, cores=4, amount=-20_000)
    refused = brought(paid, second).content  # it changes the state that was bought
    assert isinstance(refused, c.ChangeRefused)
    assert refused.code == "other_state"
    assert brought(paid, replace(second, number=3, previous=state_digest(first))).performative is Performative.AGREE
    assert paid.posted("alice") == 164_000


@pytest.mark.parametrize(
    ("content", "about"),
    [
        (c.ChangeWithdrawal("a1", 1), True),
        (Signed(BODY, SIGNERS), True),
        (c.Unverified("amendment", "a1", "bad_signature", "changed"), True),
        (c.Unverified("agreement", "a1", "bad_signature", "changed"), False),
        (c.AccountQuery("n1", "alice"), False),
    ],
    ids=lambda case: type(case).__name__,
)
def test_what_is_about_an_amendment(content: Any, about: bool) -> None:
    assert changes.is_about(Message(Performative.REQUEST, "res1", "bank", "r1", content)) is about


def contents(effects: list[fx.Effect]) -> list[Any]:
    return [each.message.content for each in effects if isinstance(each, fx.Send)]


GROWN = replace(
    BODY,
    previous="",
    cores=24,
    effective_at=HOUR,
    amount=48_000,
    cpu_hour_cost=60,
    order_id="o2",
    valid_until=3 * MINUTE,
)


@pytest.fixture
def grown(paid: Any) -> Any:
    """Alice has paid 480.00 more for eight more cores of the slot, which begins after an hour."""
    line = order_line(GROWN)
    vote = paid.order(line, order_id="o2", until=GROWN.valid_until, now=NOW)
    assert isinstance(vote, c.FundsReserved)
    assert brought(paid, GROWN).content == c.ChangePosted("a1", 1, "payment:a1#1", 48_000)
    assert (paid.posted("alice"), paid.posted("res1")) == (56_000, 144_000)
    return paid


@pytest.mark.parametrize("signers", [("alice",), SIGNERS])
def test_an_addition_is_not_cancelled_by_itself(grown: Any, signers: tuple[str, ...]) -> None:
    """Else it would go back before the slot begins, and again with the slot, and its cores would stay."""
    effects = grown.cancellation(grown.line(), signers, signers[-1], MINUTE, agreement_id="a1#1")
    (refused,) = contents(effects)
    assert (type(refused), refused.code) == (c.ChangeRefused, "no_agreement")
    assert grown.posted("alice") == 56_000
    (made, told) = contents(grown.cancellation(grown.line(), ("alice",), "alice", MINUTE))
    assert made == told == c.ChangePosted("a1", 0, "refund:a1", -144_000)
    assert (grown.posted("alice"), grown.posted("res1"), grown.ledger.audit()) == (200_000, 0, [])


@pytest.mark.parametrize("sender", ["res1", "alice"])
def test_an_addition_does_not_fail_by_itself(grown: Any, sender: str) -> None:
    (refused,) = contents(grown.hear(sender, grown.failure(agreement_id="a1#1"), MINUTE))
    assert (type(refused), refused.code) == (c.ChangeRefused, "no_agreement")
    assert (grown.posted("alice"), grown.posted("res1")) == (56_000, 144_000)


def test_an_agreement_called_like_an_amendment_is_not_paid(paid: Any) -> None:
    """Who knows an agreement's id would keep its slot from growing."""
    answer = paid.order(replace(paid.line(), agreement_id="a1#1"), order_id="o2", sender="mallory", now=NOW)
    assert (type(answer), answer.code) == (c.OrderRefused, "malformed_value")
    assert isinstance(paid.order(order_line(GROWN), order_id="o3", until=GROWN.valid_until, now=NOW), c.FundsReserved)


def ordered(paid: Any, *, until: int = 3 * MINUTE, **changes: Any) -> Any:
    """Alice sets 480.00 aside for it."""
    vote = paid.order(replace(order_line(GROWN), **changes), order_id="o2", until=until, now=NOW)
    assert isinstance(vote, c.FundsReserved)
    assert paid.reserved() == 48_000
    return paid


def added(bank: Any, body: ContractChange = GROWN) -> list[tuple[str, Any]]:
    """What the bank says to the amendment, and to whom."""
    effects = bank.hear("res1", Signed(body, SIGNERS, "text"), NOW, performative=Performative.REQUEST)
    return [(each.message.receiver, each.message.content) for each in effects if isinstance(each, fx.Send)]


def test_what_is_added_is_paid_by_its_order(paid: Any) -> None:
    posted = c.ChangePosted("a1", 1, "payment:a1#1", 48_000)
    assert ("res1", posted) in added(ordered(paid))
    assert (paid.reserved(), paid.posted("alice"), paid.posted("res1")) == (0, 56_000, 144_000)
    assert ("res1", posted) in added(paid)  # once more
    assert paid.posted("alice") == 56_000


def test_an_order_for_another_seller_pays_nothing_and_stays(paid: Any) -> None:
    bank = ordered(paid)
    other = replace(GROWN, number=2)
    refused = c.ChangeRefused("a1", 2, "unknown_order", "the amendment is not in its order")
    assert added(bank, other) == [("res1", refused)]
    assert bank.reserved() == 48_000
    assert bank.posted("res1") == 96_000


@pytest.mark.parametrize(
    ("terms", "body"),
    [
        ({"until": 4 * MINUTE}, GROWN),  # the order would hold longer than what both have signed
        ({}, replace(GROWN, amount=47_999)),
        ({}, replace(GROWN, cores=23)),
        ({}, replace(GROWN, offer_id="offer-a2")),
        ({"becomes": "another-state"}, GROWN),
    ],
)
def test_an_order_is_void_where_something_else_was_signed_than_ordered(
    paid: Any, terms: dict[str, Any], body: ContractChange
) -> None:
    told = added(ordered(paid, **terms), body)
    assert [content.code for receiver, content in told if receiver == "res1"] == ["bad_terms"]
    assert (paid.reserved(), paid.posted("alice"), paid.posted("res1")) == (0, 104_000, 96_000)


def test_without_an_order_nothing_is_added(paid: Any) -> None:
    ((receiver, content),) = added(paid)
    assert (receiver, content) == ("res1", c.ChangeRefused("a1", 1, "unknown_order", "no order contains it"))
    assert paid.ledger.changes("a1") == ()
