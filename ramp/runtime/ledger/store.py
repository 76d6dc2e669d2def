"""`LedgerStore`: the bank's ledger in SQLite (default) or PostgreSQL, durable and safe with several processes.

- Every operation is one serialisable database transaction. On SQLite it holds the write lock from the start (`BEGIN
  IMMEDIATE`, WAL, `synchronous=FULL`). On PostgreSQL it runs at SERIALIZABLE with the accounts locked in the order of
  their names, and is repeated at the server's request. Operations are idempotent, so a repeat after a lost connection
  is safe too.
- The rules are those of `ramp.ledger.payment_rules`. The database checks the same invariants on every write: balances
  never below the overdraft limit (except a resource's, by refunds), one transfer for each key, one refund for a charge,
  one entering and one settling for a transfer and an order, nothing posted after its deadline. A violation is a
  `LedgerCorrupt` error, without a write.
- Rows of `entries` never change; a transfer's and an order's row changes once, when it is posted or voided.
- A ledger of another version is refused.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from sqlalchemy import Connection, Engine, exc

from ramp.errors import LedgerCorrupt, LedgerUnavailable
from ramp.ledger.entry import ISSUER, Action, Entry
from ramp.ledger.interface import Answer, Ledger
from ramp.ledger.records import Records
from ramp.runtime.ledger.schema import create_tables, open_engine, writing_engine
from ramp.runtime.ledger.sql_records import Tables

ATTEMPTS_MAX: Final = 100
"""Attempts at a transaction before an error; conflicts end sooner, a dead server does not."""

PAUSE_MAX_S: Final = 0.05
"""Longest pause between two tries, in seconds; drawn at random so that two processes do not collide again."""

_SERIALISATION_FAILURES: Final = frozenset({"40001", "40P01", "23505"})
"""SQLSTATEs after which a repeat helps: serialisation failure, deadlock, and a unique key that another process has
entered meanwhile (the repeat finds that transfer)."""


class LedgerStore(Ledger):
    """The ledger in a database, created by `open`; several threads and processes may use it."""

    def __init__(self, engine: Engine, check: Callable[[Connection], None] = lambda _: None) -> None:
        """Use tables that exist; `check` may fail each transaction at its beginning."""
        self._engine = engine
        self._writing = writing_engine(engine)
        self._check = check

    @classmethod
    def open(cls, location: str | Path) -> LedgerStore:
        """Open a ledger; create it with the market's issuing account if it does not exist.

        Args:
            location: path of an SQLite file, or a URL: `sqlite:///file`, `postgresql://user@host/database`.

        Raises:
            ConfigurationError: the database cannot be opened, has another version, or its driver is missing.
        """
        engine = open_engine(location)
        try:
            create_tables(engine)
            store = cls(engine)
            store.write(_open_issuing_account)
        except BaseException:
            engine.dispose()
            raise
        return store

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def read(self, work: Callable[[Records], Answer]) -> Answer:
        return self._checked(self._engine, work, writing=False)

    def write(self, work: Callable[[Records], Answer]) -> Answer:
        return self._checked(self._writing, work, writing=True)

    def _checked(self, engine: Engine, work: Callable[[Records], Answer], *, writing: bool) -> Answer:
        def checked(connection: Connection) -> Answer:
            self._check(connection)
            return work(Tables(connection, writing=writing))

        return attempted(engine, checked)


def attempted(engine: Engine, work: Callable[[Connection], Answer]) -> Answer:
    """Do work in a transaction; repeat it at the server's request.

    Raises:
        LedgerCorrupt: a write violates the database's constraints.
        LedgerUnavailable: the database does not answer.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            with engine.begin() as connection:
                return work(connection)
        except exc.DBAPIError as error:
            sqlstate = getattr(error.orig, "sqlstate", None)
            if attempt == ATTEMPTS_MAX or not (error.connection_invalidated or sqlstate in _SERIALISATION_FAILURES):
                if isinstance(error, exc.IntegrityError):
                    text = f"the database refused a write against its constraints: {error.orig}"
                    raise LedgerCorrupt(text) from error
                raise LedgerUnavailable(f"the ledger's database does not answer: {error.orig}") from error
        time.sleep(random.uniform(0, PAUSE_MAX_S))
    raise AssertionError("the last attempt returns or raises")


def _open_issuing_account(records: Records) -> None:
    if not records.balances([ISSUER.account_id]):
        records.append(Entry(Action.OPENED, ISSUER))
