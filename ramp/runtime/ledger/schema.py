"""Tables of the ledger's database (SQLite or PostgreSQL), and how to open it.

Constraints repeat the ledger's invariants, so that no process can violate them.
"""

from __future__ import annotations

import sqlite3
import time
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from ramp.errors import ConfigurationError, check_version
from ramp.ledger.contract_change import Grounds
from ramp.ledger.entry import AccountKind, Action, EvidenceKind
from ramp.model.contents import OrderState, TransferKind
from ramp.runtime.state_versions import SCHEMA_VERSION

LOCK_PAUSE_S: Final = 0.01
"""Pause between two attempts in seconds, where SQLite itself does not wait."""

LOCK_WAIT_S: Final = 10.0
"""Timeout of an operation for another process in seconds; an operation takes milliseconds."""

CONNECT_LIMIT_S: Final = 5
"""Timeout of a connection to PostgreSQL in seconds, unless the URL has a `connect_timeout`."""

_SCHEMA_LOCK: Final = 0x52414D50
"""Key of the PostgreSQL advisory lock for the creation of tables (RAMP in ASCII)."""


def _word(words: type[StrEnum]) -> sa.Enum:
    """Return the type of a column with a word of an enumeration as text."""
    return sa.Enum(words, values_callable=lambda each: [word.value for word in each], native_enum=False)


class _Reference(sa.TypeDecorator[str]):
    """The key of another row; NULL is read as an empty text."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return value or None

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str:
        return value or ""


_METADATA = sa.MetaData()
# SQLite increments only INTEGER keys; its integers have 64 bits anyway
_BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")

VERSIONS = sa.Table("ledger_version", _METADATA, sa.Column("version", sa.Integer, primary_key=True))

ACCOUNTS = sa.Table(
    "accounts",
    _METADATA,
    sa.Column("account_id", sa.Text, primary_key=True),
    sa.Column("kind", _word(AccountKind), nullable=False),
    sa.Column("credit_limit", _BIG, sa.CheckConstraint("credit_limit >= 0"), nullable=False),
    sa.Column("opened_at", _BIG, nullable=False),
    sa.Column("posted", _BIG, nullable=False, server_default="0"),
    sa.Column("reserved", _BIG, sa.CheckConstraint("reserved >= 0"), nullable=False, server_default="0"),
    sa.CheckConstraint("posted - reserved + credit_limit >= 0", name="within_overdraft"),
    # A resource only returns what it was paid, so it needs no overdraft.
    sa.CheckConstraint("kind <> 'resource' OR credit_limit = 0", name="sellers_owe_nothing"),
)

ORDERS = sa.Table(
    "orders",
    _METADATA,
    sa.Column("order_id", sa.Text, primary_key=True),
    sa.Column("user_account", sa.Text, key="user", nullable=False),  # a refused order may name an unknown account
    sa.Column("valid_until", _BIG, nullable=False),
    sa.Column("entered_at", _BIG, nullable=False),
    sa.Column(
        "state",
        _word(OrderState),
        sa.CheckConstraint("state IN ('reserved', 'posted', 'voided', 'refused')"),
        nullable=False,
    ),
    sa.Column("settled_at", _BIG),
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.CheckConstraint("(state = 'reserved') = (settled_at IS NULL)", name="settled_unless_reserved"),
    sa.CheckConstraint("state <> 'posted' OR settled_at < valid_until", name="posted_in_time"),
)
IS_RESERVED: Final = ORDERS.c.state == sa.literal_column("'reserved'")  # a literal: the index needs one
sa.Index("orders_reserved", ORDERS.c.valid_until, sqlite_where=IS_RESERVED, postgresql_where=IS_RESERVED)

ORDER_LINES = sa.Table(
    "order_lines",
    _METADATA,
    sa.Column("order_id", sa.Text, sa.ForeignKey("orders.order_id"), primary_key=True),
    sa.Column("line_number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("agreement_id", sa.Text, nullable=False),
    sa.Column("resource", sa.Text, nullable=False),
    sa.Column("cost", _BIG, sa.CheckConstraint("cost > 0"), nullable=False),
    sa.Column("offer_id", sa.Text, nullable=False),
    sa.Column("countersigned_at", _BIG),
    sa.Column("starts_at", _BIG),
    sa.Column("amends", sa.Text, nullable=False, server_default=""),  # of a line that pays for an addition
    sa.Column("becomes", sa.Text, nullable=False, server_default=""),
    sa.CheckConstraint("(countersigned_at IS NULL) = (starts_at IS NULL)", name="countersigned_with_start"),
)

TRANSFERS = sa.Table(
    "transfers",
    _METADATA,
    sa.Column("transfer_id", sa.Text, primary_key=True),
    sa.Column("debit_account", sa.Text, sa.ForeignKey("accounts.account_id"), nullable=False),
    sa.Column("credit_account", sa.Text, sa.ForeignKey("accounts.account_id"), nullable=False),
    sa.Column("amount", _BIG, sa.CheckConstraint("amount > 0"), nullable=False),
    sa.Column("agreement_id", sa.Text, nullable=False),
    sa.Column("kind", _word(TransferKind), nullable=False),
    sa.Column("entered_at", _BIG, nullable=False),
    sa.Column("posted_at", _BIG),
    sa.Column("voided_at", _BIG),
    sa.Column("memo", sa.Text, nullable=False),
    sa.Column("order_id", _Reference, sa.ForeignKey("orders.order_id")),
    sa.UniqueConstraint("agreement_id", "kind", name="one_transfer_for_a_key"),
    sa.CheckConstraint("debit_account <> credit_account", name="two_accounts"),
    sa.CheckConstraint("posted_at IS NULL OR voided_at IS NULL", name="posted_or_voided"),
    sa.CheckConstraint("kind <> 'refund' OR posted_at IS NOT NULL", name="refunds_are_posted_at_once"),
)
sa.Index("transfers_by_debit_account", TRANSFERS.c.debit_account, TRANSFERS.c.posted_at)
sa.Index("transfers_by_credit_account", TRANSFERS.c.credit_account, TRANSFERS.c.posted_at)

ENTRIES = sa.Table(
    "entries",
    _METADATA,
    sa.Column("entry_number", _BIG, primary_key=True, autoincrement=True),
    sa.Column("action", _word(Action), nullable=False),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.account_id")),
    sa.Column("transfer_id", sa.Text, sa.ForeignKey("transfers.transfer_id")),
    sa.Column("order_id", sa.Text, sa.ForeignKey("orders.order_id")),
    sa.UniqueConstraint("account_id", "action", name="once_for_an_account"),
    sa.UniqueConstraint("transfer_id", "action", name="once_for_a_transfer"),
)

_OF_AN_ORDER = ENTRIES.c.order_id.is_not(None)
sa.Index(
    "once_for_an_order",
    ENTRIES.c.order_id,
    ENTRIES.c.action,
    unique=True,
    sqlite_where=_OF_AN_ORDER,
    postgresql_where=_OF_AN_ORDER,
)

EVIDENCE = sa.Table(
    "evidence",
    _METADATA,
    sa.Column("evidence_number", _BIG, primary_key=True, autoincrement=True),
    sa.Column("reference", sa.Text, nullable=False, index=True),
    sa.Column("kind", _word(EvidenceKind), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("at", _BIG, nullable=False),
)

CHANGES = sa.Table(
    "changes",
    _METADATA,
    sa.Column("agreement_id", sa.Text, primary_key=True),
    sa.Column(
        "number", sa.Integer, sa.CheckConstraint("number >= 0"), primary_key=True, autoincrement=False
    ),  # 0: its end
    sa.Column("grounds", _word(Grounds), nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("amount", _BIG, nullable=False),
    sa.Column("decided_at", _BIG, nullable=False),
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.CheckConstraint("(code = '') = (amount <> 0)", name="posted_or_void"),
    sa.CheckConstraint("number > 0 OR amount < 0", name="ends_are_posted"),
    sa.CheckConstraint("(digest <> '') = (code = '' AND number > 0)", name="posted_with_state"),
)


def open_engine(location: str | Path) -> sa.Engine:
    """Create the engine for a ledger; it opens no connection yet.

    Its transactions read one consistent state; those of its `writing_engine` are serialisable. The location is the path
    of an SQLite file, or a URL of SQLite or PostgreSQL.

    Raises:
        ConfigurationError: another kind of database, a missing directory or a missing driver.
    """
    url = _url(location)
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, shown)
    try:
        limit = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_LIMIT_S}
        return sa.create_engine(url, isolation_level="REPEATABLE READ", connect_args=limit)
    except ModuleNotFoundError as error:
        reason = (
            f"PostgreSQL needs the package psycopg ({error}); install it with: pip install 'ramp-market[postgresql]'"
        )
        raise ConfigurationError(reason, key=shown) from error


def writing_engine(engine: sa.Engine) -> sa.Engine:
    """Return the engine for writing transactions: serialisable, on SQLite with the write lock from the start."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(ramp_writing=True)
    return engine.execution_options(isolation_level="SERIALIZABLE")


def create_tables(engine: sa.Engine) -> None:
    """Create missing tables in one transaction; several processes may do so at once.

    Raises:
        ConfigurationError: the database cannot be used.
        WrongVersion: the ledger has another version.
    """
    shown = engine.url.render_as_string(hide_password=True)
    # READ COMMITTED shows tables that another process has created during the wait for the lock.
    options = {"ramp_writing": True} if engine.dialect.name == "sqlite" else {"isolation_level": "READ COMMITTED"}
    try:
        connecting = engine.execution_options(**options).connect()
        with connecting as connection, connection.begin():
            _make_or_check(connection, shown)
    except sa.exc.DBAPIError as error:
        raise ConfigurationError(f"the ledger's database cannot be opened: {error.orig}", key=shown) from error


def _make_or_check(connection: sa.Connection, shown: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
    if not sa.inspect(connection).has_table(VERSIONS.name):
        _METADATA.create_all(connection)
        connection.execute(sa.insert(VERSIONS).values(version=SCHEMA_VERSION))
        return
    version = connection.execute(sa.select(VERSIONS.c.version)).scalar_one_or_none()
    check_version(shown, "ledger", version, SCHEMA_VERSION)


def _url(location: str | Path) -> URL:
    if isinstance(location, Path) or "://" not in location:
        return URL.create("sqlite", database=str(location))
    try:
        url = make_url(location)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise ConfigurationError("invalid database URL; expected postgresql://user@host/name", key=location) from error
    if url.drivername in {"postgres", "postgresql"}:
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in {"sqlite", "postgresql+psycopg"}:
        raise ConfigurationError(
            f"unsupported database for the ledger: got {url.drivername}, expected a file name, sqlite or postgresql",
            key=url.render_as_string(hide_password=True),
        )
    return url


def _sqlite_engine(url: URL, shown: str) -> sa.Engine:
    if not url.database or url.database == ":memory:":
        raise ConfigurationError("a ledger in memory is lost at exit; give the name of a file", key=shown)
    directory = Path(url.database).absolute().parent
    if not directory.is_dir():
        raise ConfigurationError(f"the directory {directory} does not exist", key=shown)
    # isolation_level None: the driver begins no transactions; _begin does, also before the first read.
    engine = sa.create_engine(url, connect_args={"isolation_level": None, "timeout": LOCK_WAIT_S})

    def set_up(dbapi_connection: Any, _record: object) -> None:
        # synchronous=FULL: answered operations survive a power cut, not only a kill.
        _begin_write_ahead_log(dbapi_connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            dbapi_connection.execute(f"PRAGMA {pragma}")

    def begin(connection: sa.Connection) -> None:
        writing = connection.get_execution_options().get("ramp_writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    sa.event.listen(engine, "connect", set_up)
    sa.event.listen(engine, "begin", begin)
    return engine


def _begin_write_ahead_log(connection: Any) -> None:
    """Switch to the write-ahead log.

    SQLite's timeout does not cover this step while another process is about to write its first page.
    """
    end = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(LOCK_PAUSE_S)
        else:
            return
