"""What a bank compares in its ledger at every start: it finds what a walk through all rows finds, and names it."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from ledger_answers import end
from sqlalchemy import create_engine, make_url, text

from ramp.agents.building import audit
from ramp.errors import LedgerRefusal, StateDamaged
from ramp.ledger.account import AccountKind
from ramp.ledger.orders.order import OrderLine
from ramp.runtime.ledger.store import LedgerStore

USERS = ("alice", "bob", "carol")
RESOURCES = ("hector", "kelvin", "lomonosov")


def fill(store: LedgerStore, orders: int, seed: int = 1) -> None:
    """Orders of one to three lines that are posted, voided, refused, expired, refunded or still open."""
    draw = random.Random(seed)
    for account in USERS:
        store.open_account(account, AccountKind.USER, at=1, credit_limit=500)
    for account in RESOURCES:
        store.open_account(account, AccountKind.RESOURCE, at=1)
    for account in USERS[:2]:
        store.deposit(f"d-{account}", account, 1_000 * orders, at=2)
    for number in range(orders):
        at = 10 * number + 10
        user = draw.choice(USERS)
        name = f"o-{number}"
        if draw.random() < 0.05:
            store.void_order(name, user, at + 500, at=at, code="unwanted", reason="")
        lines = [
            OrderLine(f"a-{number}-{line}", draw.choice(RESOURCES), draw.randint(1, 300), f"offer-{number}-{line}")
            for line in range(draw.randint(1, 3))
        ]
        store.reserve_order(name, user, lines, at + 500, at=at)
        fate = draw.choice(("posted", "posted", "posted", "void", "in part", "open"))
        try:
            for line in lines[: 1 if fate == "in part" else len(lines)]:
                if fate in ("posted", "in part"):
                    store.countersign(line.agreement_id, at=at + 1, starts_at=at + 900)
            if fate == "posted" and draw.random() < 0.2:
                end(store, lines[0].agreement_id, at=at + 2)
        except LedgerRefusal:
            pass  # the order was refused, or voided before it came
        if fate == "void":
            store.void_order(name, user, at + 500, at=at + 1, code="unwanted", reason="")
        if number % 50 == 49:
            store.expire_orders(at - 100)
    store.open_account("late", AccountKind.USER, at=10**6)
    store.open_account("gone", AccountKind.USER, at=10**6)
    store.close_account("gone", at=10**6 + 1)


@pytest.fixture(scope="module")
def filled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with sixty orders on SQLite, filled once and copied."""
    path = tmp_path_factory.mktemp("filled") / "ledger.sqlite"
    with LedgerStore.open(path) as store:
        filled(store)
    return path


@pytest.fixture
def filled_url(ledger_url: str, filled_file: Path) -> str:
    """A ledger with sixty orders."""
    copy = make_url(ledger_url).database
    if ledger_url.startswith("sqlite") and copy is not None:
        shutil.copy(filled_file, copy)
    else:
        with LedgerStore.open(ledger_url) as store:
            filled(store)
    return ledger_url


def filled(store: LedgerStore) -> None:
    """Fill with sixty orders, of every state."""
    fill(store, 60)
    assert (store.contradictions(), store.audit()) == ([], [])
    assert {str(entry.order.state) for entry in store.entries() if hasattr(entry, "order")} == {
        "reserved", "posted", "voided", "refused"
    }  # fmt: skip


def run(url: str, *statements: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


POSTED = "(SELECT MIN(order_id) FROM orders WHERE state = 'posted')"
RESERVED = "(SELECT MIN(order_id) FROM orders WHERE state = 'reserved')"
PAID = f"(SELECT MIN(transfer_id) FROM transfers WHERE order_id = {POSTED})"
AMOUNT, PAYEE, AGREEMENT = (
    f"(SELECT {column} FROM transfers WHERE transfer_id = {PAID})"
    for column in ("amount", "credit_account", "agreement_id")
)

BROKEN = {
    "a balance": (("UPDATE accounts SET posted = posted + 1 WHERE account_id = 'bob'",), "account bob has"),
    "money that came from nowhere": (
        ("UPDATE accounts SET posted = posted + 1 WHERE account_id = 'bob'",),
        "all balances sum to 1 minor units",
    ),
    "what is set aside": (("UPDATE accounts SET reserved = reserved + 7 WHERE account_id = 'bob'",), "account bob has"),
    "an old amount": (("UPDATE transfers SET amount = amount + 1 WHERE transfer_id = 'deposit:d-bob'",), "account bob"),
    "two amounts that cancel out": (
        (
            "UPDATE transfers SET amount = amount - 1 WHERE transfer_id = 'deposit:d-bob'",
            "UPDATE transfers SET amount = amount + 1 WHERE transfer_id = 'deposit:d-alice'",
        ),
        "account alice has",
    ),
    "money that came after it was spent": (
        ("UPDATE entries SET entry_number = 1000000 WHERE transfer_id = 'deposit:d-bob'",),
        " brings bob ",
    ),
    "an account that was opened after it was used": (
        ("UPDATE entries SET entry_number = 1000000 WHERE account_id = 'hector'",),
        "while account hector is not open",
    ),
    "a payment to another": (
        (f"UPDATE transfers SET credit_account = 'market' WHERE transfer_id = {PAID}",),
        "account market has",
    ),
    "a payment and its balances to another": (
        (
            f"UPDATE accounts SET posted = posted + {AMOUNT} WHERE account_id = 'market'",
            f"UPDATE accounts SET posted = posted - {AMOUNT} WHERE account_id = {PAYEE}",
            f"UPDATE transfers SET credit_account = 'market' WHERE transfer_id = {PAID}",
        ),
        "is posted, but its payment of",
    ),
    "an order's line": ((f"UPDATE order_lines SET cost = cost + 1 WHERE order_id = {POSTED}",), "but its payment of"),
    "a line that is missing": (
        (f"DELETE FROM order_lines WHERE order_id = {POSTED} AND line_number = 1",),
        " has no order that says so",
    ),
    "an order that lost its settling": (
        (f"DELETE FROM entries WHERE order_id = {POSTED} AND action = 'settled'",),
        "contradict",
    ),
    "a payment that lost its settling": (
        (f"DELETE FROM entries WHERE transfer_id = {PAID} AND action = 'settled'",),
        "is posted, but its payment of",
    ),
    "a transfer without an entry": (
        ("DELETE FROM entries WHERE transfer_id = 'deposit:d-bob'",),
        "deposit:d-bob (60000 minor units from market to bob) contradicts",
    ),
    "a countersignature": (
        (f"UPDATE order_lines SET countersigned_at = NULL, starts_at = NULL WHERE order_id = {POSTED}",),
        "'s countersignature of",
    ),
    "an open order posted by hand": (
        (f"UPDATE orders SET state = 'posted', settled_at = entered_at WHERE order_id = {RESERVED}",),
        "is posted, which",
    ),
    "an open order's escrow": (
        (f"UPDATE transfers SET voided_at = 5 WHERE order_id = {RESERVED}",),
        "minor units reserved, its transfers give",
    ),
    "an account that was never opened": (
        ("DELETE FROM entries WHERE account_id = 'late'",),
        "account late and its entries disagree",
    ),
    "an account that was closed before": (
        ("UPDATE entries SET account_id = 'late' WHERE action = 'closed'",),
        "account gone and its entries disagree",
    ),
    "an account's kind": (("UPDATE accounts SET kind = 'market' WHERE account_id = 'hector'",), "to hector is not"),
    "a refund of more": (
        ("UPDATE transfers SET amount = amount + 500 WHERE kind = 'refund'",),
        "and its transfer contradict each other",
    ),
}


def walk_finds(store: LedgerStore) -> bool:
    try:
        return store.audit() != []
    except (LookupError, ValueError, TypeError):
        return True  # a row that cannot be read is broken as well


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_ledger_is_found_and_what_is_broken_is_named(filled_url: str, kind: str) -> None:
    statements, finding = BROKEN[kind]
    run(filled_url, *statements)
    with LedgerStore.open(filled_url) as store:
        findings = store.contradictions()
        assert any(finding in line for line in findings), findings
        assert walk_finds(store)


@pytest.fixture
def grown_url(ledger_url: str) -> str:
    """Alice has bought a slot of hector for 25.00, which has grown for 7.00, and another for 10.00."""
    with LedgerStore.open(ledger_url) as store:
        store.open_account("alice", AccountKind.USER, at=1)
        store.open_account("hector", AccountKind.RESOURCE, at=1)
        store.deposit("d-1", "alice", 10_000, at=2)
        store.reserve_order("o-1", "alice", [OrderLine("a-1", "hector", 2_500)], 100, at=10)
        store.countersign("a-1", at=20, starts_at=5_000)
        added = OrderLine("a-1#1", "hector", 700, "", "state-0", "state-1")
        store.reserve_order("o-2", "alice", [added], 500, at=30)
        store.countersign("a-1#1", at=31, starts_at=40)
        store.reserve_order("o-3", "alice", [OrderLine("a-2", "hector", 1_000)], 100, at=32)
        store.countersign("a-2", at=33, starts_at=5_000)
    return ledger_url


def move(amount: int) -> tuple[str, str]:
    """Statements that take an amount from hector's balance to alice's."""
    return (
        f"UPDATE accounts SET posted = posted - {amount} WHERE account_id = 'hector'",
        f"UPDATE accounts SET posted = posted + {amount} WHERE account_id = 'alice'",
    )


def paid_back(agreement_id: str, order_id: str, amount: int) -> tuple[str, ...]:
    """Statements that refund a payment past all rules."""
    columns = "transfer_id, debit_account, credit_account, amount, agreement_id, kind, entered_at, posted_at"
    values = f"'refund:{agreement_id}', 'hector', 'alice', {amount}, '{agreement_id}', 'refund', 50, 50"
    return (
        f"INSERT INTO transfers ({columns}, memo, order_id) VALUES ({values}, '', '{order_id}')",
        f"INSERT INTO entries (action, transfer_id) VALUES ('entered', 'refund:{agreement_id}')",
        *move(amount),
    )


def test_a_refund_without_a_change_that_was_decided_is_found(grown_url: str) -> None:
    """What the sums allow: the database alone knows the changes."""
    run(grown_url, *paid_back("a-1", "o-1", 2_500))
    with LedgerStore.open(grown_url) as store:
        assert store.audit() == []
        assert store.contradictions() == [
            "refund:a-1 moves 2500 minor units from hector to alice for no change that was decided"
        ]


def test_a_slot_that_has_gone_back_twice_is_found(grown_url: str) -> None:
    """By a change of it, and as a whole: alice has 7.00 credits more than she had."""
    change = "INSERT INTO changes VALUES ('a-1', {}, 'both', '{}', {}, 50, '', '')"
    by_rules = change.format(2, "state-2", -700), change.format(0, "", -3_200)
    run(grown_url, *paid_back("a-1#2", "o-1", 700), *paid_back("a-1", "o-1", 3_200), *by_rules)
    with LedgerStore.open(grown_url) as store:
        assert store.audit() == ["refund:a-1 brings the refunds of a-1 above what was paid"]
        assert store.contradictions() == ["the changes of a-1 leave -700 minor units of what was paid"]


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE changes SET amount = amount + 1 WHERE number = 1",
        "UPDATE changes SET digest = 'other' WHERE number = 1",
        "UPDATE changes SET agreement_id = 'a-2' WHERE number = 1",
        "DELETE FROM changes WHERE number = 1",
    ],
)
def test_a_change_that_its_transfer_contradicts_is_found(grown_url: str, tampering: str) -> None:
    run(grown_url, tampering)
    with LedgerStore.open(grown_url) as store:
        assert store.contradictions() != []


def cells(connection: sqlite3.Connection, draw: random.Random) -> list[tuple[str, str, int, Any]]:
    """One value a column and fate of a row, with what to put there instead: table, column, row, value."""
    found = []
    for table in ("accounts", "orders", "order_lines", "transfers", "entries"):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        # In which order the lines of one order stand is only looked at by the walk; no sum and no party rests on it.
        columns = [column for column in columns if column != "line_number"]
        rows = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
        for column in columns:
            values = [row[0] for row in connection.execute(f"SELECT DISTINCT {column} FROM {table} LIMIT 40")]
            for row in draw.sample(rows, min(len(rows), 6)):
                (now,) = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
                others = [value for value in values if value != now]
                found.append((table, column, row, draw.choice(others) if others else 1))
                if isinstance(now, int):
                    found.append((table, column, row, now + draw.choice((-1, 1))))
    return found


@pytest.mark.slow  # some seven hundred changes, each audited twice
def test_what_the_walk_through_all_rows_finds_the_database_finds(tmp_path: Path) -> None:
    """Every column of every table is changed in some rows, past all constraints; each change alone."""
    path = tmp_path / "ledger.sqlite"
    with LedgerStore.open(path) as store:
        fill(store, 40, seed=3)
    by_hand = sqlite3.connect(path, isolation_level=None)
    by_hand.execute("PRAGMA ignore_check_constraints=ON")
    missed, both = [], 0
    with LedgerStore.open(path) as store:
        for table, column, row, value in cells(by_hand, random.Random(5)):
            (before,) = by_hand.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
            change = f"UPDATE {table} SET {column} = ? WHERE rowid = {row}"
            try:
                by_hand.execute(change, (value,))
            except sqlite3.IntegrityError:
                continue  # a key that there is already, or a row that must have a value
            walked = walk_finds(store)
            found = bool(store.contradictions())
            both += walked and found
            if walked and not found:
                missed.append((table, column, row, before, value))
            by_hand.execute(change, (before,))
        assert (store.contradictions(), store.audit()) == ([], [])
    by_hand.close()
    assert missed == []
    assert both > 100


NO_NUMBERS = {
    "transfers SET amount": ("transfer_id = 'deposit:d-bob'", "debit_account market, credit_account bob"),
    "accounts SET credit_limit": ("account_id = 'bob'", "account_id bob"),
    "order_lines SET countersigned_at": (f"order_id = {POSTED}", "order_id o-"),
    "orders SET valid_until": (f"order_id = {POSTED}", "user_account "),
}


@pytest.mark.parametrize("cell", NO_NUMBERS)
def test_who_has_something_else_than_a_number_is_named(filled_file: Path, tmp_path: Path, cell: str) -> None:
    """SQLite keeps whatever is written into a column of numbers; PostgreSQL refuses it."""
    row, named = NO_NUMBERS[cell]
    copy = Path(shutil.copy(filled_file, tmp_path))
    run(f"sqlite:///{copy}", "PRAGMA ignore_check_constraints=ON", f"UPDATE {cell} = 'many' WHERE {row}")
    with LedgerStore.open(copy) as store:
        said = f"{cell.rsplit(maxsplit=1)[-1]} is 'many' instead of a whole number: "
        assert any(said in line and named in line for line in store.contradictions())


def test_a_bank_does_not_start_on_a_broken_ledger_and_says_whose_account_it_is(filled_url: str) -> None:
    run(filled_url, "UPDATE accounts SET posted = posted + 1 WHERE account_id = 'bob'")
    with LedgerStore.open(filled_url) as store, pytest.raises(StateDamaged, match=r"account bob has .*1 more, see"):
        audit(store, Path("ledger"))
