"""What the bank makes of amendments: whose word posts one, whose word voids one, and what is told to whom."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.sizes.amended import order_line
from ramp.protocol import effects as fx
from ramp.protocol.bank import changes

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


def test_what_does_not_verify_is_not_understood(paid: Any, refused: Any) -> None:
    unverified = c.Unverified("amendment", "a1", "bad_signature", "it was changed")
    with refused:
        paid.hear("res1", unverified, NOW)


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
