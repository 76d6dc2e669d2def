"""The contract of reclamations: noticed in time, paid once with the compensation at their time, or void for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ledger_answers import balances, refusal_code

from ramp.errors import LedgerRefusal
from ramp.ledger.account import AMOUNT_MAX, AccountKind
from ramp.ledger.amendments.amendment import AmendmentTerms
from ramp.ledger.evidence import Evidence, EvidenceKind
from ramp.ledger.interface import Ledger
from ramp.ledger.orders.order import OrderLine
from ramp.ledger.overview import Total
from ramp.ledger.reclamations.reclamation import KnownReclamation, ReclamationTerms
from ramp.ledger.transfer import Transfer, TransferKind
from ramp.model.instant import SECOND

NOTICE = 60 * SECOND
BEGINS, ENDS = 200 * SECOND, 500 * SECOND
LAST_CALL = BEGINS - NOTICE
"""A notice that comes now is just in time."""

FIRST = ReclamationTerms("a-1", 1, "state-0", True, "state-1", "alice", "hector", 1_000, 300, NOTICE, BEGINS, ENDS)
NEXT = replace(FIRST, number=2, previous="state-1", of_agreement=False, digest="state-2", refund=400)
AMENDED = AmendmentTerms("a-1", 1, "state-0", "amended-1", "alice", "hector", 500, ENDS)
NOTED = KnownReclamation("a-1", 1, "state-0", "state-1", 1_000, 300, BEGINS, ENDS, 30)


def noted(ledger: Ledger, at: int = 30, **changes: Any) -> KnownReclamation:
    return ledger.note_reclamation(replace(FIRST, **changes), at=at)


def posted(ledger: Ledger, number: int = 1, at: int = BEGINS) -> KnownReclamation:
    return ledger.post_reclamation("a-1", number, "hector", at=at)


def not_noted(ledger: Ledger, at: int = 30, **changes: Any) -> str:
    """The code with which a notice is refused; nothing is on record then."""
    before = ledger.reclamations("a-1"), ledger.evidence("a-1"), balances(ledger)
    code = refusal_code(lambda: noted(ledger, at, **changes))
    assert (ledger.reclamations("a-1"), ledger.evidence("a-1"), balances(ledger)) == before
    return code


# The notice


def set_aside(ledger: Ledger) -> int:
    """What hector has set aside, minor units."""
    return ledger.balance("hector").reserved


def test_a_notice_is_on_record_and_moves_nothing(paid: Ledger) -> None:
    assert paid.note_reclamation(FIRST, at=30, evidence="<notice/>") == NOTED
    assert paid.reclamations("a-1") == (NOTED,)
    assert (NOTED.is_open, NOTED.is_posted) == (True, False)
    assert paid.evidence("a-1")[-1] == Evidence("a-1", EvidenceKind.RECLAMATION, "<notice/>", 30)
    assert balances(paid) == (7_500, 2_500)
    assert (set_aside(paid), paid.open_reclamations()) == (300, (NOTED,))


def test_without_evidence_none_is_kept(paid: Ledger) -> None:
    before = paid.evidence("a-1")
    noted(paid)
    assert posted(paid).is_posted
    assert paid.evidence("a-1") == before


def test_the_same_notice_again_is_the_same(paid: Ledger) -> None:
    paid.note_reclamation(FIRST, at=30, evidence="<notice/>")
    kept = paid.evidence("a-1")
    assert paid.note_reclamation(FIRST, at=BEGINS, evidence="<notice/>") == NOTED  # also where it would come too late
    assert not_noted(paid, digest="other") == "duplicate_differs"
    done = posted(paid)
    assert paid.note_reclamation(FIRST, at=ENDS) == done
    assert paid.evidence("a-1")[: len(kept)] == kept
    assert balances(paid) == (8_800, 1_200)


def test_the_notice_counts_from_when_it_comes(paid: Ledger) -> None:
    assert not_noted(paid, LAST_CALL + 1) == "short_notice"
    assert noted(paid, LAST_CALL).noticed_at == LAST_CALL


def test_it_is_said_how_long_the_notice_was(paid: Ledger) -> None:
    with pytest.raises(LedgerRefusal, match=r"59\.5 s before its time; right would be 60 s"):
        noted(paid, LAST_CALL + SECOND // 2)


def test_one_that_comes_later_takes_the_place_of_what_is_open(paid: Ledger) -> None:
    noted(paid)
    second = noted(paid, 40, number=2)
    first = paid.reclamations("a-1")[0]
    assert (first.code, first.reason, first.decided_at) == ("out_of_order", "reclamation 2 has come in its place", 40)
    assert second.is_open
    assert posted(paid).code == "out_of_order"
    assert not_noted(paid, 41, number=1, digest="other") == "duplicate_differs"
    assert posted(paid, 2).is_posted
    assert balances(paid) == (8_800, 1_200)


def test_one_that_is_decided_stays_so_when_another_comes(paid: Ledger) -> None:
    noted(paid)
    done = posted(paid)
    paid.note_reclamation(replace(NEXT, effective_at=2 * BEGINS), at=BEGINS + 1)
    assert paid.reclamations("a-1")[0] == done


def test_numbers_only_rise(paid: Ledger) -> None:
    noted(paid, number=5)
    assert not_noted(paid, number=4) == "out_of_order"
    assert noted(paid, number=6).is_open


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"agreement_id": "a-9"}, "unknown_transfer"),
        ({"agreement_id": "a 1"}, "malformed_value"),
        ({"user": "hector"}, "unknown_transfer"),
        ({"resource": "alice"}, "unknown_transfer"),
        ({"number": 0}, "malformed_value"),
        ({"number": 1_001}, "malformed_value"),
        ({"number": True}, "malformed_value"),
        ({"previous": "state 0"}, "malformed_value"),
        ({"digest": ""}, "malformed_value"),
        ({"refund": 0}, "amount_not_positive"),
        ({"refund": AMOUNT_MAX + 1}, "amount_too_large"),
        ({"compensation": -1}, "malformed_value"),
        ({"compensation": AMOUNT_MAX + 1}, "malformed_value"),
        ({"compensation": True}, "malformed_value"),
        ({"effective_at": BEGINS + 0.5}, "malformed_value"),
        ({"valid_until": -1}, "malformed_value"),
        ({"refund": 2_500}, "more_than_paid"),
        ({"of_agreement": False}, "other_state"),
        ({"compensation": 1_501}, "insufficient_funds"),
        ({"compensation": AMOUNT_MAX}, "insufficient_funds"),
    ],
)
def test_what_cannot_be_noted_leaves_nothing(paid: Ledger, changes: dict[str, Any], code: str) -> None:
    assert not_noted(paid, **changes) == code


def test_a_moment_that_is_none_and_evidence_that_cannot_be_kept_are_refused(paid: Ledger) -> None:
    assert not_noted(paid, at=-1) == "malformed_value"
    assert refusal_code(lambda: paid.note_reclamation(FIRST, at=30, evidence="\0")) == "malformed_value"
    noted(paid)
    assert (
        refusal_code(lambda: paid.post_reclamation("a-1", 1, "hector", at=BEGINS, evidence="\0")) == "malformed_value"
    )
    assert posted(paid).is_posted


@pytest.mark.parametrize(
    "changes",
    [{"number": 1_000}, {"refund": 2_499, "compensation": 1}, {"compensation": 0}, {"compensation": 1_500}],
)
def test_the_limits_themselves_are_allowed(paid: Ledger, changes: dict[str, Any]) -> None:
    assert noted(paid, **changes).is_open


def test_nothing_is_taken_of_what_is_not_paid(paid: Ledger) -> None:
    paid.reserve_order("o-2", "alice", [OrderLine("a-2", "hector", 500)], 100, at=31)
    assert refusal_code(lambda: noted(paid, 32, agreement_id="a-2")) == "not_posted"
    paid.refund("a-1", at=33)
    assert not_noted(paid, 34) == "refunded"


# What is posted


def test_refund_and_compensation_are_paid_at_its_time(paid: Ledger) -> None:
    noted(paid)
    done = paid.post_reclamation("a-1", 1, "hector", at=BEGINS, evidence="<taken/>")
    assert done == replace(NOTED, decided_at=BEGINS)
    assert (done.is_open, done.is_posted) == (False, True)
    assert balances(paid) == (8_800, 1_200)
    for kind, amount, entered in ((TransferKind.REBATE, 1_000, BEGINS), (TransferKind.COMPENSATION, 300, 30)):
        assert paid.transfer("a-1#r1", kind) == Transfer(
            f"{kind}:a-1#r1", "hector", "alice", amount, "a-1#r1", kind, entered, BEGINS, None, None,
            "reclamation 1", "o-1",
        )  # fmt: skip
    assert paid.evidence("a-1")[-1] == Evidence("a-1", EvidenceKind.RECLAMATION, "<taken/>", BEGINS)
    overview = paid.overview(None, None)
    assert (overview.rebates, overview.compensations) == (Total(1, 1_000), Total(1, 300))
    lines = paid.statement("alice").lines[-2:]
    assert [(line.kind, line.amount, line.counterparty) for line in lines] == [
        ("rebate", 1_000, "hector"),
        ("compensation", 300, "hector"),
    ]


def test_it_is_paid_once(paid: Ledger) -> None:
    noted(paid)
    done = posted(paid)
    assert posted(paid, at=BEGINS + 1) == posted(paid, at=10 * ENDS) == done
    assert balances(paid) == (8_800, 1_200)


def test_not_before_its_time(paid: Ledger) -> None:
    noted(paid)
    assert refusal_code(lambda: posted(paid, at=BEGINS - 1)) == "too_early"
    assert paid.reclamations("a-1") == (NOTED,)
    assert posted(paid).is_posted


def test_its_time_ends_with_the_very_instant(paid: Ledger) -> None:
    noted(paid)
    void = paid.post_reclamation("a-1", 1, "hector", at=ENDS, evidence="<taken/>")
    assert (void.code, void.decided_at, void.is_open, void.is_posted) == ("expired", ENDS, False, False)
    assert void.reason == "it was valid until 1970-01-01T00:08:20Z"
    assert paid.evidence("a-1")[-1] == Evidence("a-1", EvidenceKind.RECLAMATION, "<taken/>", ENDS)
    assert posted(paid) == void  # the clock was set back meanwhile
    assert balances(paid) == (7_500, 2_500)
    noted(paid, number=2)
    assert posted(paid, 2, ENDS - 1).is_posted


def test_without_compensation_the_refund_alone_is_paid(paid: Ledger) -> None:
    noted(paid, compensation=0)
    assert posted(paid).is_posted
    assert paid.transfer("a-1#r1", TransferKind.COMPENSATION) is None
    assert balances(paid) == (8_500, 1_500)


def test_the_smallest_compensation_is_paid(paid: Ledger) -> None:
    noted(paid, compensation=1)
    posted(paid)
    assert balances(paid) == (8_501, 1_499)


def pay_away(ledger: Ledger, amount: int) -> None:
    """Hector gives back what bob has paid him."""
    assert ledger.refund("b-1", at=BEGINS - 1).amount == amount


@pytest.fixture
def busy(paid: Ledger) -> Ledger:
    """Bob has paid 40.00 to hector as well, who has 65.00 now."""
    paid.open_account("bob", AccountKind.USER, at=3)
    paid.deposit("d-2", "bob", 4_000, at=3)
    paid.reserve_order("o-2", "bob", [OrderLine("b-1", "hector", 4_000)], 100, at=21)
    paid.countersign("b-1", at=22, starts_at=5_000)
    return paid


def test_a_compensation_is_paid_of_what_its_seller_has(busy: Ledger) -> None:
    """It is no part of what was paid: of another's money that the seller has got it is paid too."""
    noted(busy, compensation=5_500)
    assert posted(busy).is_posted
    assert balances(busy) == (14_000, 0)


def test_no_compensation_is_paid_that_its_seller_has_not(busy: Ledger) -> None:
    """Who has nothing any more promises anything: money would come from nowhere."""
    pay_away(busy, 4_000)
    with pytest.raises(LedgerRefusal, match=r"hector has 25\.00 available, not the 10\.00 and 15\.01"):
        noted(busy, compensation=1_501)
    assert not_noted(busy, compensation=1_501) == "insufficient_funds"
    assert noted(busy, compensation=1_500).is_open


# What is set aside


OF_BOB = replace(FIRST, agreement_id="b-1", user="bob")


def test_what_is_promised_to_one_is_not_promised_to_another(busy: Ledger) -> None:
    """Hector has 65.00: 53.00 of them go to alice if it takes what it has said, so that 12.00 are left."""
    noted(busy, compensation=4_300)
    before = busy.reclamations("b-1"), busy.evidence("b-1"), set_aside(busy)
    with pytest.raises(LedgerRefusal, match=r"hector has 12\.00 available, not the 10\.00 and 2\.01") as caught:
        busy.note_reclamation(replace(OF_BOB, compensation=201), at=31)
    assert caught.value.code == "insufficient_funds"
    assert (busy.reclamations("b-1"), busy.evidence("b-1"), set_aside(busy)) == before
    assert before[::2] == ((), 4_300)
    busy.note_reclamation(replace(OF_BOB, compensation=200), at=31)
    assert set_aside(busy) == 4_500
    assert posted(busy).is_posted
    assert busy.post_reclamation("b-1", 1, "hector", at=BEGINS).is_posted
    assert (balances(busy), busy.balance("bob").posted, set_aside(busy)) == ((12_800, 0), 1_200, 0)


def test_a_compensation_is_paid_whatever_has_gone_back_to_others_meanwhile(busy: Ledger) -> None:
    """Jobs have ended for it; the refund to the other is owed, as ever."""
    noted(busy, compensation=5_500)
    pay_away(busy, 4_000)
    assert posted(busy).is_posted
    assert (balances(busy), busy.balance("bob").posted, set_aside(busy)) == ((14_000, -4_000), 4_000, 0)


def test_what_is_set_aside_is_so_once_the_ledger_is_opened_again(paid: Ledger, reopen: Callable[[], Ledger]) -> None:
    noted(paid)
    again = reopen()
    assert (set_aside(again), again.open_reclamations()) == (300, (NOTED,))
    (pending,) = again.pending("alice")
    assert (pending.transfer_id, pending.amount, pending.entered_at) == ("compensation:a-1#r1", 300, 30)
    assert again.statement("hector").pending == again.statement("alice").pending == (pending,)
    assert posted(again).is_posted
    assert (again.pending(), set_aside(again), balances(again)) == ((), 0, (8_800, 1_200))


@pytest.mark.parametrize("compensation", [1_500, 1_501])
def test_what_was_noticed_by_a_program_that_set_nothing_aside_is_paid_if_it_can_be(
    paid: Ledger, compensation: int
) -> None:
    """hector has 2 500, of which 1 000 go back."""
    noticed = replace(NOTED, compensation=compensation)
    paid._write(lambda records: records.put_reclamation(noticed))
    assert set_aside(paid) == 0
    done = posted(paid, at=BEGINS + 1)
    paying = paid.transfer("a-1#r1", TransferKind.COMPENSATION)
    if compensation > 1_500:
        assert (done.code, paying, balances(paid)) == ("insufficient_funds", None, (7_500, 2_500))
    else:
        assert paying is not None
        assert (paying.amount, paying.entered_at, paying.posted_at) == (1_500, BEGINS + 1, BEGINS + 1)
        assert (done.is_posted, balances(paid), paid.pending()) == (True, (10_000, 0), ())


def given_back(ledger: Ledger) -> None:
    ledger.refund("a-1", at=31)


def failed(ledger: Ledger) -> None:
    ledger.fail_agreement("a-1", "hector", at=31, reason="its power is gone")


def shrunk(ledger: Ledger) -> None:
    ledger.post_amendment(AMENDED, at=31)


def grown(ledger: Ledger) -> None:
    ledger.reserve_order("o-9", "alice", [OrderLine("a-1#1", "hector", 100, "", "state-0", "grown-1")], 100, at=31)
    ledger.countersign("a-1#1", at=31, starts_at=5_000)


def come_in_its_place(ledger: Ledger) -> None:
    noted(ledger, 31, number=2, compensation=0)


def not_asked_for(ledger: Ledger) -> None:
    ledger.expire_orders(ENDS)


def asked_for(ledger: Ledger) -> None:
    ledger.look_up_reclamation("a-1", 1, "alice", at=ENDS)


def too_late(ledger: Ledger) -> None:
    posted(ledger, at=ENDS)


@pytest.mark.parametrize(
    ("happens", "code"),
    [
        (given_back, "refunded"),
        (failed, "refunded"),
        (shrunk, "other_state"),
        (grown, "other_state"),
        (come_in_its_place, "out_of_order"),
        (not_asked_for, "expired"),
        (asked_for, "expired"),
        (too_late, "expired"),
    ],
)
def test_what_comes_to_nothing_sets_nothing_aside(paid: Ledger, happens: Callable[[Ledger], None], code: str) -> None:
    noted(paid)
    assert set_aside(paid) == 300
    happens(paid)
    known = paid.reclamations("a-1")[0]
    assert (known.code, set_aside(paid), paid.pending()) == (code, 0, ())
    voided = paid.transfer("a-1#r1", TransferKind.COMPENSATION)
    assert voided is not None
    assert (voided.voided_at, voided.posted_at) == (known.decided_at, None)
    assert posted(paid, at=ENDS + 1) == known
    assert paid.statement("alice").pending == ()


def test_it_is_open_up_to_the_very_instant(paid: Ledger) -> None:
    noted(paid)
    paid.expire_orders(ENDS - 1)
    assert (set_aside(paid), paid.open_reclamations()) == (300, (NOTED,))
    paid.expire_orders(ENDS)
    assert (set_aside(paid), paid.open_reclamations()) == (0, ())


def test_what_is_over_stands_in_nobodys_way(busy: Ledger) -> None:
    """Also where nobody has looked since."""
    noted(busy, compensation=5_500)
    later = {"effective_at": 2 * ENDS, "valid_until": 3 * ENDS, "refund": 999, "compensation": 5_500}
    with pytest.raises(LedgerRefusal, match="insufficient_funds"):
        busy.note_reclamation(replace(OF_BOB, **later), at=ENDS - 1)
    busy.note_reclamation(replace(OF_BOB, **later), at=ENDS)
    assert (busy.reclamations("a-1")[0].code, set_aside(busy)) == ("expired", 5_500)


def test_those_that_are_over_first_come_first(busy: Ledger) -> None:
    noted(busy)
    busy.note_reclamation(replace(OF_BOB, valid_until=ENDS - 1), at=31)
    assert [each.agreement_id for each in busy.open_reclamations()] == ["b-1", "a-1"]
    busy.expire_orders(ENDS - 1)
    assert [each.agreement_id for each in busy.open_reclamations()] == ["a-1"]


def test_nothing_is_set_aside_for_a_closed_account(paid: Ledger) -> None:
    paid.reserve_order("o-2", "alice", [OrderLine("a-2", "hector", 7_500)], 100, at=21)
    paid.countersign("a-2", at=22, starts_at=5_000)
    paid.close_account("alice", at=23)
    assert not_noted(paid) == "account_closed"


def test_what_is_set_aside_keeps_both_accounts_open(paid: Ledger) -> None:
    noted(paid)
    paid.reserve_order("o-2", "alice", [OrderLine("a-2", "hector", 7_500)], 100, at=31)
    paid.countersign("a-2", at=32, starts_at=5_000)
    assert balances(paid) == (0, 10_000)
    assert refusal_code(lambda: paid.close_account("alice", at=33)) == "account_not_empty"


def test_an_overdraft_pays_a_compensation(ledger: Ledger) -> None:
    ledger.open_account("alice", AccountKind.USER, at=1)
    ledger.open_account("hector", AccountKind.RESOURCE, at=1, credit_limit=700)
    ledger.deposit("d-1", "alice", 10_000, at=2)
    ledger.reserve_order("o-1", "alice", [OrderLine("a-1", "hector", 2_500)], 100, at=10)
    ledger.countersign("a-1", at=20, starts_at=5_000)
    assert not_noted(ledger, compensation=2_201) == "insufficient_funds"
    noted(ledger, compensation=2_200)
    assert posted(ledger).is_posted
    assert balances(ledger) == (10_700, -700)


def test_a_refund_without_compensation_is_owed_as_ever(busy: Ledger) -> None:
    """What was paid comes back whatever its seller has: also where it has not got it any more."""
    noted(busy, compensation=4_000)
    posted(busy)
    pay_away(busy, 4_000)  # hector owes 25.00 now
    later = {"effective_at": 2 * BEGINS, "number": 2, "previous": "state-1", "digest": "state-2"}
    assert not_noted(busy, BEGINS, compensation=1, **later) == "insufficient_funds"
    noted(busy, BEGINS, compensation=0, **later)
    assert posted(busy, 2, 2 * BEGINS).is_posted
    assert balances(busy) == (7_500 + 1_000 + 4_000 + 1_000, 2_500 - 6_000)


def test_only_who_was_paid_can_have_it_posted(paid: Ledger) -> None:
    paid.open_account("kelvin", AccountKind.RESOURCE, at=1)
    noted(paid)
    assert refusal_code(lambda: paid.post_reclamation("a-1", 1, "kelvin", at=BEGINS)) == "unknown_transfer"
    assert refusal_code(lambda: paid.post_reclamation("a-9", 1, "hector", at=BEGINS)) == "unknown_transfer"
    assert refusal_code(lambda: posted(paid, 2)) == "not_noticed"
    assert refusal_code(lambda: posted(paid, 0)) == "malformed_value"
    assert refusal_code(lambda: posted(paid, at=-1)) == "malformed_value"
    assert paid.reclamations("a-1") == (NOTED,)


# Beside amendments and refunds


def test_each_changes_the_state_that_the_one_before_has_made(paid: Ledger) -> None:
    """Amendments and reclamations by turns: the next is of the state that the last has made, and of no other."""
    turn = {"effective_at": 2 * BEGINS, "compensation": 100}
    assert paid.post_amendment(AMENDED, at=30).is_posted
    assert not_noted(paid, 31) == "other_state"
    noted(paid, 31, previous="amended-1", compensation=100)
    assert posted(paid).is_posted
    assert paid.post_amendment(replace(AMENDED, number=2, previous="amended-1"), at=BEGINS).code == "other_state"
    assert paid.post_amendment(replace(AMENDED, number=3, previous="state-1", digest="amended-3"), at=BEGINS).is_posted
    for previous in ("state-0", "state-1", "amended-1"):
        assert not_noted(paid, BEGINS, number=2, previous=previous, digest="state-2", **turn) == "other_state"
    noted(paid, BEGINS, number=2, previous="amended-3", digest="state-2", refund=100, **turn)
    assert posted(paid, 2, 2 * BEGINS).is_posted
    turn["effective_at"] = ENDS - 1
    noted(paid, 2 * BEGINS, number=3, previous="state-2", digest="state-3", refund=100, **turn)
    assert posted(paid, 3, ENDS - 1).is_posted
    assert balances(paid) == (10_000 - 2_500 + 500 + 1_000 + 500 + 100 + 100 + 3 * 100, 2_500 - 2_200 - 300)


def test_it_is_void_where_the_slot_was_changed_meanwhile(paid: Ledger) -> None:
    noted(paid)
    paid.post_amendment(AMENDED, at=31)
    void = posted(paid)
    assert (void.code, void.is_posted) == ("other_state", False)
    assert balances(paid) == (8_000, 2_000)


def test_it_is_void_where_the_slot_was_given_back_meanwhile(paid: Ledger) -> None:
    noted(paid)
    paid.refund("a-1", at=31)
    assert posted(paid).code == "refunded"
    assert balances(paid) == (10_000, 0)


def test_a_void_one_makes_no_state(paid: Ledger) -> None:
    noted(paid)
    posted(paid, at=ENDS)
    assert noted(paid, number=2).is_open  # still of the slot as it was bought
    assert paid.post_amendment(AMENDED, at=31).is_posted


def test_something_of_the_payment_is_left(paid: Ledger) -> None:
    paid.post_amendment(AMENDED, at=30)
    noted(paid, previous="amended-1")
    posted(paid)
    later = {"effective_at": 2 * BEGINS, "number": 2, "previous": "state-1", "digest": "state-2", "compensation": 0}
    assert not_noted(paid, BEGINS, refund=1_000, **later) == "more_than_paid"
    assert paid.post_amendment(replace(AMENDED, number=2, previous="state-1", amount=1_000), at=BEGINS).code == (
        "more_than_paid"
    )
    assert noted(paid, BEGINS, refund=999, **later).is_open


def test_a_compensation_is_not_of_the_payment(paid: Ledger) -> None:
    """What is on top counts neither for what is left nor for what a refund gives back."""
    noted(paid, compensation=1_500)
    posted(paid)
    assert paid.refund("a-1", at=BEGINS + 1).amount == 1_500
    assert balances(paid) == (11_500, -1_500)


# What its buyer asks


def test_a_buyer_is_told_how_it_stands(paid: Ledger) -> None:
    noted(paid)
    assert paid.look_up_reclamation("a-1", 1, "alice", at=ENDS - 1) == NOTED
    done = posted(paid)
    assert paid.look_up_reclamation("a-1", 1, "alice", at=10 * ENDS) == done


def test_what_nobody_has_posted_is_void_once_its_buyer_asks(paid: Ledger) -> None:
    noted(paid)
    void = paid.look_up_reclamation("a-1", 1, "alice", at=ENDS)
    assert void == replace(NOTED, decided_at=ENDS, code="expired", reason="it was valid until 1970-01-01T00:08:20Z")
    assert posted(paid) == void
    assert balances(paid) == (7_500, 2_500)


def test_nobody_else_is_told(paid: Ledger) -> None:
    noted(paid)
    assert refusal_code(lambda: paid.look_up_reclamation("a-1", 1, "hector", at=30)) == "unknown_transfer"
    assert refusal_code(lambda: paid.look_up_reclamation("a-1", 2, "alice", at=30)) == "not_noticed"
    assert refusal_code(lambda: paid.look_up_reclamation("a-1", 1_001, "alice", at=30)) == "malformed_value"
    assert refusal_code(lambda: paid.look_up_reclamation("a-1", 1, "alice", at=-1)) == "malformed_value"


# What has changed a state of the slot, for a buyer who does not know it


def followed(ledger: Ledger, state: str, at: int = BEGINS, user: str = "alice") -> KnownReclamation:
    return ledger.look_up_reclamation("a-1", 1, user, at=at, state=state)


def test_a_buyer_is_told_what_is_to_change_a_state_whatever_its_number(paid: Ledger) -> None:
    noted(paid, number=3)
    noted(paid, 40, number=7, digest="state-7")
    assert followed(paid, "state-0", 41).number == 7  # it has taken the place of the third
    assert refusal_code(lambda: followed(paid, "state-7", 41)) == "not_noticed"
    assert refusal_code(lambda: followed(paid, "state-0", 41, "hector")) == "unknown_transfer"
    assert refusal_code(lambda: followed(paid, "state-0", -1)) == "malformed_value"


def test_a_buyer_is_told_one_after_the_other_what_was_posted(paid: Ledger) -> None:
    noted(paid)
    first = posted(paid)
    paid.note_reclamation(replace(NEXT, effective_at=BEGINS + NOTICE + 1), at=BEGINS)
    second = posted(paid, 2, BEGINS + NOTICE + 1)
    assert (first.is_posted, second.is_posted) == (True, True)
    assert followed(paid, "state-0") == first
    assert followed(paid, "state-1") == second
    assert refusal_code(lambda: followed(paid, "state-2")) == "not_noticed"
    assert followed(paid, "state-0", 10 * ENDS) == first


def test_what_is_void_has_changed_nothing(paid: Ledger) -> None:
    noted(paid)
    assert followed(paid, "state-0", ENDS).code == "expired"
    assert refusal_code(lambda: followed(paid, "state-0", ENDS)) == "not_noticed"
    assert balances(paid) == (7_500, 2_500)
