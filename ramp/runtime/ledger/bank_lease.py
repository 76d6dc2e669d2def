"""The lease that decides which of two Banking Agents is active, and the ledger under it.

An epoch that only grows protects the ledger: every transaction of a bank locks its row, and fails after another bank
has increased it. The lease, by the database's clock, only says when to increase it, so an early end of a lease costs
time and nothing else. A stopped process cannot keep the row locked: the database ends a transaction whose client is
idle for longer than the lease.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from ramp.errors import LedgerUnavailable
from ramp.model.instant import MILLISECOND, SECOND, Duration, Instant
from ramp.runtime.clock import steady_time
from ramp.runtime.ledger.schema import open_engine
from ramp.runtime.ledger.store import LedgerStore, attempted

Answer = TypeVar("Answer")

RENEWALS: Final = 3
"""Renewals by the active bank, and checks by the standby bank, during one lease."""

LOCK_LIMIT_MS: Final = 2_000
"""Timeout of a takeover for transactions of the other bank, in milliseconds, before the next attempt."""

JITTER: Final[Duration] = 10 * MILLISECOND
"""Smallest difference of the database's clock that counts, besides half of the round trip of the comparison."""

_KEY: Final = 0x52414D51
"""Key of the advisory lock for the creation of tables."""

_ONLY: Final = 1
"""Key of the only row of each table."""

_METADATA: Final = sa.MetaData()
_EPOCH: Final = sa.Table(
    "bank_epoch",
    _METADATA,
    sa.Column("only", sa.Integer, primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.Text, nullable=False),
)
_LEASE: Final = sa.Table(
    "bank_lease",
    _METADATA,
    sa.Column("only", sa.Integer, primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("until", sa.BigInteger, nullable=False),
)
_NOW: Final = sa.text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
_HELD: Final = sa.select(_EPOCH.c.epoch, _EPOCH.c.holder).with_for_update(read=True)
_TAKEN: Final = sa.select(_EPOCH.c.epoch, _EPOCH.c.holder).with_for_update()


class BankLease:
    """The claim of one Banking Agent, the `holder`, to be the active bank.

    Attributes:
        epoch: epoch of this agent's lease; 0 before the first.
        active: last known name of the active agent.
        duration: time as the active bank after the last renewal.
    """

    def __init__(self, location: str, holder: str, *, duration: Duration) -> None:
        self.epoch = 0
        self.active = ""
        self.duration = duration
        self._holder = holder
        self._ahead: Duration | None = None
        self._engine = fenced_engine(location, duration)
        self._made = False

    @property
    def pause_s(self) -> float:
        """Pause between two renewals or checks, in seconds."""
        return self.duration / RENEWALS / SECOND

    def time(self) -> Instant:
        """Return the database's time according to the last comparison."""
        if self._ahead is None:
            self._work(self._compare)
        assert self._ahead is not None, "it has just been compared"
        return steady_time() + self._ahead

    def take(self) -> bool:
        """Become the active bank if no other bank has renewed its lease in time; return whether this agent is active.

        A lease with the holder's own name belongs to an earlier process that must not continue.

        Raises:
            LedgerUnavailable: the database does not answer.
        """
        if not self._made:
            # READ COMMITTED shows tables that the other bank has created during the wait for the lock.
            self._work(_make, isolation_level="READ COMMITTED")
            self._made = True
        try:
            return self._work(self._take)
        except LedgerUnavailable as error:
            if getattr(getattr(error.__cause__, "orig", None), "sqlstate", None) == "55P03":
                return False  # the other bank is at work; an idle one loses the lock in the end
            raise

    def renew(self) -> None:
        """Renew the lease.

        Raises:
            LedgerUnavailable: another agent is the active bank;
                or the database does not answer.
        """
        self._work(self._renew)

    def give_up(self) -> None:
        """End the lease at once, so that the other bank need not wait; do nothing without a lease."""
        ended = sa.update(_LEASE).where(_LEASE.c.epoch == self.epoch).values(until=0)
        self._work(lambda connection: connection.execute(ended).rowcount)

    def check(self, connection: sa.Connection) -> None:
        """Check in a transaction that this agent is the active bank, and prevent a takeover until the end of it.

        Raises:
            LedgerUnavailable: another agent is the active bank.
        """
        held = connection.execute(_HELD).one()
        if held.epoch != self.epoch:
            raise self._superseded(held)

    def assert_held(self) -> None:
        """Check that this agent is the active bank; errors as in `renew`."""
        self._work(self.check)

    def close(self) -> None:
        self._engine.dispose()

    # -- units of work -------------------------------------------------------------------------------------------

    def _work(self, work: Callable[[sa.Connection], Answer], **options: str) -> Answer:
        return attempted(self._engine.execution_options(**options), work)

    def _take(self, connection: sa.Connection) -> bool:
        connection.execute(sa.text(f"SET LOCAL lock_timeout = {LOCK_LIMIT_MS}"))
        held = connection.execute(_TAKEN).one()
        now = self._compare(connection)
        until = connection.execute(sa.select(_LEASE.c.until)).scalar_one()
        self.active = held.holder
        if held.holder != self._holder and now < until:
            return False
        epoch = held.epoch + 1
        connection.execute(sa.update(_EPOCH).values(epoch=epoch, holder=self._holder))
        connection.execute(sa.update(_LEASE).values(epoch=epoch, until=now + self.duration))
        self.epoch, self.active = epoch, self._holder
        return True

    def _renew(self, connection: sa.Connection) -> None:
        now = self._compare(connection)
        renewed = sa.update(_LEASE).where(_LEASE.c.epoch == self.epoch).values(until=now + self.duration)
        if connection.execute(renewed).rowcount == 0:
            raise self._superseded(connection.execute(sa.select(_EPOCH)).one())

    def _superseded(self, held: sa.Row[Any]) -> LedgerUnavailable:
        self.active = held.holder
        return LedgerUnavailable(f"{held.holder} has taken over (epoch {held.epoch}, this one had {self.epoch})")

    def _compare(self, connection: sa.Connection) -> Instant:
        """Return the database's time; correct the kept offset if it has changed by more than the error of reading."""
        before = steady_time()
        now = int(connection.execute(_NOW).scalar_one())
        after = steady_time()
        ahead = now - (before + after) // 2
        if self._ahead is None or abs(ahead - self._ahead) > (after - before) // 2 + JITTER:
            self._ahead = ahead
        return now


def fenced_engine(location: str, duration: Duration) -> sa.Engine:
    """Return an engine whose transactions the database ends after a lease without activity of the client."""
    engine = open_engine(location)
    limit_ms = duration // MILLISECOND

    def set_up(dbapi_connection: Any, _record: object) -> None:
        with dbapi_connection.cursor() as cursor:
            cursor.execute(f"SET SESSION idle_in_transaction_session_timeout = {limit_ms}")
        dbapi_connection.commit()

    sa.event.listen(engine, "connect", set_up)
    return engine


def _make(connection: sa.Connection) -> None:
    connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_KEY})"))
    _METADATA.create_all(connection)
    if connection.execute(sa.select(_EPOCH.c.epoch)).one_or_none() is None:
        connection.execute(sa.insert(_EPOCH).values(only=_ONLY, epoch=0, holder=""))
        connection.execute(sa.insert(_LEASE).values(only=_ONLY, epoch=0, until=0))


def fenced_ledger(lease: BankLease, location: str) -> LedgerStore:
    """Open a ledger under a taken lease; its transactions fail once another bank has the lease.

    Raises:
        ConfigurationError: as of `LedgerStore.open`.
    """
    LedgerStore.open(location).close()  # creates missing tables
    return LedgerStore(fenced_engine(location, lease.duration), lease.check)
