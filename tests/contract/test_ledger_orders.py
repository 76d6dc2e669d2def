"""The contract of orders: money set aside for several agreements, posted whole or not at all."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from ledger_answers import amounts, end, end_by, fail, refusal_code

from ramp.ledger.entry import (
    EVIDENCE_LENGTH_MAX,
    ISSUING_ACCOUNT,
    ORDER_LINES_MAX,
    AccountKind,
    Balance,
    DecidedChange,
    Evidence,
    EvidenceKind,
    Grounds,
    Order,
    Transfer,
    TransferState,
)
from ramp.ledger.interface import Ledger
from ramp.model.agreement import TERMINAL
from ramp.model.contents import OrderLine, OrderState, TradeLine, TransferKind
from ramp.model.money import AMOUNT_MAX

UNTIL = 1_000
START = 5_000
LINES = (OrderLine("a-1", "hector", 2_500), OrderLine("a-2", "kelvin", 500), OrderLine("a-3", "hector", 1_000))


@pytest.fixture
def reserved(funded: Ledger) -> Ledger:
    """Alice's order o-1 of three lines, 40.00 credits together, is reserved."""
    funded.reserve_order("o-1", "alice", LINES, UNTIL, at=10, evidence="<order/>")
    return funded


@pytest.fixture
def posted(reserved: Ledger) -> Ledger:
    """That order is posted at 20."""
    for line in LINES:
        reserved.countersign(line.agreement_id, at=20, starts_at=START)
    return reserved


def reserve(ledger: Ledger, order_id: str, cost: int, user: str = "alice", at: int = 10) -> Order:
    return ledger.reserve_order(order_id, user, [OrderLine(f"a-{order_id}", "hector", cost)], UNTIL, at=at)


def states(ledger: Ledger) -> list[TransferState | None]:
    transfers = [ledger.transfer(line.agreement_id) for line in LINES]
    return [None if transfer is None else transfer.state for transfer in transfers]


def test_an_order_sets_all_its_lines_aside(reserved: Ledger) -> None:
    expected = Order("o-1", "alice", LINES, UNTIL, 10, OrderState.RESERVED)
    assert reserved.order("o-1") == reserved.order_of("a-2") == expected
    assert reserved.open_orders() == reserved.open_orders("alice") == (expected,)
    assert reserved.open_orders("bob") == ()
    assert amounts(reserved, "alice") == (10_000, 4_000, 6_000)
    assert amounts(reserved, "hector") == (0, 0, 0)
    assert reserved.transfer("a-2") == Transfer(
        "payment:a-2", "alice", "kelvin", 500, "a-2", TransferKind.PAYMENT, 10, order_id="o-1"
    )


def test_all_lines_are_posted_once_the_last_one_is_countersigned(reserved: Ledger) -> None:
    first = reserved.countersign("a-3", at=20, starts_at=START)
    assert (first.state, first.countersigned) == (OrderState.RESERVED, ("a-3",))
    second = reserved.countersign("a-1", at=21, starts_at=START)
    assert (second.state, second.countersigned) == (OrderState.RESERVED, ("a-1", "a-3"))
    assert states(reserved) == [TransferState.PENDING] * 3
    assert reserved.order("o-1") == second
    last = reserved.countersign("a-2", at=22, starts_at=START)
    assert last == replace(second, state=OrderState.POSTED, settled_at=22, countersigned=("a-1", "a-2", "a-3"))
    assert last == reserved.order("o-1") == reserved.order_of("a-1")
    assert states(reserved) == [TransferState.POSTED] * 3
    assert {one.posted_at for one in map(reserved.transfer, ("a-1", "a-2", "a-3")) if one} == {22}
    assert amounts(reserved, "alice") == (6_000, 0, 6_000)
    assert (amounts(reserved, "hector")[0], amounts(reserved, "kelvin")[0]) == (3_500, 500)
    assert reserved.open_orders() == ()


def test_repeats_give_the_order_as_it_stands_and_change_nothing(reserved: Ledger) -> None:
    once = reserved.countersign("a-1", at=20, starts_at=START)
    entries = reserved.snapshot()
    assert reserved.countersign("a-1", at=21, starts_at=START + 1) == once
    assert reserved.reserve_order("o-1", "alice", list(LINES), UNTIL, at=22, evidence="<again/>") == once
    assert reserved.snapshot() == entries
    reserved.countersign("a-2", at=23, starts_at=START)
    last = reserved.countersign("a-3", at=24, starts_at=START)
    entries = reserved.snapshot()
    for at in (25, UNTIL, UNTIL + 1):
        assert reserved.countersign("a-1", at=at, starts_at=START) == last
        assert reserved.reserve_order("o-1", "alice", LINES, UNTIL, at=at) == last
        assert reserved.void_order("o-1", "alice", UNTIL, at=at, code="unwanted", reason="") == last
    assert reserved.snapshot() == entries
    assert [one.kind for one in reserved.evidence("o-1")] == [EvidenceKind.ORDER]


@pytest.mark.parametrize(
    ("user", "lines", "until"),
    [("bob", LINES, UNTIL), ("alice", LINES[:2], UNTIL), ("alice", LINES[::-1], UNTIL), ("alice", LINES, UNTIL + 1)],
)
def test_the_same_order_on_other_terms_is_refused(
    reserved: Ledger, user: str, lines: tuple[OrderLine, ...], until: int
) -> None:
    before = reserved.snapshot()
    assert refusal_code(lambda: reserved.reserve_order("o-1", user, lines, until, at=11)) == "duplicate_differs"
    assert reserved.snapshot() == before


def test_the_overdraft_bears_an_order_to_the_last_minor_unit(funded: Ledger) -> None:
    assert reserve(funded, "o-1", 1_001, "bob").code == "insufficient_funds"
    assert reserve(funded, "o-2", 1_000, "bob").state is OrderState.RESERVED
    assert amounts(funded, "bob") == (0, 1_000, 0)
    assert reserve(funded, "o-3", 1, "bob").code == "insufficient_funds"
    funded.countersign("a-o-2", at=20, starts_at=START)
    assert amounts(funded, "bob") == (-1_000, 0, 0)
    assert reserve(funded, "o-4", 1, "bob").code == "insufficient_funds"


def test_the_sum_of_the_lines_counts_and_not_each(funded: Ledger) -> None:
    lines = [OrderLine(f"a-{number}", "hector", 400) for number in range(3)]
    refused = funded.reserve_order("o-1", "bob", lines, UNTIL, at=10)
    assert (refused.state, refused.code) == (OrderState.REFUSED, "insufficient_funds")
    assert funded.balance("alice").reserved == 0
    assert "10.00 available, needs 12.00" in refused.reason


def test_an_expired_order_is_voided_before_the_next_one_is_judged(funded: Ledger) -> None:
    """Nobody has swept since the first one expired; it reserves nothing any more."""
    lines = [OrderLine("a-1", "hector", 900)]
    assert funded.reserve_order("o-1", "bob", lines, UNTIL, at=10).state is OrderState.RESERVED
    again = [OrderLine("a-2", "kelvin", 900)]
    assert funded.reserve_order("o-2", "bob", again, 2 * UNTIL, at=UNTIL).state is OrderState.RESERVED
    voided = funded.order("o-1")
    assert voided is not None
    assert (voided.state, voided.code) == (OrderState.VOIDED, "expired")


@pytest.mark.parametrize(
    ("user", "lines", "at", "code"),
    [
        ("alice", [], 10, "no_lines"),
        ("alice", LINES, UNTIL, "expired"),
        ("nobody", LINES, 10, "unknown_account"),
        ("alice", [LINES[0], OrderLine("a-2", "nobody", 5)], 10, "unknown_account"),
        ("hector", [LINES[1]], 10, "wrong_account"),
        (ISSUING_ACCOUNT, LINES, 10, "wrong_account"),
        ("alice", [OrderLine("a-1", "bob", 5)], 10, "wrong_account"),
        ("alice", [OrderLine("a-1", "alice", 5)], 10, "wrong_account"),
        ("alice", [OrderLine("a-1", ISSUING_ACCOUNT, 5)], 10, "wrong_account"),
        ("alice", [LINES[0], LINES[1], OrderLine("a-1", "kelvin", 5)], 10, "agreement_in_use"),
        ("alice", [OrderLine("a-1", "hector", 10_001)], 10, "insufficient_funds"),
    ],
)
def test_what_cannot_be_reserved_is_refused_for_good(
    funded: Ledger, user: str, lines: list[OrderLine], at: int, code: str
) -> None:
    refused = funded.reserve_order("o-1", user, lines, UNTIL, at=at, evidence="<order/>")
    assert (refused.state, refused.code, refused.settled_at) == (OrderState.REFUSED, code, at)
    assert refused.reason
    assert funded.balance("alice").reserved == 0
    # It stays refused, though everything it lacked is there now; its agreements are free for another order.
    funded.open_account("nobody", AccountKind.USER, at=11)
    funded.deposit("d-2", "alice", 10_000, at=11)
    assert funded.reserve_order("o-1", user, lines, UNTIL, at=12) == refused == funded.order("o-1")
    assert funded.void_order("o-1", user, UNTIL, at=12, code="unwanted", reason="") == refused
    assert funded.order_of("a-1") is None
    assert funded.evidence("o-1") == (Evidence("o-1", EvidenceKind.ORDER, "<order/>", at),)
    assert funded.reserve_order("o-2", "alice", LINES, UNTIL, at=13).state is OrderState.RESERVED


@pytest.mark.parametrize(
    ("order_id", "user", "line", "until", "at", "code"),
    [
        ("", "alice", LINES[0], UNTIL, 10, "malformed_value"),
        ("o 1", "alice", LINES[0], UNTIL, 10, "malformed_value"),
        ("o-1", "", LINES[0], UNTIL, 10, "malformed_value"),
        ("o-1", "alice", OrderLine("", "hector", 1), UNTIL, 10, "malformed_value"),
        ("o-1", "alice", OrderLine("a\x001", "hector", 1), UNTIL, 10, "malformed_value"),
        ("o-1", "alice", OrderLine("a-1", "hec tor", 1), UNTIL, 10, "malformed_value"),
        ("o-1", "alice", OrderLine("a-1", "hector", 1.5), UNTIL, 10, "malformed_value"),
        ("o-1", "alice", OrderLine("a-1", "hector", True), UNTIL, 10, "malformed_value"),
        ("o-1", "alice", OrderLine("a-1", "hector", 0), UNTIL, 10, "amount_not_positive"),
        ("o-1", "alice", OrderLine("a-1", "hector", -1), UNTIL, 10, "amount_not_positive"),
        ("o-1", "alice", OrderLine("a-1", "hector", AMOUNT_MAX + 1), UNTIL, 10, "amount_too_large"),
        ("o-1", "alice", LINES[0], 1.0, 10, "malformed_value"),
        ("o-1", "alice", LINES[0], UNTIL, -1, "malformed_value"),
    ],
)
def test_malformed_orders_are_refused_and_not_entered(
    funded: Ledger, order_id: str, user: str, line: OrderLine, until: int, at: int, code: str
) -> None:
    before = funded.snapshot()
    assert refusal_code(lambda: funded.reserve_order(order_id, user, [line], until, at=at)) == code
    assert funded.snapshot() == before


def test_an_order_has_a_limited_number_of_lines(funded: Ledger) -> None:
    lines = [OrderLine(f"a-{number}", "hector", 1) for number in range(ORDER_LINES_MAX + 1)]
    assert refusal_code(lambda: funded.reserve_order("o-1", "alice", lines, UNTIL, at=10)) == "malformed_value"
    assert funded.reserve_order("o-1", "alice", lines[1:], UNTIL, at=10).state is OrderState.RESERVED
    assert amounts(funded, "alice") == (10_000, ORDER_LINES_MAX, 10_000 - ORDER_LINES_MAX)
    assert funded.void_order("o-1", "alice", UNTIL, at=11, code="unwanted", reason="").state is OrderState.VOIDED
    assert amounts(funded, "alice") == (10_000, 0, 10_000)


def test_the_buyer_voids_the_whole_order(reserved: Ledger) -> None:
    reserved.countersign("a-1", at=15, starts_at=START)
    reason = "another\n  offer is cheaper"
    voided = reserved.void_order("o-1", "alice", UNTIL, at=20, code="unwanted", reason=reason, evidence="<void/>")
    assert (voided.state, voided.settled_at, voided.code) == (OrderState.VOIDED, 20, "unwanted")
    assert voided.reason == "another offer is cheaper"
    assert states(reserved) == [TransferState.VOIDED] * 3
    assert amounts(reserved, "alice") == (10_000, 0, 10_000)
    assert reserved.evidence("o-1")[1:] == (Evidence("o-1", EvidenceKind.VOID, "<void/>", 20),)
    entries = reserved.snapshot()
    assert reserved.void_order("o-1", "alice", UNTIL, at=21, code="other", reason="", evidence="<2/>") == voided
    assert reserved.countersign("a-2", at=22, starts_at=START) == voided
    assert reserved.reserve_order("o-1", "alice", LINES, UNTIL, at=23) == voided
    assert fail(reserved, "a-1", "hector", at=24, reason="") == voided
    assert reserved.snapshot() == entries
    assert len(reserved.evidence("o-1")) == 2


def test_a_void_before_its_order_voids_it(funded: Ledger) -> None:
    early = funded.void_order("o-1", "alice", UNTIL, at=5, code="unwanted", reason="too late", evidence="<void/>")
    assert early == Order("o-1", "alice", (), UNTIL, 5, OrderState.VOIDED, 5, "unwanted", "too late")
    assert funded.void_order("o-1", "alice", UNTIL, at=6, code="other", reason="") == early
    assert funded.evidence("o-1") == (Evidence("o-1", EvidenceKind.VOID, "<void/>", 5),)
    voided = funded.reserve_order("o-1", "alice", LINES, UNTIL, at=10, evidence="<order/>")
    assert voided == Order("o-1", "alice", LINES, UNTIL, 10, OrderState.VOIDED, 10, "unwanted", "too late")
    assert voided == funded.order("o-1")
    assert [(one.kind, one.at) for one in funded.evidence("o-1")] == [("void", 5), ("order", 10)]
    assert funded.balance("alice").reserved == 0
    assert funded.reserve_order("o-1", "alice", LINES, UNTIL, at=UNTIL) == voided
    assert funded.void_order("o-1", "alice", UNTIL, at=UNTIL, code="other", reason="") == voided
    assert funded.audit() == []
    assert funded.reserve_order("o-2", "alice", LINES, UNTIL, at=11).state is OrderState.RESERVED


@pytest.mark.parametrize(
    ("user", "until"),
    [("nobody", UNTIL), ("hector", UNTIL), ("alice", 5)],
)
def test_a_void_for_which_no_order_can_come_is_not_entered(funded: Ledger, user: str, until: int) -> None:
    before = funded.snapshot()
    voided = funded.void_order("o-1", user, until, at=5, code="unwanted", reason="why", evidence="<void/>")
    assert voided == Order("o-1", user, (), until, 5, OrderState.VOIDED, 5, "unwanted", "why")
    assert (funded.snapshot(), funded.order("o-1"), funded.evidence("o-1")) == (before, None, ())
    again = funded.void_order("o-1", user, until, at=6, code="other", reason="")
    assert again.code == "other"  # nothing was kept of the first


def test_a_void_before_its_order_gives_its_reason_on_one_line(funded: Ledger) -> None:
    voided = funded.void_order("o-1", "alice", UNTIL, at=5, code="unwanted", reason="too\n late")
    assert voided.reason == "too late"
    assert funded.reserve_order("o-1", "alice", LINES, UNTIL, at=10).reason == "too late"


def test_reasons_are_kept_up_to_a_thousand_characters(reserved: Ledger) -> None:
    why = "x" * 1001
    assert reserved.void_order("o-1", "alice", UNTIL, at=20, code="unwanted", reason=why).reason == why[:1000]
    assert reserved.void_order("o-2", "alice", UNTIL, at=20, code="unwanted", reason=why).reason == why[:1000]
    name = "a" * 500
    refused = reserved.reserve_order("o-3", "alice", [OrderLine(name, name, 5)], UNTIL, at=20)
    assert refused.reason == f"no account {name}"


@pytest.mark.parametrize("way", ["reserve", "void", "fail"])
def test_whoever_asks_after_the_deadline_finds_the_order_expired(reserved: Ledger, way: str) -> None:
    if way == "reserve":
        late = reserved.reserve_order("o-1", "alice", LINES, UNTIL, at=UNTIL)
    elif way == "void":
        late = reserved.void_order("o-1", "alice", UNTIL, at=UNTIL, code="unwanted", reason="")
    else:
        late = fail(reserved, "a-1", "hector", at=UNTIL, reason="")
    assert (late.state, late.code) == (OrderState.VOIDED, "expired")
    assert amounts(reserved, "alice") == (10_000, 0, 10_000)


def test_sweeping_voids_what_is_due_in_order_of_entry(funded: Ledger) -> None:
    for order_id, until in (("o-z", 300), ("o-y", 100), ("o-x", 200), ("o-w", 200)):
        lines = [OrderLine(f"a-{order_id}", "hector", 100)]
        funded.reserve_order(order_id, "alice", lines, until, at=10)
    funded.reserve_order("o-v", "bob", LINES, 50, at=10)  # refused: nothing to expire
    assert [order.order_id for order in funded.open_orders()] == ["o-z", "o-y", "o-x", "o-w"]
    assert funded.expire_orders(99) == ()
    voided = funded.expire_orders(200)
    assert [(one.order_id, one.state, one.code, one.settled_at) for one in voided] == [
        (order_id, OrderState.VOIDED, "expired", 200) for order_id in ("o-y", "o-x", "o-w")
    ]
    assert amounts(funded, "alice") == (10_000, 100, 9_900)
    assert [order.order_id for order in funded.open_orders()] == ["o-z"]


def test_a_failed_resource_voids_the_whole_order(reserved: Ledger) -> None:
    failed = fail(reserved, "a-2", "kelvin", at=20, reason="the link\nbroke", evidence="<failed/>")
    assert (failed.state, failed.code, failed.reason) == (OrderState.VOIDED, "resource_failed", "the link broke")
    assert states(reserved) == [TransferState.VOIDED] * 3
    assert reserved.evidence("a-2") == (Evidence("a-2", EvidenceKind.CHANGE, "<failed/>", 20),)
    assert fail(reserved, "a-1", "hector", at=21, reason="", evidence="<2/>") == failed
    assert reserved.evidence("a-1") == ()
    assert refusal_code(lambda: end(reserved, "a-2", at=22)) == "not_posted"
    terms = end_by("alice", "hector", "a-3"), Grounds.SELLER
    nothing = DecidedChange("a-3", TERMINAL, Grounds.SELLER, "", 0, 23, "resource_failed", "the link broke")
    assert reserved.post_change(*terms, at=23) == nothing


@pytest.mark.parametrize(("agreement", "resource"), [("a-1", "kelvin"), ("a-1", "alice"), ("a-9", "hector")])
def test_only_the_named_resource_fails_an_agreement(reserved: Ledger, agreement: str, resource: str) -> None:
    before = reserved.snapshot()
    assert refusal_code(lambda: fail(reserved, agreement, resource, at=20, reason="")) == "unknown_transfer"
    assert reserved.snapshot() == before


def test_a_posted_agreement_whose_resource_fails_is_given_back_once(posted: Ledger) -> None:
    order = fail(posted, "a-1", "hector", at=6_000, reason="machine down", evidence="<failed/>")
    assert (order.state, order.settled_at) == (OrderState.POSTED, 20)
    refund = posted.transfer("a-1", TransferKind.REFUND)
    assert refund == Transfer(
        "refund:a-1",
        "hector",
        "alice",
        2_500,
        "a-1",
        TransferKind.REFUND,
        6_000,
        posted_at=6_000,
        memo="machine down",
        order_id="o-1",
    )
    assert fail(posted, "a-1", "hector", at=6_001, reason="again", evidence="<2/>") == order
    assert end(posted, "a-1", at=6_002, evidence="<3/>").decided_at == 6_000
    assert posted.transfer("a-1", TransferKind.REFUND) == refund
    assert amounts(posted, "alice") == (8_500, 0, 8_500)
    assert amounts(posted, "hector")[0] == 1_000
    assert posted.evidence("a-1") == (Evidence("a-1", EvidenceKind.CHANGE, "<failed/>", 6_000),)
    assert posted.transfer("a-3", TransferKind.REFUND) is None


def test_a_buyer_alone_is_refunded_before_the_start_only(posted: Ledger) -> None:
    assert refusal_code(lambda: end(posted, "a-1", at=START, alone=True)) == "started"
    assert posted.transfer("a-1", TransferKind.REFUND) is None
    early = end(posted, "a-2", at=START - 1, alone=True)
    assert end(posted, "a-2", at=START + 1, alone=True) == early  # decided before, told again
    assert -end(posted, "a-1", at=START + 2).amount == 2_500  # both agree


def test_each_agreement_starts_at_its_own_time(funded: Ledger) -> None:
    funded.reserve_order("o-1", "alice", LINES[:2], UNTIL, at=10)
    funded.countersign("a-1", at=11, starts_at=50)
    funded.countersign("a-2", at=11, starts_at=90)
    assert refusal_code(lambda: end(funded, "a-1", at=60, alone=True)) == "started"
    assert -end(funded, "a-2", at=60, alone=True).amount == 500


def test_agreements_that_no_order_has_are_not_countersigned(reserved: Ledger) -> None:
    assert refusal_code(lambda: reserved.countersign("a-9", at=11, starts_at=START)) == "unknown_transfer"
    assert refusal_code(lambda: reserved.countersign("a-1", at=11, starts_at=-1)) == "malformed_value"


def test_evidence_is_kept_in_the_order_in_which_it_came(funded: Ledger) -> None:
    funded.deposit("d-2", "alice", 5, at=3, evidence="<deposit/>")
    funded.deposit("d-2", "alice", 5, at=4, evidence="<repeat/>")
    funded.deposit("d-3", "alice", 5, at=4)
    assert funded.evidence("d-2") == (Evidence("d-2", EvidenceKind.DEPOSIT, "<deposit/>", 3),)
    assert funded.evidence("d-3") == funded.evidence("nothing") == ()
    text = "<agreement>ünit & \u4e2d\r\n\t</agreement>" * 1_000
    funded.reserve_order("o-1", "alice", LINES[:1], UNTIL, at=10)
    funded.countersign("a-1", at=11, starts_at=START, evidence=text)
    end(funded, "a-1", at=12, evidence="<cancellation/>")
    assert funded.evidence("a-1") == (
        Evidence("a-1", EvidenceKind.AGREEMENT, text, 11),
        Evidence("a-1", EvidenceKind.CHANGE, "<cancellation/>", 12),
    )


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x" * (EVIDENCE_LENGTH_MAX + 1)])
def test_evidence_that_cannot_be_kept_stops_the_change(funded: Ledger, text: str) -> None:
    funded.reserve_order("o-1", "alice", LINES[:1], UNTIL, at=10)
    before = funded.snapshot()
    for call in (
        lambda: funded.deposit("d-2", "alice", 5, at=3, evidence=text),
        lambda: funded.reserve_order("o-2", "alice", LINES[1:], UNTIL, at=11, evidence=text),
        lambda: funded.countersign("a-1", at=11, starts_at=START, evidence=text),
        lambda: funded.void_order("o-1", "alice", UNTIL, at=11, code="unwanted", reason="", evidence=text),
        lambda: fail(funded, "a-1", "hector", at=11, reason="", evidence=text),
        lambda: end(funded, "a-1", at=11, evidence=text),
    ):
        assert refusal_code(call) == "malformed_value"
    assert funded.snapshot() == before


def test_the_overview_lists_what_was_posted_in_order_of_posting(posted: Ledger) -> None:
    reserve(posted, "o-2", 7, at=25)
    end(posted, "a-2", at=30)
    reserve(posted, "o-3", 9, at=30)
    posted.countersign("a-o-3", at=31, starts_at=START)
    posted.countersign("a-o-2", at=29, starts_at=START)  # the clock was set back
    overview = posted.overview(None, None)
    assert overview.trades == (
        TradeLine("deposit:d-1", 2, TransferKind.DEPOSIT, ISSUING_ACCOUNT, "alice", "d-1", "", 10_000),
        TradeLine("payment:a-1", 20, TransferKind.PAYMENT, "alice", "hector", "a-1", "o-1", 2_500),
        TradeLine("payment:a-2", 20, TransferKind.PAYMENT, "alice", "kelvin", "a-2", "o-1", 500),
        TradeLine("payment:a-3", 20, TransferKind.PAYMENT, "alice", "hector", "a-3", "o-1", 1_000),
        TradeLine("refund:a-2", 30, TransferKind.REFUND, "kelvin", "alice", "a-2", "o-1", 500),
        TradeLine("payment:a-o-3", 31, TransferKind.PAYMENT, "alice", "hector", "a-o-3", "o-3", 9),
        TradeLine("payment:a-o-2", 29, TransferKind.PAYMENT, "alice", "hector", "a-o-2", "o-2", 7),
    )
    assert overview.next_after is None
    part = posted.overview(20, 30)
    assert [trade.agreement_id for trade in part.trades] == ["a-1", "a-2", "a-3", "a-2", "a-o-2"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_the_overview_comes_in_pages(posted: Ledger, limit: int) -> None:
    history_of = [reserve(posted, f"o-{number}", number) for number in (2, 3, 4)]
    for order in history_of:
        posted.countersign(order.lines[0].agreement_id, at=30, starts_at=START)
    whole = posted.overview(3, None)
    assert len(whole.trades) == 6
    trades: list[TradeLine] = []
    after: int | None = 0
    while after is not None:
        page = posted.overview(3, None, after=after, limit=limit)
        assert 0 < len(page.trades) <= limit
        trades.extend(page.trades)
        after = page.next_after
    assert tuple(trades) == whole.trades


@pytest.mark.parametrize(("after", "limit", "since"), [(0, 0, None), (0, 10_001, None), (-1, 5, None), (0, 5, 1.5)])
def test_pages_that_cannot_be_are_refused(funded: Ledger, after: int, limit: int, since: int | None) -> None:
    assert funded.overview(None, None, limit=10_000) == funded.overview(None, None, limit=1)
    assert refusal_code(lambda: funded.overview(since, None, after=after, limit=limit)) == "malformed_value"


def test_what_was_done_is_there_after_reopening(reopen: Callable[[], Ledger]) -> None:
    before = reopen()
    alice = before.open_account("alice", AccountKind.USER, at=1)
    before.open_account("hector", AccountKind.RESOURCE, at=1)
    deposited = before.deposit("d-1", "alice", 100, at=2)
    reserve(before, "o-0", 40, at=3)
    before.countersign("a-o-0", at=3, starts_at=START)
    two = [OrderLine("a-1", "hector", 5), OrderLine("a-2", "hector", 6)]
    before.reserve_order("o-1", "alice", two, UNTIL, at=3, evidence="<order/>")
    half = before.countersign("a-2", at=4, starts_at=START)
    refused = reserve(before, "o-2", 500, at=5)
    before.void_order("o-3", "alice", UNTIL, at=6, code="unwanted", reason="")
    after = reopen()
    assert after.deposit("d-1", "alice", 100, at=9) == deposited
    assert after.transfer("a-o-0") == before.transfer("a-o-0")
    assert after.open_orders() == (half,)
    assert after.order("o-2") == refused
    assert after.evidence("o-1") == before.evidence("o-1") != ()
    assert after.balance("alice") == before.balance("alice") == Balance(alice, 60, 11)
    assert reserve(after, "o-3", 1, at=7).code == "unwanted"
    assert after.countersign("a-1", at=8, starts_at=START).state is OrderState.POSTED
    assert before.balance("hector").posted == 51
    assert after.snapshot() == before.snapshot()
    assert after.audit() == []
