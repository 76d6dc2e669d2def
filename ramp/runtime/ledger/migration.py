"""Bringing an older ledger's tables to the version of today, in the transaction that opens it.

The statements are written out and stay as they are: the tables of a later version may differ from these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection

from ramp.errors import LedgerCorrupt

_NEW_TABLES: Final = (
    """
    CREATE TABLE orders (
        order_id TEXT NOT NULL PRIMARY KEY,
        user_account TEXT NOT NULL,
        valid_until {integer} NOT NULL,
        entered_at {integer} NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('reserved', 'posted', 'voided', 'refused')),
        settled_at {integer},
        code TEXT NOT NULL,
        reason TEXT NOT NULL,
        CONSTRAINT settled_unless_reserved CHECK ((state = 'reserved') = (settled_at IS NULL)),
        CONSTRAINT posted_in_time CHECK (state <> 'posted' OR settled_at < valid_until)
    )
    """,
    "CREATE INDEX orders_reserved ON orders (valid_until) WHERE state = 'reserved'",
    """
    CREATE TABLE order_lines (
        order_id TEXT NOT NULL REFERENCES orders (order_id),
        line_number INTEGER NOT NULL,
        agreement_id TEXT NOT NULL,
        resource TEXT NOT NULL,
        cost {integer} NOT NULL CHECK (cost > 0),
        offer_id TEXT NOT NULL,
        countersigned_at {integer},
        starts_at {integer},
        PRIMARY KEY (order_id, line_number),
        CONSTRAINT countersigned_with_start CHECK ((countersigned_at IS NULL) = (starts_at IS NULL))
    )
    """,
    """
    CREATE TABLE evidence (
        evidence_number {counter},
        reference TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        at {integer} NOT NULL
    )
    """,
    "CREATE INDEX ix_evidence_reference ON evidence (reference)",
    """
    CREATE TABLE remembered_voids (
        order_id TEXT NOT NULL,
        user_account TEXT NOT NULL REFERENCES accounts (account_id),
        valid_until {integer} NOT NULL,
        voided_at {integer} NOT NULL,
        code TEXT NOT NULL,
        reason TEXT NOT NULL,
        evidence TEXT NOT NULL,
        PRIMARY KEY (order_id, user_account)
    )
    """,
    "CREATE INDEX ix_remembered_voids_valid_until ON remembered_voids (valid_until)",
)

_NEW_COLUMNS: Final = (
    "ALTER TABLE transfers ADD COLUMN order_id TEXT REFERENCES orders (order_id)",
    "ALTER TABLE entries ADD COLUMN order_id TEXT REFERENCES orders (order_id)",
    "CREATE UNIQUE INDEX once_for_an_order ON entries (order_id, action) WHERE order_id IS NOT NULL",
)

# No program of version 1 left anything pending, but its interface could. Without an order it would pend for ever, so it
# is given up, at the last moment that the ledger knows: opening a ledger has no clock.
_VOID_WHAT_PENDS: Final = (
    """
    UPDATE accounts SET reserved = reserved - (
        SELECT COALESCE(SUM(amount), 0) FROM transfers
        WHERE debit_account = account_id AND posted_at IS NULL AND voided_at IS NULL
    )
    """,
    """
    INSERT INTO entries (action, transfer_id)
    SELECT 'settled', entered.transfer_id FROM entries AS entered
    JOIN transfers ON transfers.transfer_id = entered.transfer_id
    WHERE entered.action = 'entered' AND posted_at IS NULL AND voided_at IS NULL ORDER BY entered.entry_number
    """,
    """
    UPDATE transfers SET voided_at = (SELECT MAX(COALESCE(posted_at, voided_at, entered_at)) FROM transfers)
    WHERE posted_at IS NULL AND voided_at IS NULL
    """,
)

_OVERDRAFT: Final = "CONSTRAINT within_overdraft CHECK (kind = 'resource' OR posted - reserved + credit_limit >= 0)"

# SQLite cannot change a constraint, so the table is made anew, as its manual says (lang_altertable, section 7).
_OVERDRAFT_ON_SQLITE: Final = (
    f"""
    CREATE TABLE accounts_of_version_2 (
        account_id TEXT NOT NULL PRIMARY KEY,
        kind TEXT NOT NULL,
        credit_limit INTEGER NOT NULL CHECK (credit_limit >= 0),
        opened_at INTEGER NOT NULL,
        closed_at INTEGER,
        posted INTEGER DEFAULT '0' NOT NULL,
        reserved INTEGER DEFAULT '0' NOT NULL CHECK (reserved >= 0),
        {_OVERDRAFT},
        CONSTRAINT closed_is_empty CHECK (closed_at IS NULL OR (posted = 0 AND reserved = 0))
    )
    """,
    """
    INSERT INTO accounts_of_version_2 (account_id, kind, credit_limit, opened_at, closed_at, posted, reserved)
    SELECT account_id, kind, credit_limit, opened_at, closed_at, posted, reserved FROM accounts
    """,
    "DROP TABLE accounts",
    "ALTER TABLE accounts_of_version_2 RENAME TO accounts",
)
_OVERDRAFT_ON_POSTGRESQL: Final = (
    "ALTER TABLE accounts DROP CONSTRAINT within_overdraft",
    f"ALTER TABLE accounts ADD {_OVERDRAFT}",
)

_TYPES: Final = {
    "sqlite": {"integer": "INTEGER", "counter": "INTEGER NOT NULL PRIMARY KEY"},
    "postgresql": {"integer": "BIGINT", "counter": "BIGSERIAL NOT NULL PRIMARY KEY"},
}


@contextmanager
def unchecked_references(connection: Connection) -> Iterator[None]:
    """Let SQLite make a table anew that others refer to; it can be told so only outside of a transaction."""
    if connection.dialect.name != "sqlite":
        yield
        return
    driver = connection.connection
    driver.cursor().execute("PRAGMA foreign_keys=OFF")
    try:
        yield
    finally:
        driver.cursor().execute("PRAGMA foreign_keys=ON")


def migrate_from_version_1(connection: Connection) -> None:
    """Bring the tables of version 1 to version 2: orders, evidence, and resources that owe refunds.

    Args:
        connection: in a transaction, on SQLite within `unchecked_references`.

    Raises:
        LedgerCorrupt: if rows refer to others that are not there.
    """
    dialect = connection.dialect.name
    overdraft = _OVERDRAFT_ON_SQLITE if dialect == "sqlite" else _OVERDRAFT_ON_POSTGRESQL
    for statement in (*_NEW_TABLES, *_NEW_COLUMNS, *_VOID_WHAT_PENDS, *overdraft):
        connection.exec_driver_sql(statement.format_map(_TYPES[dialect]))
    if dialect == "sqlite":
        stray = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
        if stray is not None:
            raise LedgerCorrupt(f"row {stray[1]} of the ledger's table {stray[0]} refers to nothing in {stray[2]}")
    connection.exec_driver_sql("UPDATE ledger_version SET version = 2")


_AMENDMENTS: Final = """
    CREATE TABLE amendments (
        agreement_id TEXT NOT NULL,
        number INTEGER NOT NULL CHECK (number > 0),
        digest TEXT NOT NULL,
        amount {integer} NOT NULL,
        decided_at {integer} NOT NULL,
        code TEXT NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (agreement_id, number),
        CONSTRAINT posted_or_void CHECK ((code = '') = (amount > 0))
    )
    """


def migrate_from_version_2(connection: Connection) -> None:
    """Bring the tables of version 2 to version 3: amendments, of which there are none yet.

    Args:
        connection: in a transaction.
    """
    connection.exec_driver_sql(_AMENDMENTS.format_map(_TYPES[connection.dialect.name]))
    connection.exec_driver_sql("UPDATE ledger_version SET version = 3")


_CHARGES: Final = (
    "ALTER TABLE order_lines ADD COLUMN amends TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE order_lines ADD COLUMN becomes TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE amendments RENAME TO amendments_of_version_3",
    """
    CREATE TABLE amendments (
        agreement_id TEXT NOT NULL,
        number INTEGER NOT NULL CHECK (number > 0),
        digest TEXT NOT NULL,
        amount {integer} NOT NULL,
        decided_at {integer} NOT NULL,
        code TEXT NOT NULL,
        reason TEXT NOT NULL,
        charge {integer} DEFAULT '0' NOT NULL,
        CONSTRAINT amendments_of_version_4 PRIMARY KEY (agreement_id, number),
        CONSTRAINT posted_or_void CHECK ((code = '') = (amount + charge > 0))
    )
    """,
    """
    INSERT INTO amendments (agreement_id, number, digest, amount, decided_at, code, reason)
    SELECT agreement_id, number, digest, amount, decided_at, code, reason FROM amendments_of_version_3
    """,
    "DROP TABLE amendments_of_version_3",
)


def migrate_from_version_3(connection: Connection) -> None:
    """Bring the tables of version 3 to version 4: amendments that add to a slot, paid by lines of orders.

    Args:
        connection: in a transaction.
    """
    for statement in _CHARGES:
        connection.exec_driver_sql(statement.format_map(_TYPES[connection.dialect.name]))
    connection.exec_driver_sql("UPDATE ledger_version SET version = 4")
