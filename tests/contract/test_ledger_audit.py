"""The audit on databases: every storage gives it the same rows, and whatever stands in a table is found and named."""

import random
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger_answers import end
from sqlalchemy import create_engine, make_url, text

from ramp.agents import building
from ramp.errors import LedgerRefusal, StateDamaged
from ramp.ledger.audit import audit
from ramp.ledger.entry import AccountKind
from ramp.ledger.interface import Ledger
from ramp.ledger.records import Snapshot
from ramp.model.contents import OrderLine
from ramp.runtime.ledger.store import LedgerStore
from simulation.market.book import Book

USERS = ("alice", "bob", "carol")
RESOURCES = ("hector", "kelvin", "lomonosov")


def fill(store: Ledger, orders: int, seed: int = 1) -> None:
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
    rows = store.snapshot()
    assert audit(rows) == []
    assert {row.state for row in rows.orders} == {"reserved", "posted", "voided", "refused"}


def run(url: str, *statements: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def in_order(rows: Snapshot) -> dict[str, Any]:
    """Each table sorted; the entries without their numbers, as a database may skip some."""
    entries = [row[1:] for row in sorted(rows.entries)]
    tables = {name: sorted(map(str, getattr(rows, name))) for name in ("accounts", "orders", "lines", "changes")}
    return tables | {"transfers": sorted(map(str, rows.transfers)), "entries": entries}


def test_a_database_gives_the_same_rows_as_the_memory(filled_url: str) -> None:
    book = Book()
    fill(book, 60)
    with LedgerStore.open(filled_url) as store:
        assert in_order(store.snapshot()) == in_order(as_stored(book.snapshot()))


def as_stored(rows: Snapshot) -> Snapshot:
    """The rows with words of enumerations as plain text."""
    orders = tuple(row._replace(state=str(row.state)) for row in rows.orders)
    accounts = tuple(row._replace(kind=str(row.kind)) for row in rows.accounts)
    transfers = tuple(row._replace(kind=str(row.kind)) for row in rows.transfers)
    return replace(rows, orders=orders, accounts=accounts, transfers=transfers)


ALWAYS_FOUND = {
    "accounts": ("posted", "reserved"),
    "transfers": ("debit_account", "credit_account", "amount", "kind", "voided_at", "order_id"),
    "entries": ("action", "account_id", "transfer_id", "order_id"),
}
"""Columns in which another value never goes unnoticed; in other columns some do."""


def test_another_value_anywhere_in_what_moves_money_is_found(filled_file: Path, tmp_path: Path) -> None:
    """Past all constraints; each change alone."""
    draw = random.Random(5)
    path = Path(shutil.copy(filled_file, tmp_path))
    by_hand = sqlite3.connect(path, isolation_level=None)
    by_hand.execute("PRAGMA ignore_check_constraints=ON")
    tried = 0
    with LedgerStore.open(path) as store:
        for table, column in ((table, column) for table, columns in ALWAYS_FOUND.items() for column in columns):
            rows = by_hand.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
            values = sorted({value for _, value in rows}, key=str)
            for row, before in draw.sample(rows, 6):
                after = draw.choice([value for value in values if value != before])
                change = f"UPDATE {table} SET {column} = ? WHERE rowid = {row}"
                try:
                    by_hand.execute(change, (after,))
                except sqlite3.IntegrityError:
                    continue  # a key that there is already, or a row that must have a value
                tried += 1
                assert store.audit() != [], (table, column, row, before, after)
                by_hand.execute(change, (before,))
        assert store.audit() == []
    by_hand.close()
    assert tried > 50


def test_who_has_something_else_than_a_number_is_named(filled_file: Path, tmp_path: Path) -> None:
    """SQLite keeps whatever is written into a column of numbers; PostgreSQL refuses it."""
    copy = Path(shutil.copy(filled_file, tmp_path))
    many = "UPDATE transfers SET amount = 'many' WHERE transfer_id = 'deposit:d-bob'"
    run(f"sqlite:///{copy}", "PRAGMA ignore_check_constraints=ON", many)
    with LedgerStore.open(copy) as store:
        (found,) = store.audit()
    assert found.startswith("in transfers, amount is 'many' instead of a whole number: transfer_id deposit:d-bob, ")


def test_a_bank_does_not_start_on_a_broken_ledger_and_says_whose_account_it_is(filled_url: str) -> None:
    run(filled_url, "UPDATE accounts SET posted = posted + 1 WHERE account_id = 'bob'")
    with LedgerStore.open(filled_url) as store, pytest.raises(StateDamaged, match=r"account bob has .*1 more, see"):
        building.audit(store, Path("ledger"))
