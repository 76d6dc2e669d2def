"""The ledger of a bank that another one may take over from: each transaction first sees that it has not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Engine

from ramp.runtime.ledger.store import LedgerStore
from ramp.runtime.redundancy.bank_lease import BankLease, fenced_engine


class FencedLedger(LedgerStore):
    """The ledger on PostgreSQL under a lease; writes, and reads that lead to an answer, fail once it is another's."""

    def __init__(self, engine: Engine, lease: BankLease) -> None:
        super().__init__(engine)
        self._lease = lease

    @classmethod
    def under(cls, lease: BankLease, location: str) -> FencedLedger:
        """Open a ledger under a lease that has been taken.

        Raises:
            ConfigurationError: as `LedgerStore.open`.
        """
        LedgerStore.open(location).close()  # makes the tables, which changes nothing where they are
        return cls(fenced_engine(location, lease.duration), lease)

    def _attempt(self, engine: Engine, work: Callable[[Connection], Any]) -> Any:
        def fenced(connection: Connection) -> Any:
            self._lease.check(connection)
            return work(connection)

        return super()._attempt(engine, fenced)
