"""Implements `Records` in SQL: reads and writes the ledger's tables in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

import sqlalchemy as sa

from ramp.errors import LedgerCorrupt
from ramp.ledger.entry import (
    Account,
    Action,
    Balance,
    DecidedChange,
    Entry,
    Evidence,
    Order,
    Transfer,
    balance_changes,
    transfer_id_of,
)
from ramp.ledger.records import (
    AccountRow,
    ChangeRow,
    EntryRow,
    LineRow,
    OrderRow,
    Snapshot,
    TransferRow,
    entry_row,
)
from ramp.model.contents import OrderLine, TransferKind
from ramp.model.instant import Instant
from ramp.runtime.ledger.schema import (
    ACCOUNTS,
    CHANGES,
    ENTRIES,
    EVIDENCE,
    IS_RESERVED,
    ORDER_LINES,
    ORDERS,
    TRANSFERS,
)

_TRANSFER_END: Final = ("posted_at", "voided_at")
_ORDER_END: Final = ("state", "settled_at", "code", "reason")

# The statements of every order are built once: building them takes longer than SQLite takes to run them.
_ACCOUNTS_OF: Final = (
    sa.select(ACCOUNTS)
    .where(ACCOUNTS.c.account_id.in_(sa.bindparam("account_ids", expanding=True)))
    .order_by(ACCOUNTS.c.account_id)
)
_ACCOUNTS_LOCKED: Final = _ACCOUNTS_OF.with_for_update()  # SQLite holds its write lock already and renders nothing here
_TRANSFER_OF: Final = sa.select(TRANSFERS).where(TRANSFERS.c.transfer_id == sa.bindparam("wanted_id"))
# Posted transfers, each with the number of the entry that posted it: only payments are pending first.
_POSTINGS: Final = sa.select(ENTRIES.c.entry_number, TRANSFERS).join_from(
    TRANSFERS,
    ENTRIES,
    sa.and_(
        ENTRIES.c.transfer_id == TRANSFERS.c.transfer_id,
        ENTRIES.c.action == sa.case((TRANSFERS.c.kind == TransferKind.PAYMENT, Action.SETTLED), else_=Action.ENTERED),
    ),
)
_ENTER_TRANSFER: Final = sa.insert(TRANSFERS)
_ENTER_ORDER: Final = sa.insert(ORDERS)
_ENTER_LINE: Final = sa.insert(ORDER_LINES)
_ENTER_ENTRY: Final = sa.insert(ENTRIES)
_ENTER_EVIDENCE: Final = sa.insert(EVIDENCE)
_SETTLE_TRANSFER: Final = (
    sa.update(TRANSFERS)
    .where(TRANSFERS.c.transfer_id == sa.bindparam("wanted_id"))
    .where(TRANSFERS.c.posted_at.is_(None), TRANSFERS.c.voided_at.is_(None))
    .values({name: sa.bindparam(f"{name}_then") for name in _TRANSFER_END})
)
_SETTLE_ORDER: Final = (
    sa.update(ORDERS)
    .where(ORDERS.c.order_id == sa.bindparam("wanted_id"), IS_RESERVED)
    .values({name: sa.bindparam(f"{name}_then") for name in _ORDER_END})
)
_ORDER_ID_OF: Final = sa.select(TRANSFERS.c.order_id).where(TRANSFERS.c.transfer_id == sa.bindparam("wanted_id"))
_LINE_OF: Final = sa.and_(
    ORDER_LINES.c.order_id == _ORDER_ID_OF.scalar_subquery(),
    ORDER_LINES.c.agreement_id == sa.bindparam("wanted_agreement"),
)
_COUNTERSIGN: Final = (
    sa.update(ORDER_LINES)
    .where(_LINE_OF, ORDER_LINES.c.countersigned_at.is_(None))
    .values(countersigned_at=sa.bindparam("countersigned_then"), starts_at=sa.bindparam("starts_then"))
)
_STARTS_AT: Final = sa.select(ORDER_LINES.c.starts_at).where(_LINE_OF)
# An order with its lines, one row for each; one row for an order without.
_ORDERS: Final = sa.select(ORDERS, *(column for column in ORDER_LINES.c if column.name != "order_id")).outerjoin_from(
    ORDERS, ORDER_LINES, ORDER_LINES.c.order_id == ORDERS.c.order_id
)
_ORDER: Final = _ORDERS.where(ORDERS.c.order_id == sa.bindparam("wanted_id")).order_by(ORDER_LINES.c.line_number)
_ORDER_OF: Final = _ORDERS.where(ORDERS.c.order_id == _ORDER_ID_OF.scalar_subquery()).order_by(
    ORDER_LINES.c.line_number
)
_CHANGES_OF: Final = (
    sa.select(CHANGES).where(CHANGES.c.agreement_id == sa.bindparam("wanted_id")).order_by(CHANGES.c.number)
)
_CHANGE_BALANCE: Final = (
    sa.update(ACCOUNTS)
    .where(ACCOUNTS.c.account_id == sa.bindparam("wanted_id"))
    .values(
        posted=ACCOUNTS.c.posted + sa.bindparam("posted_change"),
        reserved=ACCOUNTS.c.reserved + sa.bindparam("reserved_change"),
    )
)


class Tables:
    """The tables as one transaction sees them; implements `Records`, which documents the methods."""

    def __init__(self, connection: sa.Connection, *, writing: bool) -> None:
        self._connection = connection
        self._writing = writing

    def balances(self, account_ids: Iterable[str] | None = None) -> dict[str, Balance]:
        if account_ids is None:
            rows = self._connection.execute(sa.select(ACCOUNTS))
        else:
            query = _ACCOUNTS_LOCKED if self._writing else _ACCOUNTS_OF
            rows = self._connection.execute(query, {"account_ids": sorted(set(account_ids))})
        return {row.account_id: Balance(Account(*row[:-2]), row.posted, row.reserved) for row in rows}

    def transfer(self, agreement_id: str, kind: TransferKind) -> Transfer | None:
        row = self._connection.execute(_TRANSFER_OF, {"wanted_id": transfer_id_of(agreement_id, kind)}).one_or_none()
        return None if row is None else Transfer(*row)

    def posted(self, account_id: str, since: Instant | None, until: Instant | None) -> Sequence[Transfer]:
        of_account = sa.or_(TRANSFERS.c.debit_account == account_id, TRANSFERS.c.credit_account == account_id)
        query = _POSTINGS.where(of_account, *_posted_within(since, until))
        in_order = query.order_by(TRANSFERS.c.posted_at, ENTRIES.c.entry_number)
        return [Transfer(*row[1:]) for row in self._connection.execute(in_order)]

    def posted_before(self, account_id: str, since: Instant) -> int:
        total = 0
        for side, sign in ((TRANSFERS.c.credit_account, 1), (TRANSFERS.c.debit_account, -1)):
            query = sa.select(sa.func.sum(TRANSFERS.c.amount)).where(side == account_id, TRANSFERS.c.posted_at < since)
            total += sign * int(self._connection.execute(query).scalar_one() or 0)
        return total

    def trades(
        self, since: Instant | None, until: Instant | None, after: int, limit: int
    ) -> Sequence[tuple[int, Transfer]]:
        query = _POSTINGS.where(*_posted_within(since, until), ENTRIES.c.entry_number > after)
        page = query.order_by(ENTRIES.c.entry_number).limit(limit)
        return [(row.entry_number, Transfer(*row[1:])) for row in self._connection.execute(page)]

    def order(self, order_id: str) -> Order | None:
        return next(iter(orders_of(self._connection.execute(_ORDER, {"wanted_id": order_id}))), None)

    def order_of(self, agreement_id: str) -> Order | None:
        payment = transfer_id_of(agreement_id, TransferKind.PAYMENT)
        return next(iter(orders_of(self._connection.execute(_ORDER_OF, {"wanted_id": payment}))), None)

    def open_orders(self, user: str | None = None, due: Instant | None = None) -> Sequence[Order]:
        query = (
            _ORDERS.join(ENTRIES, ENTRIES.c.order_id == ORDERS.c.order_id)
            .where(IS_RESERVED, ENTRIES.c.action == Action.ENTERED)
            .order_by(ENTRIES.c.entry_number, ORDER_LINES.c.line_number)
        )
        if user is not None:
            query = query.where(ORDERS.c.user == user)
        if due is not None:
            query = query.where(ORDERS.c.valid_until <= due)
        return orders_of(self._connection.execute(query))

    def starts_at(self, agreement_id: str) -> Instant | None:
        return self._connection.execute(_STARTS_AT, line_key(agreement_id)).scalar_one_or_none()

    def evidence(self, reference: str) -> Sequence[Evidence]:
        query = sa.select(EVIDENCE).where(EVIDENCE.c.reference == reference).order_by(EVIDENCE.c.evidence_number)
        return [Evidence(*row[1:]) for row in self._connection.execute(query)]

    def add_evidence(self, evidence: Evidence) -> None:
        self._connection.execute(_ENTER_EVIDENCE, asdict(evidence))

    def changes(self, agreement_id: str) -> tuple[DecidedChange, ...]:
        rows = self._connection.execute(_CHANGES_OF, {"wanted_id": agreement_id})
        return tuple(DecidedChange(*row) for row in rows)

    def add_change(self, decided: DecidedChange) -> None:
        self._connection.execute(sa.insert(CHANGES), asdict(decided))

    def snapshot(self) -> Snapshot:
        execute = self._connection.execute
        return Snapshot(
            accounts=tuple(map(AccountRow._make, execute(_columns(ACCOUNTS, AccountRow)))),
            orders=tuple(map(OrderRow._make, execute(_columns(ORDERS, OrderRow)))),
            lines=tuple(map(LineRow._make, execute(_columns(ORDER_LINES, LineRow)))),
            transfers=tuple(map(TransferRow._make, execute(_columns(TRANSFERS, TransferRow)))),
            changes=tuple(map(ChangeRow._make, execute(_columns(CHANGES, ChangeRow)))),
            entries=tuple(map(EntryRow._make, execute(_columns(ENTRIES, EntryRow)))),
        )

    def append(self, *entries: Entry) -> None:
        for (action, kind), alike in groupby(entries, key=lambda entry: (entry.action, type(entry.subject))):
            self._write_contents(action, kind, [entry.subject for entry in alike])
        rows = [entry_row(0, entry)._asdict() for entry in entries]
        for row in rows:
            del row["entry_number"]  # the database numbers them
        self._connection.execute(_ENTER_ENTRY, rows)
        changes: dict[str, dict[str, Any]] = {}
        for change in (change for entry in entries for change in balance_changes(entry)):
            of_account = changes.setdefault(
                change.account_id, {"wanted_id": change.account_id, "posted_change": 0, "reserved_change": 0}
            )
            of_account["posted_change"] += change.posted
            of_account["reserved_change"] += change.reserved
        self._update(_CHANGE_BALANCE, [values for _, values in sorted(changes.items())])

    def _write_contents(self, action: Action, kind: type, subjects: list[Any]) -> None:
        """Write the subjects of entries of one kind, in one statement for each table."""
        execute = self._connection.execute
        match action:
            case Action.OPENED:
                execute(sa.insert(ACCOUNTS), [asdict(account) for account in subjects])
            case Action.ENTERED if kind is Order:
                execute(_ENTER_ORDER, [_values(ORDERS, order) for order in subjects])
                lines = [
                    {"order_id": order.order_id, "line_number": number, **asdict(line)}
                    for order in subjects
                    for number, line in enumerate(order.lines, start=1)
                ]
                if lines:
                    execute(_ENTER_LINE, lines)
            case Action.ENTERED:
                execute(_ENTER_TRANSFER, [_values(TRANSFERS, transfer) for transfer in subjects])
            case Action.SETTLED if kind is Order:
                self._update(_SETTLE_ORDER, [_end(order.order_id, order, _ORDER_END) for order in subjects])
            case Action.SETTLED:
                self._update(_SETTLE_TRANSFER, [_end(each.transfer_id, each, _TRANSFER_END) for each in subjects])
            case Action.COUNTERSIGNED:
                signed = [
                    line_key(each.agreement_id) | {"countersigned_then": each.at, "starts_then": each.starts_at}
                    for each in subjects
                ]
                self._update(_COUNTERSIGN, signed)

    def _update(self, statement: sa.Update, rows: list[dict[str, Any]]) -> None:
        """Update exactly one row for each of these; another number means that the ledger has changed."""
        if not rows:
            return
        updated = self._connection.execute(statement, rows).rowcount
        if updated != len(rows):
            raise LedgerCorrupt(f"{updated} rows instead of {len(rows)} matched {statement}")


def _posted_within(since: Instant | None, until: Instant | None) -> list[sa.ColumnElement[bool]]:
    within: list[sa.ColumnElement[bool]] = [TRANSFERS.c.posted_at.is_not(None)]
    if since is not None:
        within.append(TRANSFERS.c.posted_at >= since)
    if until is not None:
        within.append(TRANSFERS.c.posted_at <= until)
    return within


def orders_of(rows: Iterable[sa.Row[Any]]) -> list[Order]:
    """Return the orders of rows of `_ORDERS`, sorted by order and line number."""
    return [_order_of(list(of_order)) for _, of_order in groupby(rows, key=lambda row: row.order_id)]


def _order_of(rows: list[sa.Row[Any]]) -> Order:
    first = rows[0]
    lines = [row for row in rows if row.line_number is not None]
    return Order(
        order_id=first.order_id,
        user=first.user,
        lines=tuple(
            OrderLine(row.agreement_id, row.resource, row.cost, row.offer_id, row.amends, row.becomes) for row in lines
        ),
        valid_until=first.valid_until,
        entered_at=first.entered_at,
        state=first.state,
        settled_at=first.settled_at,
        code=first.code,
        reason=first.reason,
        countersigned=tuple(row.agreement_id for row in lines if row.countersigned_at is not None),
    )


def _values(table: sa.Table, record: object) -> dict[str, Any]:
    return {column.key: getattr(record, column.key) for column in table.c}


def _end(name: str, record: object, changed: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of a statement that settles a record."""
    return {"wanted_id": name} | {f"{column}_then": getattr(record, column) for column in changed}


def line_key(agreement_id: str) -> dict[str, Any]:
    """Return the parameters that find the line of an agreement with a payment."""
    return {"wanted_id": transfer_id_of(agreement_id, TransferKind.PAYMENT), "wanted_agreement": agreement_id}


def _columns(table: sa.Table, row: Any) -> sa.Select[Any]:
    """Select the columns of a row as the database stores them: an audit reads whatever is there."""
    columns = (table.c[name] for name in row._fields)
    return sa.select(
        *(
            sa.type_coerce(each, sa.Text) if isinstance(each.type, sa.Enum | sa.TypeDecorator) else each
            for each in columns
        )
    )
