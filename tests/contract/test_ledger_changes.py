"""The contract of changes: a part of a payment goes back once, in order, or never; the rest goes back once."""

from dataclasses import replace
from typing import Any

import pytest
from ledger_answers import balances, end, fail, refusal_code

from ramp.ledger.entry import AccountKind, DecidedChange, Evidence, EvidenceKind, Grounds, Order, Transfer
from ramp.ledger.interface import Ledger
from ramp.ledger.refusals import TEXT_LENGTH_MAX
from ramp.model.agreement import TERMINAL, ContractChange
from ramp.model.contents import OrderLine, OrderState, TransferKind
from ramp.model.instant import Instant
from ramp.model.sizes.amended import state_digest

FIRST = ContractChange(
    "a-1", 1, "offer-1", "alice", "hector", "bank", 25, "state-0", cores=8, amount=-1_000, valid_until=500
)
STATE_1 = state_digest(FIRST)
SECOND = replace(FIRST, number=2, previous=STATE_1, cores=4, amount=-400)


def post(ledger: Ledger, change: ContractChange, *, at: Instant, evidence: str = "") -> DecidedChange:
    """Post a change that both parties have signed."""
    return ledger.post_change(change, Grounds.BOTH, at=at, evidence=evidence)


def test_a_part_of_the_payment_goes_back(paid: Ledger) -> None:
    posted = post(paid, FIRST, at=30, evidence="<amendment/>")
    assert posted == DecidedChange("a-1", 1, Grounds.BOTH, STATE_1, -1_000, 30)
    assert balances(paid) == (8_500, 1_500)
    assert paid.transfer("a-1#1", TransferKind.REFUND) == Transfer(
        "refund:a-1#1", "hector", "alice", 1_000, "a-1#1", TransferKind.REFUND, 30, 30, None, "change 1", "o-1"
    )
    assert paid.evidence("a-1")[-1] == Evidence("a-1", EvidenceKind.CHANGE, "<amendment/>", 30)
    line = paid.statement("alice")[-1]
    assert (line.kind, line.agreement_id, line.amount, line.counterparty) == ("refund", "a-1", 1_000, "hector")


def test_the_same_again_changes_nothing(paid: Ledger) -> None:
    posted = post(paid, FIRST, at=30)
    assert post(paid, FIRST, at=600) == posted  # also long after its time
    assert balances(paid) == (8_500, 1_500)
    assert refusal_code(lambda: post(paid, replace(FIRST, cores=9), at=31)) == "duplicate_differs"


def test_each_changes_the_state_that_the_one_before_has_made(paid: Ledger) -> None:
    post(paid, FIRST, at=30)
    assert post(paid, SECOND, at=40).is_posted
    assert balances(paid) == (8_900, 1_100)
    assert [each.amount for each in paid.changes("a-1")] == [-1_000, -400]


def test_what_changes_another_state_is_void_for_good(paid: Ledger) -> None:
    post(paid, FIRST, at=30)
    assert post(paid, replace(SECOND, previous="state-0"), at=40).code == "other_state"
    assert post(paid, SECOND, at=41).code == "other_state"  # decided once
    assert post(paid, replace(SECOND, number=3), at=42).is_posted


def test_an_older_proposal_is_void(paid: Ledger) -> None:
    post(paid, replace(FIRST, number=5), at=30)
    void = post(paid, replace(SECOND, number=4), at=40)
    assert (void.code, void.reason) == ("out_of_order", "a-1 already has change 5")
    assert balances(paid) == (8_500, 1_500)


def test_a_number_that_an_order_pays_for_as_an_addition_refunds_nothing(paid: Ledger) -> None:
    """Else the bank would tell the seller that amendment 1 is posted, and that it is void when the order expires."""
    paid.reserve_order("o-2", "alice", [OrderLine("a-1#1", "hector", 700, "", "state-0", "state-9")], 90, at=30)
    assert post(paid, FIRST, at=40).code == "out_of_order"
    assert paid.countersign("a-1#1", at=50, starts_at=60).code == "out_of_order"
    assert balances(paid) == (7_500, 2_500)


def test_its_time_ends_with_the_very_instant(paid: Ledger) -> None:
    assert post(paid, FIRST, at=500).code == "expired"
    assert post(paid, FIRST, at=30).code == "expired"  # the clock was set back meanwhile
    assert post(paid, replace(FIRST, number=2), at=499).is_posted


def test_something_of_the_payment_is_left(paid: Ledger) -> None:
    post(paid, FIRST, at=30)
    assert post(paid, replace(SECOND, amount=-1_500), at=40).code == "more_than_paid"
    assert post(paid, replace(SECOND, number=3, amount=-1_499), at=41).is_posted
    assert balances(paid) == (9_999, 1)


@pytest.mark.parametrize("way", ["refund", "fail"])
def test_a_refund_gives_back_what_is_left(paid: Ledger, way: str) -> None:
    post(paid, FIRST, at=30)
    if way == "refund":
        assert -end(paid, "a-1", at=50).amount == 1_500
    else:
        fail(paid, "a-1", "hector", at=50, reason="broken")
    assert balances(paid) == (10_000, 0)
    assert post(paid, SECOND, at=60).code == "refunded"
    assert post(paid, FIRST, at=60).is_posted  # as it was decided


def test_the_words_of_a_seller_that_fails_are_kept_in_one_line(paid: Ledger) -> None:
    fail(paid, "a-1", "hector", at=50, reason="no\npower " + "x" * TEXT_LENGTH_MAX)
    refund = paid.transfer("a-1", TransferKind.REFUND)
    assert refund is not None
    assert refund.memo == "no power " + "x" * (TEXT_LENGTH_MAX - 9)


def test_a_buyer_voids_what_is_not_posted(paid: Ledger) -> None:
    assert paid.void_change("a-1", 1, "alice", at=30, evidence="seal").code == "withdrawn"
    assert post(paid, FIRST, at=31).code == "withdrawn"
    assert post(paid, replace(FIRST, number=2), at=32).is_posted
    assert paid.void_change("a-1", 2, "alice", at=33).is_posted
    assert balances(paid) == (8_500, 1_500)


def test_what_is_void_gives_nothing_back_and_keeps_no_evidence_that_there_was_not(paid: Ledger) -> None:
    before = paid.evidence("a-1")
    void = paid.void_change("a-1", 1, "alice", at=30)
    assert void == DecidedChange("a-1", 1, Grounds.BOTH, "", 0, 30, "withdrawn", "the buyer withdrew the change")
    post(paid, replace(FIRST, number=2), at=31)
    assert paid.evidence("a-1") == before


def test_the_overview_has_what_changes_have_given_back(paid: Ledger) -> None:
    post(paid, FIRST, at=30)
    post(paid, SECOND, at=40)
    returned = [(each.kind, each.agreement_id, each.amount) for each in paid.overview(30, None).trades]
    assert returned == [("refund", "a-1", 1_000), ("refund", "a-1", 400)]
    assert [each.amount for each in paid.overview(30, 39).trades] == [1_000]


def test_no_agreement_is_called_like_a_change_of_one(paid: Ledger) -> None:
    for number, name in enumerate(("a-1#1", "a-1#r1", "a#7", "#")):
        order = paid.reserve_order(f"o-2-{number}", "alice", [OrderLine(name, "hector", 2_000)], 100, at=31)
        assert (order.state, order.code) == (OrderState.REFUSED, "malformed_value")
    assert added(paid).state is OrderState.RESERVED  # nobody has taken the name of the first addition


def test_an_agreement_has_so_many_changes(paid: Ledger) -> None:
    assert refusal_code(lambda: post(paid, replace(FIRST, number=1_001), at=30)) == "malformed_value"
    assert post(paid, replace(FIRST, number=1_000), at=30).is_posted


def test_what_cannot_be_decided_leaves_nothing(paid: Ledger) -> None:
    paid.open_account("bob", AccountKind.USER, at=3)
    assert refusal_code(lambda: paid.void_change("a-1", 1, "bob", at=30)) == "unknown_transfer"
    assert refusal_code(lambda: paid.void_change("a-9", 1, "alice", at=30)) == "unknown_transfer"
    assert refusal_code(lambda: post(paid, replace(FIRST, user="bob"), at=30)) == "unknown_transfer"
    assert refusal_code(lambda: post(paid, replace(FIRST, number=-1), at=30)) == "malformed_value"
    assert refusal_code(lambda: post(paid, replace(FIRST, amount=0), at=30)) == "amount_not_positive"
    paid.reserve_order("o-2", "alice", [OrderLine("a-2", "hector", 500)], 100, at=31)
    assert refusal_code(lambda: post(paid, replace(FIRST, agreement_id="a-2"), at=32)) == "not_posted"
    assert paid.changes("a-1") == paid.changes("a-2") == ()


ADDED = OrderLine("a-1#1", "hector", 700, "o-1", "state-0", STATE_1)


def added(ledger: Ledger, *lines: OrderLine, at: int = 30, order_id: str = "o-2") -> Order:
    return ledger.reserve_order(order_id, "alice", lines or (ADDED,), 500, at=at, evidence="<order/>")


def grown(ledger: Ledger) -> Ledger:
    """What alice has paid 25.00 for has grown for 7.00."""
    added(ledger)
    ledger.countersign("a-1#1", at=31, starts_at=40, evidence="<amendment/>")
    return ledger


def test_what_is_added_is_paid_by_its_order(paid: Ledger) -> None:
    assert added(paid).state is OrderState.RESERVED
    assert (paid.balance("alice").reserved, paid.changes("a-1")) == (700, ())
    posted = paid.countersign("a-1#1", at=31, starts_at=40, evidence="<amendment/>")
    assert posted.state is OrderState.POSTED
    assert paid.changes("a-1") == (DecidedChange("a-1", 1, Grounds.BOTH, STATE_1, 700, 31),)
    assert balances(paid) == (6_800, 3_200)
    assert paid.evidence("a-1")[-1] == Evidence("a-1", EvidenceKind.CHANGE, "<amendment/>", 31)
    assert paid.countersign("a-1#1", at=600, starts_at=40).state is OrderState.POSTED  # once is once
    assert balances(paid) == (6_800, 3_200)


def test_a_refund_gives_back_what_was_added_as_well(paid: Ledger) -> None:
    grown(paid)
    assert post(paid, replace(SECOND, amount=-3_199), at=32).is_posted
    assert -end(paid, "a-1", at=33).amount == 2_500 + 700 - 3_199
    assert balances(paid) == (10_000, 0)


def test_what_was_added_does_not_go_back_by_itself(paid: Ledger) -> None:
    grown(paid)
    assert refusal_code(lambda: end(paid, "a-1#1", at=32, alone=True)) == "no_agreement"
    assert refusal_code(lambda: end(paid, "a-1#1", at=32)) == "no_agreement"
    assert refusal_code(lambda: fail(paid, "a-1#1", "hector", at=32, reason="broken")) == "no_agreement"
    assert balances(paid) == (6_800, 3_200)
    assert -end(paid, "a-1", at=33).amount == 3_200
    assert balances(paid) == (10_000, 0)


def test_an_addition_that_is_not_paid_yet_does_not_fail_by_itself(paid: Ledger) -> None:
    added(paid)
    assert refusal_code(lambda: fail(paid, "a-1#1", "hector", at=31, reason="broken")) == "no_agreement"
    assert paid.countersign("a-1#1", at=32, starts_at=40).state is OrderState.POSTED


def test_what_was_added_is_no_slot_to_be_changed(paid: Ledger) -> None:
    """Else the same cores would go back as a part of the addition, and again with the slot."""
    grown(paid)
    of_it = replace(FIRST, agreement_id="a-1#1", amount=-600)
    assert refusal_code(lambda: post(paid, of_it, at=32)) == "no_agreement"
    assert refusal_code(lambda: paid.void_change("a-1#1", 1, "alice", at=32)) == "no_agreement"
    order = added(paid, replace(ADDED, agreement_id="a-1#1#1"), order_id="o-3")
    assert (order.state, order.code) == (OrderState.REFUSED, "no_agreement")
    assert balances(paid) == (6_800, 3_200)


def test_no_more_goes_back_than_was_paid_in_all(paid: Ledger) -> None:
    grown(paid)
    assert post(paid, replace(SECOND, amount=-3_200), at=32).code == "more_than_paid"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"agreement_id": "a-9#1"}, "unknown_transfer"),
        ({"resource": "kelvin"}, "unknown_transfer"),
        ({"agreement_id": "a-1#0"}, "malformed_value"),
        ({"agreement_id": "a-1#01"}, "malformed_value"),
        ({"agreement_id": "a-1#1001"}, "malformed_value"),
        ({"agreement_id": "a-1#one"}, "malformed_value"),
        ({"agreement_id": "a-1#r1"}, "malformed_value"),
        ({"agreement_id": "a-1"}, "agreement_in_use"),
        ({"cost": 7_501}, "insufficient_funds"),
    ],
)
def test_what_cannot_be_added_is_refused_for_good(paid: Ledger, change: dict[str, Any], code: str) -> None:
    paid.open_account("kelvin", AccountKind.RESOURCE, at=1)
    order = added(paid, replace(ADDED, **change))
    assert (order.state, order.code) == (OrderState.REFUSED, code)
    assert balances(paid) == (7_500, 2_500)


def test_the_last_number_of_an_change_can_be_added(paid: Ledger) -> None:
    assert added(paid, replace(ADDED, agreement_id="a-1#1000")).state is OrderState.RESERVED


def test_two_changes_of_one_slot_are_not_paid_together(paid: Ledger) -> None:
    order = added(paid, ADDED, replace(ADDED, agreement_id="a-1#2", becomes="state-2"))
    assert (order.state, order.code) == (OrderState.REFUSED, "agreement_in_use")
    assert order.reason == "the order names agreement a-1 2 times, expected once"
    assert added(paid, ADDED, ADDED, order_id="o-3").reason == "the order names agreement a-1#1 2 times, expected once"


def test_only_the_next_state_of_a_slot_is_added_to(paid: Ledger) -> None:
    post(paid, FIRST, at=29)
    assert added(paid).code == "out_of_order"
    late = replace(ADDED, agreement_id="a-1#2", becomes="state-2")
    assert added(paid, late, order_id="o-3").code == "other_state"
    assert added(paid, replace(late, amends=STATE_1), order_id="o-4").state is OrderState.RESERVED


def test_an_order_is_void_where_its_slot_has_changed_meanwhile(paid: Ledger) -> None:
    added(paid)
    post(paid, replace(SECOND, previous="state-0"), at=31)
    order = paid.countersign("a-1#1", at=32, starts_at=40, evidence="<amendment/>")
    assert (order.state, order.code) == (OrderState.VOIDED, "out_of_order")
    assert [each.number for each in paid.changes("a-1")] == [2]
    assert balances(paid) == (7_900, 2_100)


def test_an_order_is_void_where_its_slot_was_given_back_meanwhile(paid: Ledger) -> None:
    added(paid)
    end(paid, "a-1", at=31)
    order = paid.countersign("a-1#1", at=32, starts_at=40)
    assert (order.state, order.code) == (OrderState.VOIDED, "refunded")
    assert balances(paid) == (10_000, 0)


def test_an_change_that_was_withdrawn_is_never_paid(paid: Ledger) -> None:
    added(paid)
    paid.void_change("a-1", 1, "alice", at=31)
    assert paid.countersign("a-1#1", at=32, starts_at=40).code == "out_of_order"


@pytest.fixture
def two(paid: Ledger) -> Ledger:
    """Alice has bought a second slot, of kelvin, for 10.00."""
    paid.open_account("kelvin", AccountKind.RESOURCE, at=1)
    paid.reserve_order("o-9", "alice", [OrderLine("b-1", "kelvin", 1_000)], 100, at=21)
    paid.countersign("b-1", at=22, starts_at=5_000)
    return paid


OTHER = OrderLine("b-1#1", "kelvin", 300, "o-7", "other-0", "other-1")


def test_several_slots_are_added_to_together(two: Ledger) -> None:
    added(two, ADDED, OTHER)
    assert two.countersign("b-1#1", at=31, starts_at=40).state is OrderState.RESERVED
    assert two.changes("b-1") == ()
    assert two.countersign("a-1#1", at=32, starts_at=40).state is OrderState.POSTED
    assert [two.changes(each)[0].decided_at for each in ("a-1", "b-1")] == [32, 32]
    assert balances(two) == (5_500, 3_200)


def test_or_none_of_them_is(two: Ledger) -> None:
    added(two, ADDED, OTHER)
    two.countersign("b-1#1", at=31, starts_at=40)
    end(two, "b-1", at=32)  # it was countersigned, and is gone
    assert two.countersign("a-1#1", at=33, starts_at=40).code == "refunded"
    assert two.changes("a-1") == ()
    assert [(each.number, each.digest) for each in two.changes("b-1")] == [(TERMINAL, "")]
    assert balances(two) == (7_500, 2_500)


def test_what_one_of_them_lacks_is_found_when_its_own_comes(two: Ledger) -> None:
    added(two, ADDED, OTHER)
    end(two, "b-1", at=31)
    assert two.countersign("a-1#1", at=32, starts_at=40).state is OrderState.RESERVED
    assert two.countersign("b-1#1", at=33, starts_at=40).code == "refunded"
    assert balances(two) == (7_500, 2_500)


def test_what_is_not_paid_in_time_is_void(two: Ledger) -> None:
    added(two, ADDED, OTHER)
    two.countersign("b-1#1", at=31, starts_at=40)
    assert [each.order_id for each in two.expire_orders(500)] == ["o-2"]
    assert two.countersign("a-1#1", at=501, starts_at=40).code == "expired"
    assert balances(two) == (6_500, 2_500)
