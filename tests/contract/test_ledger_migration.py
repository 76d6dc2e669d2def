"""A ledger of version 1, made by the program of that version, is brought to today's when it is opened."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from forked_script import ForkedScript
from sqlalchemy import Connection, create_engine, inspect, text

from ramp.errors import LedgerCorrupt, LedgerRefusal
from ramp.ledger.account import AccountKind
from ramp.ledger.amendments.amendment import AmendmentTerms
from ramp.ledger.book import Book
from ramp.ledger.entry import AgreementRefused, Refusal, TransferSettled
from ramp.ledger.orders.order import OrderLine, OrderState
from ramp.ledger.overview import Total
from ramp.ledger.transfer import TransferKind, TransferState
from ramp.runtime.ledger.store import LedgerStore

DATA = Path(__file__).parent / "data"

OPEN = """
import sys
from ramp.runtime.ledger.store import LedgerStore
print("ready", flush=True)
sys.stdin.readline()
with LedgerStore.open(sys.argv[1]) as store:
    print(store.audit(), len(store.entries()))
"""


@pytest.fixture
def old_url(ledger_url: str) -> str:
    """URL of a ledger of version 1 with payments, a partial refund, a refusal, and two transfers still pending."""
    load(ledger_url)
    return ledger_url


def load(url: str) -> None:
    backend = url.partition(":")[0].partition("+")[0]
    dump = (DATA / f"ledger_version_1_{backend}.sql").read_text(encoding="utf-8")
    if backend == "sqlite":
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.executescript(dump)
        connection.close()
        return
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(dump)
    engine.dispose()


def run(url: str, statement: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def version(url: str) -> int:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(text("SELECT version FROM ledger_version")).scalar_one()
    engine.dispose()
    return int(found)


def test_what_an_old_ledger_holds_is_there(old_url: str) -> None:
    with LedgerStore.open(old_url) as store:
        assert (store.audit(), store.contradictions()) == ([], [])
        balances = {one.account.account_id: (one.posted, one.reserved) for one in store.balances()}
        assert balances == {
            "alice": (6_900, 0),
            "gone": (0, 0),
            "hector": (800, 0),
            "kelvin": (2_300, 0),
            "market": (-10_000, 0),
        }
        assert store.refusal("a-5") == Refusal("a-5", "bad_signature", "the user's signature is broken", 27)
        assert AgreementRefused(store.refusal("a-5")) in store.entries()  # type: ignore[arg-type]
        assert [line.transfer_id for line in store.statement("alice").lines] == [
            "deposit:d-1",
            "payment:a-1",
            "payment:a-2",
            "refund:a-2",
            "payment:a-3",
        ]
        assert store.certificate("alice").startswith("-----BEGIN CERTIFICATE-----")  # type: ignore[union-attr]
        assert not store.use_nonce("alice", "n-1", expires_at=10**15, now=40)
        overview = store.overview(None, None)
        assert [(trade.transfer_id, trade.order_id) for trade in overview.trades] == [
            ("deposit:d-1", ""),
            ("payment:a-1", ""),
            ("payment:a-2", ""),
            ("refund:a-2", ""),
            ("payment:a-3", ""),
            ("payment:a-6", ""),
        ]
        assert (overview.payments, overview.refunds) == (Total(4, 5_300), Total(1, 200))
        copy = Book(store.entries())
        assert copy.entries() == store.entries()


def test_what_pended_without_an_order_is_given_up(old_url: str) -> None:
    with LedgerStore.open(old_url) as store:
        assert store.pending() == ()
        given_up = [store.transfer("a-7"), store.transfer("a-8")]
        assert store.entries()[-2:] == tuple(TransferSettled(one) for one in given_up if one)
        assert [(one.state, one.voided_at) for one in given_up if one] == [(TransferState.VOIDED, 30)] * 2
        assert store.transfer("a-4").voided_at == 26  # type: ignore[union-attr]


def test_orders_work_in_an_old_ledger(old_url: str) -> None:
    with LedgerStore.open(old_url) as store:
        lines = [OrderLine("b-1", "hector", 5_000), OrderLine("b-2", "kelvin", 2_900)]
        assert store.reserve_order("o-1", "alice", lines, 1_000, at=40).state is OrderState.RESERVED
        assert store.balance("alice").available == 0
        for line in lines:
            order = store.countersign(line.agreement_id, at=41, starts_at=5_000)
        assert order.state is OrderState.POSTED
        for number, (agreement_id, code) in enumerate([("a-1", "agreement_in_use"), ("a-5", "agreement_refused")]):
            wanted = [OrderLine(agreement_id, "hector", 1)]
            assert store.reserve_order(f"o-x{number}", "alice", wanted, 1_000, at=42).code == code
        assert (store.audit(), store.contradictions()) == ([], [])
    with LedgerStore.open(old_url) as store:
        assert store.order("o-1") == order
        assert (store.audit(), store.contradictions()) == ([], [])


def test_a_resource_owes_what_it_was_paid_before(old_url: str) -> None:
    with LedgerStore.open(old_url) as store:
        assert store.refund("a-1", at=40).amount == 2_500
        assert store.balance("hector").posted == 800 - 2_500
        assert store.refund("a-2", at=41).amount == 200  # given back in part by the old program: once is once
        with pytest.raises(LedgerRefusal) as caught:
            store.countersign("a-3", at=42, starts_at=50)
        assert caught.value.code == "unknown_transfer"
        assert (store.audit(), store.contradictions()) == ([], [])


def test_the_tables_become_those_of_a_new_ledger(old_url: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    LedgerStore.open(old_url).close()
    migrated = tables_of(old_url)
    if old_url.startswith("sqlite"):
        new_url = f"sqlite:///{tmp_path / 'new.sqlite'}"
    else:
        engine = create_engine(old_url)
        schema = re.search(r"search_path(?:=|%3D)(\w+)", old_url)
        assert schema is not None
        with engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA {schema[1]} CASCADE"))
            connection.execute(text(f"CREATE SCHEMA {schema[1]}"))
        engine.dispose()
        new_url = old_url
    LedgerStore.open(new_url).close()
    new = tables_of(new_url)
    assert migrated.keys() == new.keys()
    for name, table in new.items():
        assert migrated[name] == table, name


def tables_of(url: str) -> dict[str, dict[str, Any]]:
    """Columns, keys, indexes and constraints of all tables, as far as their order and spelling do not matter."""
    engine = create_engine(url)
    with engine.connect() as connection:
        found = {name: table_of(connection, name) for name in inspect(connection).get_table_names()}
    engine.dispose()
    return found


def table_of(connection: Connection, name: str) -> dict[str, Any]:
    look = inspect(connection)
    checks = [re.sub(r"[\s()]|::text(\[\])?", "", one["sqltext"]) for one in look.get_check_constraints(name)]
    return {
        "columns": sorted(
            (one["name"], str(one["type"]), one["nullable"], one["default"] is None) for one in look.get_columns(name)
        ),
        "primary key": look.get_pk_constraint(name)["constrained_columns"],
        "references": sorted(
            (one["constrained_columns"], one["referred_table"], one["referred_columns"])
            for one in look.get_foreign_keys(name)
        ),
        "unique": sorted(one["column_names"] for one in look.get_unique_constraints(name)),
        "indexes": sorted(
            (one["name"], one["column_names"], bool(one["unique"]), where(one)) for one in look.get_indexes(name)
        ),
        "checks": sorted(checks),
    }


def where(index: Any) -> str:
    options = index.get("dialect_options", {})
    return re.sub(r"[\s()]|::text", "", str(options.get("sqlite_where", options.get("postgresql_where", ""))))


def test_a_ledger_of_version_2_goes_on_with_its_open_orders(ledger_url: str) -> None:
    """Versions 3 and 4 have a table more each, and all others as they were."""
    with LedgerStore.open(ledger_url) as store:
        store.open_account("alice", AccountKind.USER, at=1)
        store.open_account("hector", AccountKind.RESOURCE, at=1)
        store.deposit("d-1", "alice", 10_000, at=2)
        store.reserve_order("o-1", "alice", [OrderLine("a-1", "hector", 2_500)], 100, at=10)
        store.countersign("a-1", at=20, starts_at=5_000)
        store.reserve_order("o-2", "alice", [OrderLine("a-2", "hector", 1_000)], 100, at=21)
    run(ledger_url, "DROP TABLE amendments")
    _without_additions(ledger_url)
    run(ledger_url, "UPDATE ledger_version SET version = 2")
    with LedgerStore.open(ledger_url) as store:
        assert version(ledger_url) == 4
        assert [order.order_id for order in store.open_orders()] == ["o-2"]
        terms = AmendmentTerms("a-1", 1, "state-0", "state-1", "alice", "hector", 1_000, 500)
        assert store.post_amendment(terms, at=30).is_posted
        assert store.countersign("a-2", at=40, starts_at=5_000).state is OrderState.POSTED
        assert store.refund("a-1", at=41).amount == 1_500
        assert (store.audit(), store.contradictions()) == ([], [])
        assert (store.balance("alice").posted, store.balance("hector").posted) == (9_000, 1_000)


def _without_additions(url: str) -> None:
    """Lines of orders as versions before 4 had them."""
    for column in ("amends", "becomes"):
        run(url, f"ALTER TABLE order_lines DROP COLUMN {column}")


AMENDMENTS_OF_VERSION_3 = """
    CREATE TABLE amendments (
        agreement_id TEXT NOT NULL, number INTEGER NOT NULL CHECK (number > 0), digest TEXT NOT NULL,
        amount BIGINT NOT NULL, decided_at BIGINT NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (agreement_id, number), CONSTRAINT posted_or_void CHECK ((code = '') = (amount > 0))
    )
"""


def test_a_ledger_of_version_3_keeps_its_amendments_and_learns_to_add(ledger_url: str) -> None:
    with LedgerStore.open(ledger_url) as store:
        store.open_account("alice", AccountKind.USER, at=1)
        store.open_account("hector", AccountKind.RESOURCE, at=1)
        store.deposit("d-1", "alice", 10_000, at=2)
        store.reserve_order("o-1", "alice", [OrderLine("a-1", "hector", 2_500)], 100, at=10)
        store.countersign("a-1", at=20, starts_at=5_000)
        terms = AmendmentTerms("a-1", 1, "state-0", "state-1", "alice", "hector", 1_000, 500)
        posted = store.post_amendment(terms, at=30)
        void = store.void_amendment("a-1", 2, "alice", at=31)
    run(ledger_url, "DROP TABLE amendments")
    run(ledger_url, AMENDMENTS_OF_VERSION_3)
    for each in (posted, void):
        row = (each.agreement_id, each.number, each.digest, each.amount, each.decided_at, each.code, each.reason)
        run(ledger_url, f"INSERT INTO amendments VALUES {row!r}")
    _without_additions(ledger_url)
    run(ledger_url, "UPDATE ledger_version SET version = 3")
    with LedgerStore.open(ledger_url) as store:
        assert version(ledger_url) == 4
        assert store.amendments("a-1") == (posted, void)
        line = OrderLine("a-1#3", "hector", 700, "", "state-1", "state-3")
        assert store.reserve_order("o-2", "alice", [line], 100, at=40).state is OrderState.RESERVED
        assert store.countersign("a-1#3", at=41, starts_at=5_000).state is OrderState.POSTED
        assert store.amendments("a-1")[-1].charge == 700
        assert store.refund("a-1", at=42).amount == 2_500 - 1_000 + 700
        assert (store.audit(), store.contradictions()) == ([], [])


def test_references_are_checked_again_afterwards(old_url: str) -> None:
    with LedgerStore.open(old_url) as store, store._engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1
    with LedgerStore.open(old_url) as store, pytest.raises(LedgerCorrupt):
        store._write(lambda records: records.put_certificate("nobody", "PEM"))


def test_several_processes_may_open_an_old_ledger_at_once(old_url: str) -> None:
    running = [ForkedScript(OPEN, old_url) for _ in range(3)]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate() for process in running] == ["[] 20\n"] * 3
    assert version(old_url) == 4


def test_an_old_ledger_with_stray_rows_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    load(f"sqlite:///{path}")
    run(f"sqlite:///{path}", "UPDATE certificates SET account_id = 'nobody'")
    before = "\n".join(sqlite3.connect(path).iterdump())
    with pytest.raises(LedgerCorrupt, match=r"certificates.*accounts"):
        LedgerStore.open(path)
    assert "\n".join(sqlite3.connect(path).iterdump()) == before


def test_a_new_ledger_is_not_migrated_again(ledger_url: str) -> None:
    with LedgerStore.open(ledger_url) as store:
        store.open_account("alice", AccountKind.USER, at=1)
        store.deposit("d-1", "alice", 5, at=2)
    with LedgerStore.open(ledger_url) as store:
        assert store.transfer("d-1", TransferKind.DEPOSIT) is not None
    assert version(ledger_url) == 4
