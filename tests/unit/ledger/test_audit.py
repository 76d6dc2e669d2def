"""Every rule of the audit is broken once in a sound ledger, by rows that were changed past all other rules."""

from dataclasses import replace
from typing import Any

import pytest
from ledger_answers import end

from ramp.ledger.audit import FINDINGS_MAX, RULES, audit
from ramp.ledger.entry import AccountKind, Action, Entry, Transfer, agreement_of, balance_changes
from ramp.ledger.records import EntryRow, Snapshot, TransferRow
from ramp.model.contents import OrderLine, OrderState, TransferKind
from simulation.market.book import Book


def sound() -> Book:
    """A ledger with an order in each state; a-1 has grown, a-3 has been given back."""
    book = Book()
    for name, kind in (("alice", AccountKind.USER), ("hector", AccountKind.RESOURCE)):
        book.open_account(name, kind, at=1)
    book.open_account("bob", AccountKind.USER, at=1, credit_limit=50)
    book.deposit("d-1", "alice", 100, at=2)
    two = [OrderLine("a-1", "hector", 30), OrderLine("a-2", "hector", 20)]
    book.reserve_order("o-1", "alice", two, 100, at=10)
    for name in ("a-1", "a-2"):
        book.countersign(name, at=15, starts_at=500)
    book.reserve_order("o-2", "alice", [OrderLine("a-1#1", "hector", 1, "", "state-0", "state-1")], 100, at=20)
    book.countersign("a-1#1", at=21, starts_at=500)
    book.reserve_order("o-5", "alice", [OrderLine("a-5", "hector", 5)], 30, at=21)
    book.reserve_order("o-3", "alice", [OrderLine("a-3", "hector", 10)], 100, at=22)
    book.countersign("a-3", at=23, starts_at=500)
    end(book, "a-3", at=24)
    book.reserve_order("o-4", "bob", [OrderLine("a-4", "hector", 50)], 100, at=25)
    book.expire_orders(30)
    book.reserve_order("o-6", "alice", [OrderLine("a-6", "hector", 5_000)], 100, at=31)
    larger = OrderLine("a-2#1", "hector", 3, "", "state-0", "state-1")
    book.reserve_order("o-7", "alice", [larger, OrderLine("a-7", "hector", 5)], 100, at=32)
    book.countersign("a-2#1", at=33, starts_at=500)
    book.reserve_order("o-8", "alice", two, 100, at=33)
    return book


SOUND = sound().snapshot()


def row_of(snapshot: Snapshot, table: str, key: object) -> int:
    """The place of the row with a key: its first column, of a line its agreement, of an entry all but its number."""
    rows: tuple[Any, ...] = getattr(snapshot, table)
    keys = [row[1] if table == "lines" else row[1:] if table == "entries" else row[0] for row in rows]
    return keys.index(key)


def changed(snapshot: Snapshot, table: str, key: object, **values: Any) -> Snapshot:
    """The snapshot with other values in a row; without the row if there are none."""
    rows = list(getattr(snapshot, table))
    place = row_of(snapshot, table, key)
    rows[place : place + 1] = [rows[place]._replace(**values)] if values else []
    return replace(snapshot, **{table: tuple(rows)})


def moved(snapshot: Snapshot, amount: int, debit: str, credit: str) -> Snapshot:
    """The snapshot with an amount moved between two balances."""
    for name, more in ((debit, -amount), (credit, amount)):
        kept = snapshot.accounts[row_of(snapshot, "accounts", name)].posted
        snapshot = changed(snapshot, "accounts", name, posted=kept + more)
    return snapshot


def test_a_sound_ledger_has_no_findings() -> None:
    assert audit(SOUND) == []
    assert {row.state for row in SOUND.orders} == set(OrderState)
    assert audit(Book().snapshot()) == []


PAID, REFUND = "payment:a-1", "refund:a-3"
_SETTLED = ("settled", None, None, "o-1")
_ENTERED = ("entered", None, PAID, None)
_PAID = ("settled", None, PAID, None)
_SIGNED = ("countersigned", None, PAID, None)
_DEPOSIT = ("entered", None, "deposit:d-1", None)

BROKEN: dict[str, tuple[str, object, dict[str, Any], str]] = {
    "a balance": ("accounts", "bob", {"posted": 1}, "account bob has 1 minor units posted, its transfers give 0"),
    "money from nowhere": ("accounts", "bob", {"posted": 1}, "all balances sum to 1 minor units"),
    "escrow": ("accounts", "bob", {"reserved": 7}, "account bob has 7 minor units reserved, its transfers give 50"),
    "an amount": ("transfers", "deposit:d-1", {"amount": 101}, "account alice has"),
    "a limit": ("accounts", "bob", {"credit_limit": 49}, "payment:a-4 brings bob 1 minor units below its limit"),
    "money after it was spent": ("entries", _DEPOSIT, {"entry_number": 1_000}, "payment:a-1 brings alice 30 minor"),
    "money that is set aside": ("transfers", "deposit:d-1", {"amount": 61}, "payment:a-3 brings alice 5 minor units"),
    "an unknown kind of account": ("accounts", "bob", {"kind": "god"}, "account bob is of the unknown kind god"),
    "a seller's overdraft": ("accounts", "hector", {"credit_limit": 5}, "hector has an overdraft of 5 minor units"),
    "no opening": ("entries", ("opened", "bob", None, None), {}, "account bob was never opened"),
    "a late opening": ("entries", ("opened", "hector", None, None), {"entry_number": 1_000}, "has an entry before one"),
    "no entry": ("entries", _ENTERED, {}, "payment:a-1 (30 minor units from alice to hector) was"),
    "another id": ("transfers", PAID, {"agreement_id": "a-9"}, "has an id that does not fit payment a-9"),
    "a transfer's kind": ("transfers", PAID, {"kind": "gift"}, "is of the unknown kind gift"),
    "no amount": ("transfers", PAID, {"amount": 0}, "has an amount that is not above zero"),
    "its own account": ("transfers", PAID, {"credit_account": "alice"}, "has one account on both sides"),
    "an unknown account": ("transfers", PAID, {"credit_account": "nobody"}, "references an unknown account"),
    "both ends": ("transfers", PAID, {"voided_at": 15}, "is both posted and voided"),
    "an open refund": ("transfers", REFUND, {"posted_at": None}, "is not posted, expected of every refund"),
    "a pending transfer that was settled": ("transfers", PAID, {"posted_at": None}, "contradicts the entry that"),
    "a refund that was settled": ("entries", _PAID, {"transfer_id": REFUND}, "refund:a-3 (10 minor units from"),
    "an end before its entry": ("entries", _PAID, {"entry_number": 1}, "contradicts the entry that settles it"),
    "another's deposit": ("transfers", "deposit:d-1", {"debit_account": "bob"}, "deposits go from market to users"),
    "a seller's deposit": ("transfers", "deposit:d-1", {"credit_account": "hector"}, "deposits go from market to"),
    "a deposit with an order": ("transfers", "deposit:d-1", {"order_id": "o-1"}, "to users, without an order"),
    "a lost order": ("orders", "o-1", {}, "payment:a-1 (30 minor units from alice to hector) has no order that"),
    "no order": ("transfers", PAID, {"order_id": None}, "has no order that reserved it"),
    "another order": ("transfers", PAID, {"order_id": "o-6"}, "has no order that reserved it"),
    "an order that reserved nothing": ("orders", "o-4", {"state": "voided", "settled_at": 26}, "has no order that"),
    "a lost line": ("lines", "a-1", {}, "payment:a-1 (30 minor units from alice to hector) has no order that"),
    "a refund for nothing": ("changes", "a-3", {}, "refund:a-3 (10 minor units from hector to alice) belongs to no"),
    "an addition for nothing": ("changes", "a-1", {}, "payment:a-1#1 (1 minor units from alice to hector) belongs to"),
    "an order's entry": ("entries", ("entered", None, None, "o-6"), {}, "order o-6 of alice was never entered"),
    "a state": ("orders", "o-6", {"state": "lost"}, "order o-6 of alice is in the unknown state lost"),
    "an end": ("orders", "o-4", {"settled_at": 26}, "order o-4 of bob is reserved with the end 26"),
    "a late posting": ("orders", "o-1", {"valid_until": 15}, "order o-1 of alice is posted after its deadline"),
    "a lost settling": ("entries", _SETTLED, {}, "order o-1 of alice is posted, which its entries contradict"),
    "an order that was settled before": ("entries", _SETTLED, {"entry_number": 1}, "which its entries contradict"),
    "a refusal that was settled": ("orders", "o-5", {"state": "refused"}, "is refused, which its entries contradict"),
    "a late reservation": ("orders", "o-4", {"entered_at": 100}, "order o-4 was reserved after its deadline"),
    "no lines": ("lines", "a-4", {}, "order o-4 was reserved after its deadline, without lines"),
    "another buyer": ("orders", "o-4", {"user": "hector"}, "for hector, who is not a user"),
    "a seller that is none": ("accounts", "hector", {"kind": "user"}, "order o-1 is not in the state of its payment"),
    "a lost payment": ("transfers", "payment:a-4", {}, "order o-4 is not in the state of its payment of a-4 to hector"),
    "another cost": ("lines", "a-1", {"cost": 31}, "order o-1 is not in the state of its payment of a-1 to hector"),
    "another seller": ("lines", "a-1", {"resource": "bob"}, "order o-1 is not in the state of its payment of a-1"),
    "a payment that lost its settling": ("entries", _PAID, {}, "order o-1 is not in the state of its payment of a-1"),
    "a payment before its order": ("entries", _ENTERED, {"entry_number": 0}, "order o-1 is not in the state of its"),
    "a payment settled alone": ("entries", ("settled", None, None, "o-5"), {"order_id": "o-4"}, "order o-4 is not in"),
    "a void that was posted": ("transfers", "payment:a-5", {"posted_at": 30, "voided_at": None}, "its payment of a-5"),
    "no signature": ("lines", "a-1", {"countersigned_at": None, "starts_at": None}, "hector's countersignature of a-1"),
    "no start": ("lines", "a-1", {"starts_at": None}, "hector's countersignature of a-1"),
    "a start without a signature": ("lines", "a-4", {"starts_at": 500}, "hector's countersignature of a-4"),
    "no entry of a signature": ("entries", _SIGNED, {}, "hector's countersignature of a-1"),
    "a late signature": ("lines", "a-1", {"countersigned_at": 100}, "hector's countersignature of a-1"),
    "a signature after the end": ("entries", _SIGNED, {"entry_number": 1_000}, "hector's countersignature of a-1"),
    "a line of no order": ("orders", "o-6", {}, "order o-6 is not in the state that hector's countersignature of a-6"),
    "a change without a payment": ("transfers", "payment:a-3", {}, "change 0 of a-3 over -10 minor units"),
    "a change of an open payment": ("transfers", "payment:a-3", {"posted_at": None}, "change 0 of a-3 over -10"),
    "a change with an open payment": ("transfers", "payment:a-1#1", {"posted_at": None}, "change 1 of a-1 over 1"),
    "a change's amount": ("changes", "a-3", {"amount": -9}, "change 0 of a-3 over -9 minor units and its transfer"),
    "a change's state": ("changes", "a-1", {"digest": "x"}, "change 1 of a-1 over 1 minor units and its transfer"),
    "a change's agreement": ("changes", "a-1", {"agreement_id": "a-2"}, "change 1 of a-2 over 1 minor units and its"),
    "a refund of another order": ("transfers", REFUND, {"order_id": "o-1"}, "change 0 of a-3 over -10 minor units"),
    "a refund to another": ("transfers", REFUND, {"credit_account": "bob"}, "change 0 of a-3 over -10 minor units"),
    "an entry of nothing": ("entries", _SIGNED, {"transfer_id": "payment:x"}, "(countersigned) names nothing"),
    "an entry of two things": ("entries", _SIGNED, {"order_id": "o-1"}, "(countersigned) names nothing"),
    "an entry's action": ("entries", _DEPOSIT, {"action": "opened"}, "(opened) names nothing in the ledger"),
    "a repeated entry": ("entries", ("settled", None, "payment:a-2", None), {"transfer_id": PAID}, "or is repeated"),
    "an end that is no number": ("orders", "o-1", {"valid_until": None}, "a whole number: order_id o-1, user alice"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_row_is_found_and_named(kind: str) -> None:
    table, key, values, finding = BROKEN[kind]
    found = audit(changed(SOUND, table, key, **values))
    assert any(finding in line for line in found), found


def test_every_rule_has_its_case() -> None:
    """Without it, one of the cases above is not found."""
    known = [audit(changed(SOUND, table, key, **values)) for table, key, values, _ in BROKEN.values()]
    said = "\n".join(line for found in known for line in found)
    for sentence, _ in (rule for rules in RULES.values() for rule in rules):
        longest = max(sentence.replace("}", "{").split("{")[::2], key=len)
        assert longest in said, sentence


def test_who_has_something_else_than_a_number_is_named() -> None:
    found = audit(changed(SOUND, "transfers", PAID, amount="many"))
    named = "transfer_id payment:a-1, agreement_id a-1, order_id o-1, debit_account alice, credit_account hector"
    assert found == [f"in transfers, amount is 'many' instead of a whole number: {named}"]


def test_a_payment_and_its_balances_to_another_are_found() -> None:
    elsewhere = moved(changed(SOUND, "transfers", PAID, credit_account="market"), 30, "hector", "market")
    assert audit(elsewhere) == [
        "order o-1 is not in the state of its payment of a-1 to hector, or differs from it",
        "change 1 of a-1 over 1 minor units and its transfer contradict each other",
    ]


def test_changes_that_return_more_than_was_paid_are_found() -> None:
    """By a change of the slot, and as a whole: alice has 7 minor units more than she had."""
    snapshot = moved(SOUND, 38, "hector", "alice")
    number = len(SOUND.entries)
    for key, name, amount in ((2, "a-1#2", 7), (0, "a-1", 31)):
        refund = TransferRow(f"refund:{name}", "refund", name, "o-1", "hector", "alice", amount, 50, None)
        change = SOUND.changes[0]._replace(agreement_id="a-1", number=key, digest="", amount=-amount)
        number += 1
        snapshot = replace(
            snapshot,
            transfers=(*snapshot.transfers, refund),
            changes=(*snapshot.changes, change),
            entries=(*snapshot.entries, EntryRow(number, "entered", None, refund.transfer_id, None)),
        )
    assert audit(snapshot) == ["the changes of a-1 leave -7 minor units of what was paid"]


def test_findings_of_one_rule_are_limited() -> None:
    assert len(audit(replace(SOUND, entries=()))) <= (len(RULES) + 20) * FINDINGS_MAX
    stray = tuple(SOUND.transfers[0]._replace(transfer_id=f"deposit:{n}") for n in range(100))
    rich = tuple(SOUND.accounts[0]._replace(account_id=f"u-{n}", posted=1) for n in range(100))
    found = audit(replace(SOUND, transfers=(*SOUND.transfers, *stray), accounts=(*SOUND.accounts, *rich)))
    for finding in ("was never entered", "minor units posted"):
        assert sum(finding in line for line in found) == FINDINGS_MAX


HELD = Transfer("payment:a-1", "alice", "hector", 60, "a-1", TransferKind.PAYMENT, 10, order_id="o-1")


@pytest.mark.parametrize("action", [Action.ENTERED, Action.SETTLED])
@pytest.mark.parametrize("end", [{}, {"posted_at": 9}, {"voided_at": 9}], ids=str)
def test_every_entry_is_balanced(action: Action, end: dict[str, int]) -> None:
    changes = balance_changes(Entry(action, replace(HELD, **end)))  # type: ignore[arg-type]
    assert sum(change.posted for change in changes) == 0


def test_a_refund_belongs_to_the_agreement_before_the_mark() -> None:
    refund = replace(HELD, kind=TransferKind.REFUND)
    assert agreement_of(replace(refund, agreement_id="a#1")) == "a"
    assert agreement_of(refund) == "a-1"
    assert agreement_of(replace(HELD, agreement_id="a#1")) == "a#1"
