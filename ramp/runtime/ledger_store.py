"""`LedgerStore`: the bank's ledger in SQLite (default) or PostgreSQL, durable and safe with several processes.

- Every operation is one serialisable database transaction: on SQLite it holds the write lock from the start (`BEGIN
  IMMEDIATE`, WAL, `synchronous=FULL`); on PostgreSQL it runs at SERIALIZABLE with the accounts locked in the order of
  their names, and is repeated when the server asks for it. Operations are idempotent, so a repeat after a lost
  connection is safe too.
- The rules are those of `ramp.ledger.rules`. The database checks the same invariants again on every write: balances
  never below the overdraft limit, one transfer for each key, one refund for a charge, one entering and one settling for
  a transfer. A write against one of them is a `LedgerCorrupt` error and is not made.
- `entries` is only ever inserted into; a transfer's row changes once, when it is posted or voided.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import Connection, Engine, Row, Update, bindparam, exc, func, insert, or_, select, update

from ramp.errors import LedgerCorrupt, LedgerUnavailable
from ramp.ledger.account import ISSUER, Account, AccountKind, Balance
from ramp.ledger.entry import (
    AccountClosed,
    AccountOpened,
    AgreementRefused,
    Entry,
    Refusal,
    TransferEntered,
    TransferSettled,
    balance_changes,
)
from ramp.ledger.interface import Answer, Ledger
from ramp.ledger.records import Records
from ramp.ledger.transfer import Transfer, TransferKind, transfer_id_of
from ramp.model.instant import Instant
from ramp.runtime.ledger_schema import (
    ACCOUNTS,
    CERTIFICATES,
    ENTRIES,
    NONCES,
    REFUSALS,
    TRANSFERS,
    Action,
    create_tables,
    open_engine,
    writing_engine,
)

ATTEMPTS_MAX: Final = 100
"""Tries of one unit of work before the database's error is passed on; conflicts end sooner, a dead server does not."""

PAUSE_MAX_S: Final = 0.05
"""Longest pause between two tries, in seconds; drawn at random so that two processes do not collide again."""

_SERIALISATION_FAILURES: Final = frozenset({"40001", "40P01", "23505"})
"""SQLSTATEs after which a repeat helps: serialisation failure, deadlock, and a unique key that another process has
entered meanwhile (the repeat finds that transfer)."""

# The statements of every payment are built once: building them takes longer than SQLite takes to run them.
_ACCOUNTS_OF: Final = (
    select(ACCOUNTS)
    .where(ACCOUNTS.c.account_id.in_(bindparam("account_ids", expanding=True)))
    .order_by(ACCOUNTS.c.account_id)
)
_ACCOUNTS_LOCKED: Final = _ACCOUNTS_OF.with_for_update()  # SQLite holds its write lock already and renders nothing here
_TRANSFER_OF: Final = select(TRANSFERS).where(TRANSFERS.c.transfer_id == bindparam("wanted_id"))
_REFUSAL_OF: Final = select(REFUSALS).where(REFUSALS.c.agreement_id == bindparam("wanted_id"))
_ENTER_TRANSFER: Final = insert(TRANSFERS)
_ENTER_ENTRY: Final = {
    column.name: insert(ENTRIES).values(action=bindparam("action"), **{column.name: bindparam(column.name)})
    for column in (ENTRIES.c.account_id, ENTRIES.c.transfer_id, ENTRIES.c.agreement_id)
}
_CHANGE_BALANCE: Final = (
    update(ACCOUNTS)
    .where(ACCOUNTS.c.account_id == bindparam("wanted_id"))
    .values(
        posted=ACCOUNTS.c.posted + bindparam("posted_change"),
        reserved=ACCOUNTS.c.reserved + bindparam("reserved_change"),
    )
)


class LedgerStore(Ledger):
    """The ledger in a database; made by `open`, used by one thread or several, by one process or several."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writing = writing_engine(engine)

    @classmethod
    def open(cls, location: str | Path) -> LedgerStore:
        """Open a ledger, and make it (with the market's issuing account) where there is none.

        Args:
            location: path of an SQLite file, or a URL: `sqlite:///file`, `postgresql://user@host/database`.

        Raises:
            ConfigurationError: if the database cannot be opened, is of another version, or its driver is missing.
        """
        engine = open_engine(location)
        try:
            create_tables(engine)
            store = cls(engine)
            store._write(_open_issuing_account)
        except BaseException:
            engine.dispose()
            raise
        return store

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read(self, work: Callable[[Records], Answer]) -> Answer:
        return self._attempt(self._engine, work, writing=False)

    def _write(self, work: Callable[[Records], Answer]) -> Answer:
        return self._attempt(self._writing, work, writing=True)

    def _attempt(self, engine: Engine, work: Callable[[Records], Answer], *, writing: bool) -> Answer:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                with engine.begin() as connection:
                    return work(_Tables(connection, writing=writing))
            except exc.DBAPIError as error:
                if attempt == ATTEMPTS_MAX or not _may_succeed_later(error):
                    if isinstance(error, exc.IntegrityError):
                        raise LedgerCorrupt(
                            f"the database refused a write against its constraints: {error.orig}"
                        ) from error
                    raise LedgerUnavailable(f"the ledger's database does not answer: {error.orig}") from error
            time.sleep(random.uniform(0, PAUSE_MAX_S))
        raise AssertionError("the last attempt returns or raises")


def _may_succeed_later(error: exc.DBAPIError) -> bool:
    return error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _SERIALISATION_FAILURES


def _open_issuing_account(records: Records) -> None:
    if not records.balances([ISSUER.account_id]):
        records.append(AccountOpened(ISSUER))


class _Tables:
    """The tables as one transaction sees them; implements `Records`."""

    def __init__(self, connection: Connection, *, writing: bool) -> None:
        self._connection = connection
        self._writing = writing

    def balances(self, account_ids: Iterable[str] | None = None) -> dict[str, Balance]:
        """Accounts by id with what they hold; see `Records.balances`."""
        if account_ids is None:
            rows = self._connection.execute(select(ACCOUNTS))
        else:
            query = _ACCOUNTS_LOCKED if self._writing else _ACCOUNTS_OF
            rows = self._connection.execute(query, {"account_ids": sorted(set(account_ids))})
        return {row.account_id: Balance(_account(row), row.posted, row.reserved) for row in rows}

    def transfer(self, agreement_id: str, kind: TransferKind) -> Transfer | None:
        """The transfer of a kind under an agreement, or None."""
        row = self._connection.execute(_TRANSFER_OF, {"wanted_id": transfer_id_of(agreement_id, kind)}).one_or_none()
        return None if row is None else _transfer(row)

    def pending(self, account_id: str | None = None) -> Sequence[Transfer]:
        """Transfers that reserve money and are neither posted nor voided, in order of entry."""
        query = (
            select(TRANSFERS)
            .join(ENTRIES, ENTRIES.c.transfer_id == TRANSFERS.c.transfer_id)
            .where(ENTRIES.c.action == Action.ENTERED, TRANSFERS.c.posted_at.is_(None), TRANSFERS.c.voided_at.is_(None))
            .order_by(ENTRIES.c.entry_number)
        )
        if account_id is not None:
            query = query.where(or_(TRANSFERS.c.debit_account == account_id, TRANSFERS.c.credit_account == account_id))
        return [_transfer(row) for row in self._connection.execute(query)]

    def posted(self, account_id: str, since: Instant | None, until: Instant | None) -> Sequence[Transfer]:
        """Posted transfers of an account within two instants, both included, in order of posting."""
        # The last entry of a posted transfer is its posting.
        posting = select(func.max(ENTRIES.c.entry_number)).where(ENTRIES.c.transfer_id == TRANSFERS.c.transfer_id)
        query = (
            select(TRANSFERS)
            .where(or_(TRANSFERS.c.debit_account == account_id, TRANSFERS.c.credit_account == account_id))
            .where(TRANSFERS.c.posted_at.is_not(None))
            .order_by(TRANSFERS.c.posted_at, posting.scalar_subquery())
        )
        if since is not None:
            query = query.where(TRANSFERS.c.posted_at >= since)
        if until is not None:
            query = query.where(TRANSFERS.c.posted_at <= until)
        return [_transfer(row) for row in self._connection.execute(query)]

    def posted_before(self, account_id: str, since: Instant) -> int:
        """Sum in minor units of what an account received less what it paid before an instant."""
        total = 0
        for side, sign in ((TRANSFERS.c.credit_account, 1), (TRANSFERS.c.debit_account, -1)):
            query = select(func.sum(TRANSFERS.c.amount)).where(side == account_id, TRANSFERS.c.posted_at < since)
            total += sign * int(self._connection.execute(query).scalar_one() or 0)
        return total

    def refusal(self, agreement_id: str) -> Refusal | None:
        """Why an agreement was refused for good, or None."""
        row = self._connection.execute(_REFUSAL_OF, {"wanted_id": agreement_id}).one_or_none()
        return None if row is None else _refusal(row)

    def entries(self) -> Sequence[Entry]:
        """All entries in order."""
        execute = self._connection.execute
        accounts = {row.account_id: _account(row) for row in execute(select(ACCOUNTS))}
        transfers = {row.transfer_id: _transfer(row) for row in execute(select(TRANSFERS))}
        refusals = {row.agreement_id: _refusal(row) for row in execute(select(REFUSALS))}
        settled = set(execute(select(ENTRIES.c.transfer_id).where(ENTRIES.c.action == Action.SETTLED)).scalars())
        entries: list[Entry] = []
        for row in execute(select(ENTRIES).order_by(ENTRIES.c.entry_number)):
            match Action(row.action):
                case Action.OPENED:
                    entries.append(AccountOpened(replace(accounts[row.account_id], closed_at=None)))
                case Action.CLOSED:
                    entries.append(AccountClosed(accounts[row.account_id]))
                case Action.ENTERED:
                    transfer = transfers[row.transfer_id]
                    if row.transfer_id in settled:
                        transfer = replace(transfer, posted_at=None, voided_at=None)
                    entries.append(TransferEntered(transfer))
                case Action.SETTLED:
                    entries.append(TransferSettled(transfers[row.transfer_id]))
                case Action.REFUSED:
                    entries.append(AgreementRefused(refusals[row.agreement_id]))
        return entries

    def append(self, entry: Entry) -> None:
        """Write an entry, what it says, and the balances that it changes."""
        execute = self._connection.execute
        match entry:
            case AccountOpened(account):
                execute(insert(ACCOUNTS), asdict(account) | {"kind": str(account.kind)})
                action, column, reference = Action.OPENED, "account_id", account.account_id
            case AccountClosed(account):
                self._update_one(
                    update(ACCOUNTS)
                    .where(ACCOUNTS.c.account_id == account.account_id, ACCOUNTS.c.closed_at.is_(None))
                    .values(closed_at=account.closed_at)
                )
                action, column, reference = Action.CLOSED, "account_id", account.account_id
            case TransferEntered(transfer):
                execute(_ENTER_TRANSFER, asdict(transfer) | {"kind": str(transfer.kind)})
                action, column, reference = Action.ENTERED, "transfer_id", transfer.transfer_id
            case TransferSettled(transfer):
                self._update_one(
                    update(TRANSFERS)
                    .where(TRANSFERS.c.transfer_id == transfer.transfer_id)
                    .where(TRANSFERS.c.posted_at.is_(None), TRANSFERS.c.voided_at.is_(None))
                    .values(posted_at=transfer.posted_at, voided_at=transfer.voided_at)
                )
                action, column, reference = Action.SETTLED, "transfer_id", transfer.transfer_id
            case AgreementRefused(refusal):
                execute(insert(REFUSALS), asdict(refusal))
                action, column, reference = Action.REFUSED, "agreement_id", refusal.agreement_id
        execute(_ENTER_ENTRY[column], {"action": str(action), column: reference})
        for change in balance_changes(entry):
            changes = {"posted_change": change.posted, "reserved_change": change.reserved}
            self._update_one(_CHANGE_BALANCE, {"wanted_id": change.account_id, **changes})

    def certificate(self, account_id: str) -> str | None:
        """An account's certificate in PEM, or None."""
        query = select(CERTIFICATES.c.pem).where(CERTIFICATES.c.account_id == account_id)
        return self._connection.execute(query).scalar_one_or_none()

    def put_certificate(self, account_id: str, pem: str) -> None:
        """Keep an account's certificate in place of the one before."""
        replaced = update(CERTIFICATES).where(CERTIFICATES.c.account_id == account_id).values(pem=pem)
        if self._connection.execute(replaced).rowcount == 0:
            self._connection.execute(insert(CERTIFICATES).values(account_id=account_id, pem=pem))

    def add_nonce(self, signer: str, nonce: str, expires_at: Instant) -> bool:
        """Remember a nonce until it expires; False if its signer used it already."""
        key = {"signer": signer, "nonce": nonce}
        if self._connection.execute(select(NONCES).filter_by(**key)).one_or_none() is not None:
            return False
        self._connection.execute(insert(NONCES).values(expires_at=expires_at, **key))
        return True

    def forget_nonces(self, now: Instant) -> None:
        """Forget the nonces that have expired."""
        self._connection.execute(NONCES.delete().where(NONCES.c.expires_at <= now))

    def _update_one(self, statement: Update, values: dict[str, Any] | None = None) -> None:
        """Update exactly one row; anything else means that the ledger is not what the rules have just read."""
        rows = self._connection.execute(statement, values).rowcount
        if rows != 1:
            raise LedgerCorrupt(f"{rows} rows instead of 1 matched {statement}")


def _account(row: Row[Any]) -> Account:
    return Account(row.account_id, AccountKind(row.kind), row.credit_limit, row.opened_at, row.closed_at)


def _transfer(row: Row[Any]) -> Transfer:
    return Transfer(
        transfer_id=row.transfer_id,
        debit_account=row.debit_account,
        credit_account=row.credit_account,
        amount=row.amount,
        agreement_id=row.agreement_id,
        kind=TransferKind(row.kind),
        entered_at=row.entered_at,
        posted_at=row.posted_at,
        voided_at=row.voided_at,
        reverses=row.reverses,
        memo=row.memo,
    )


def _refusal(row: Row[Any]) -> Refusal:
    return Refusal(row.agreement_id, row.code, row.reason, row.refused_at)
