"""Tables of the ledger's database (SQLite or PostgreSQL), and how to open it.

Constraints repeat the ledger's invariants, so that no process can violate them.
"""

from __future__ import annotations

import sqlite3
import time
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Dialect,
    Engine,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    create_engine,
    event,
    exc,
    func,
    insert,
    inspect,
    literal_column,
    select,
)
from sqlalchemy.engine import URL, make_url

from ramp.errors import ConfigurationError, check_version
from ramp.ledger.account import AccountKind
from ramp.ledger.contract_change import Grounds
from ramp.ledger.entry import Action
from ramp.ledger.evidence import EvidenceKind
from ramp.model.contents import OrderState, TransferKind
from ramp.runtime.ledger.schema_version import SCHEMA_VERSION

LOCK_PAUSE_S: Final = 0.01
"""Pause between two attempts in seconds, where SQLite itself does not wait."""

LOCK_WAIT_S: Final = 10.0
"""Timeout of an operation for another process in seconds; an operation takes milliseconds."""

CONNECT_LIMIT_S: Final = 5
"""Timeout of a connection to PostgreSQL in seconds, unless the URL has a `connect_timeout`."""

_SCHEMA_LOCK: Final = 0x52414D50
"""Key of the PostgreSQL advisory lock for the creation of tables (RAMP in ASCII)."""


class _Word(TypeDecorator[StrEnum]):
    """A word of an enumeration as text."""

    impl = Text
    cache_ok = True

    def __init__(self, words: type[StrEnum]) -> None:
        super().__init__()
        self.words = words

    def process_bind_param(self, value: StrEnum | None, dialect: Dialect) -> str | None:
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:
        return None if value is None else self.words(value)


class _Reference(TypeDecorator[str]):
    """The key of another row; NULL is read as an empty text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return value or None

    def process_result_value(self, value: str | None, dialect: Dialect) -> str:
        return value or ""


_METADATA = MetaData()
_BIG = BigInteger().with_variant(
    Integer, "sqlite"
)  # SQLite increments only INTEGER keys; its integers have 64 bits anyway

VERSIONS = Table("ledger_version", _METADATA, Column("version", Integer, primary_key=True))

ACCOUNTS = Table(
    "accounts",
    _METADATA,
    Column("account_id", Text, primary_key=True),
    Column("kind", _Word(AccountKind), nullable=False),
    Column("credit_limit", _BIG, CheckConstraint("credit_limit >= 0"), nullable=False),
    Column("opened_at", _BIG, nullable=False),
    Column("posted", _BIG, nullable=False, server_default="0"),
    Column("reserved", _BIG, CheckConstraint("reserved >= 0"), nullable=False, server_default="0"),
    CheckConstraint("posted - reserved + credit_limit >= 0", name="within_overdraft"),
    # A resource only returns what it was paid, so it needs no overdraft.
    CheckConstraint("kind <> 'resource' OR credit_limit = 0", name="sellers_owe_nothing"),
)

ORDERS = Table(
    "orders",
    _METADATA,
    Column("order_id", Text, primary_key=True),
    Column("user_account", Text, key="user", nullable=False),  # a refused order may name an unknown account
    Column("valid_until", _BIG, nullable=False),
    Column("entered_at", _BIG, nullable=False),
    Column(
        "state",
        _Word(OrderState),
        CheckConstraint("state IN ('reserved', 'posted', 'voided', 'refused')"),
        nullable=False,
    ),
    Column("settled_at", _BIG),
    Column("code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    CheckConstraint("(state = 'reserved') = (settled_at IS NULL)", name="settled_unless_reserved"),
    CheckConstraint("state <> 'posted' OR settled_at < valid_until", name="posted_in_time"),
)
IS_RESERVED: Final = ORDERS.c.state == literal_column("'reserved'")  # a literal: the index needs one
Index("orders_reserved", ORDERS.c.valid_until, sqlite_where=IS_RESERVED, postgresql_where=IS_RESERVED)

ORDER_LINES = Table(
    "order_lines",
    _METADATA,
    Column("order_id", Text, ForeignKey("orders.order_id"), primary_key=True),
    Column("line_number", Integer, primary_key=True, autoincrement=False),
    Column("agreement_id", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("cost", _BIG, CheckConstraint("cost > 0"), nullable=False),
    Column("offer_id", Text, nullable=False),
    Column("countersigned_at", _BIG),
    Column("starts_at", _BIG),
    Column("amends", Text, nullable=False, server_default=""),  # of a line that pays for an addition
    Column("becomes", Text, nullable=False, server_default=""),
    CheckConstraint("(countersigned_at IS NULL) = (starts_at IS NULL)", name="countersigned_with_start"),
)

TRANSFERS = Table(
    "transfers",
    _METADATA,
    Column("transfer_id", Text, primary_key=True),
    Column("debit_account", Text, ForeignKey("accounts.account_id"), nullable=False),
    Column("credit_account", Text, ForeignKey("accounts.account_id"), nullable=False),
    Column("amount", _BIG, CheckConstraint("amount > 0"), nullable=False),
    Column("agreement_id", Text, nullable=False),
    Column("kind", _Word(TransferKind), nullable=False),
    Column("entered_at", _BIG, nullable=False),
    Column("posted_at", _BIG),
    Column("voided_at", _BIG),
    Column("memo", Text, nullable=False),
    Column("order_id", _Reference, ForeignKey("orders.order_id")),
    UniqueConstraint("agreement_id", "kind", name="one_transfer_for_a_key"),
    CheckConstraint("debit_account <> credit_account", name="two_accounts"),
    CheckConstraint("posted_at IS NULL OR voided_at IS NULL", name="posted_or_voided"),
    CheckConstraint("kind <> 'refund' OR posted_at IS NOT NULL", name="refunds_are_posted_at_once"),
)
Index("transfers_by_debit_account", TRANSFERS.c.debit_account, TRANSFERS.c.posted_at)
Index("transfers_by_credit_account", TRANSFERS.c.credit_account, TRANSFERS.c.posted_at)

ENTRIES = Table(
    "entries",
    _METADATA,
    Column("entry_number", _BIG, primary_key=True, autoincrement=True),
    Column("action", _Word(Action), nullable=False),
    Column("account_id", Text, ForeignKey("accounts.account_id")),
    Column("transfer_id", Text, ForeignKey("transfers.transfer_id")),
    Column("order_id", Text, ForeignKey("orders.order_id")),
    UniqueConstraint("account_id", "action", name="once_for_an_account"),
    UniqueConstraint("transfer_id", "action", name="once_for_a_transfer"),
)

_OF_AN_ORDER = ENTRIES.c.order_id.is_not(None)
Index(
    "once_for_an_order",
    ENTRIES.c.order_id,
    ENTRIES.c.action,
    unique=True,
    sqlite_where=_OF_AN_ORDER,
    postgresql_where=_OF_AN_ORDER,
)

EVIDENCE = Table(
    "evidence",
    _METADATA,
    Column("evidence_number", _BIG, primary_key=True, autoincrement=True),
    Column("reference", Text, nullable=False, index=True),
    Column("kind", _Word(EvidenceKind), nullable=False),
    Column("text", Text, nullable=False),
    Column("at", _BIG, nullable=False),
)

CHANGES = Table(
    "changes",
    _METADATA,
    Column("agreement_id", Text, primary_key=True),
    Column("number", Integer, CheckConstraint("number >= 0"), primary_key=True, autoincrement=False),  # 0: its end
    Column("grounds", _Word(Grounds), nullable=False),
    Column("digest", Text, nullable=False),
    Column("amount", _BIG, nullable=False),
    Column("decided_at", _BIG, nullable=False),
    Column("code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    CheckConstraint("(code = '') = (amount <> 0)", name="posted_or_void"),
    CheckConstraint("number > 0 OR amount < 0", name="ends_are_posted"),
    CheckConstraint("(digest <> '') = (code = '' AND number > 0)", name="posted_with_state"),
)

REMEMBERED_VOIDS = Table(
    "remembered_voids",
    _METADATA,
    Column("order_id", Text, primary_key=True),
    Column("user_account", Text, ForeignKey("accounts.account_id"), key="user", primary_key=True),
    Column("valid_until", _BIG, nullable=False, index=True),
    Column("voided_at", _BIG, nullable=False),
    Column("code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("evidence", Text, nullable=False),
)

NONCES = Table(
    "nonces",
    _METADATA,
    Column("signer", Text, primary_key=True),
    Column("nonce", Text, primary_key=True),
    Column("expires_at", _BIG, nullable=False, index=True),
)

CERTIFICATES = Table(
    "certificates",
    _METADATA,
    Column("account_id", Text, ForeignKey("accounts.account_id"), primary_key=True),
    Column("pem", Text, nullable=False),
)


def open_engine(location: str | Path) -> Engine:
    """Create the engine for a ledger; it opens no connection yet.

    Its transactions read one consistent state; those of its `writing_engine` are serialisable.

    Args:
        location: path of an SQLite file, or a URL of SQLite or PostgreSQL.

    Raises:
        ConfigurationError: another kind of database, a missing directory or a missing driver.
    """
    url = _url(location)
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, shown)
    try:
        limit = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_LIMIT_S}
        return create_engine(url, isolation_level="REPEATABLE READ", connect_args=limit)
    except ModuleNotFoundError as error:
        reason = (
            f"PostgreSQL needs the package psycopg ({error}); install it with: pip install 'ramp-market[postgresql]'"
        )
        raise ConfigurationError(reason, key=shown) from error


def writing_engine(engine: Engine) -> Engine:
    """Return the engine for writing transactions: serialisable, on SQLite with the write lock from the start."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(ramp_writing=True)
    return engine.execution_options(isolation_level="SERIALIZABLE")


def create_tables(engine: Engine) -> None:
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
    except exc.DBAPIError as error:
        raise ConfigurationError(f"the ledger's database cannot be opened: {error.orig}", key=shown) from error


def _make_or_check(connection: Connection, shown: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
    if not inspect(connection).has_table(VERSIONS.name):
        _METADATA.create_all(connection)
        connection.execute(insert(VERSIONS).values(version=SCHEMA_VERSION))
        return
    version = connection.execute(select(VERSIONS.c.version)).scalar_one_or_none()
    check_version(shown, "ledger", version, SCHEMA_VERSION)


def _url(location: str | Path) -> URL:
    if isinstance(location, Path) or "://" not in location:
        return URL.create("sqlite", database=str(location))
    try:
        url = make_url(location)
    except (exc.ArgumentError, ValueError) as error:
        raise ConfigurationError("invalid database URL; expected postgresql://user@host/name", key=location) from error
    if url.drivername in {"postgres", "postgresql"}:
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in {"sqlite", "postgresql+psycopg"}:
        raise ConfigurationError(
            f"unsupported database for the ledger: got {url.drivername}, expected a file name, sqlite or postgresql",
            key=url.render_as_string(hide_password=True),
        )
    return url


def _sqlite_engine(url: URL, shown: str) -> Engine:
    if not url.database or url.database == ":memory:":
        raise ConfigurationError("a ledger in memory is lost at exit; give the name of a file", key=shown)
    directory = Path(url.database).absolute().parent
    if not directory.is_dir():
        raise ConfigurationError(f"the directory {directory} does not exist", key=shown)
    # isolation_level None: the driver begins no transactions; _begin does, also before the first read.
    engine = create_engine(url, connect_args={"isolation_level": None, "timeout": LOCK_WAIT_S})

    def set_up(dbapi_connection: Any, _record: object) -> None:
        # synchronous=FULL: answered operations survive a power cut, not only a kill.
        _begin_write_ahead_log(dbapi_connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            dbapi_connection.execute(f"PRAGMA {pragma}")

    def begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("ramp_writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", begin)
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
