"""`Book`: the ledger in memory, for simulated markets: ten times as fast as SQLite in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from ramp.ledger.entry import (
    ISSUER,
    Account,
    Action,
    Balance,
    Countersignature,
    DecidedChange,
    Entry,
    Evidence,
    Order,
    Transfer,
    balance_changes,
    transfer_id_of,
)
from ramp.ledger.interface import Answer, Ledger
from ramp.ledger.records import (
    AccountRow,
    ChangeRow,
    EntryRow,
    LineRow,
    OrderRow,
    Records,
    Snapshot,
    TransferRow,
    entry_row,
)
from ramp.model.contents import OrderLine, OrderState, TransferKind
from ramp.model.instant import Instant


class Book(Ledger):
    """The ledger in memory."""

    def __init__(self) -> None:
        self._records = BookRecords()
        self._records.append(Entry(Action.OPENED, ISSUER))

    def read(self, work: Callable[[Records], Answer]) -> Answer:
        return work(self._records)

    def write(self, work: Callable[[Records], Answer]) -> Answer:
        # Rules check everything before they write anything, so a refusal leaves nothing half done.
        return work(self._records)


class BookRecords:
    """The present state; implements `Records`. No constraint checks an entry: the audit finds one that does not fit."""

    def __init__(self) -> None:
        self._entries: list[EntryRow] = []
        self._balances: dict[str, Balance] = {}
        self._transfers: dict[str, Transfer] = {}
        self._trades: dict[str, int] = {}  # number of the posting entry by transfer id, in order of posting
        self._orders: dict[str, Order] = {}
        self._reserved: dict[str, None] = {}  # ids in order of entry; a dict because it is an ordered set
        self._signed: dict[str, Countersignature] = {}  # by agreement id
        self._evidence: dict[str, list[Evidence]] = {}
        self._changes: dict[str, dict[int, DecidedChange]] = {}  # by agreement id and number

    def balances(self, account_ids: Iterable[str] | None = None) -> dict[str, Balance]:
        if account_ids is None:
            return dict(self._balances)
        return {name: self._balances[name] for name in account_ids if name in self._balances}

    def transfer(self, agreement_id: str, kind: TransferKind) -> Transfer | None:
        return self._transfers.get(transfer_id_of(agreement_id, kind))

    def posted(self, account_id: str, since: Instant | None, until: Instant | None) -> Sequence[Transfer]:
        posted = [
            transfer
            for _, transfer in self.trades(since, until, 0, len(self._trades))
            if account_id in (transfer.debit_account, transfer.credit_account)
        ]
        return sorted(posted, key=attrgetter("posted_at"))  # the clock may have been set back between two

    def posted_before(self, account_id: str, since: Instant) -> int:
        before = self.posted(account_id, None, since - 1)
        return sum(one.amount if one.credit_account == account_id else -one.amount for one in before)

    def trades(
        self, since: Instant | None, until: Instant | None, after: int, limit: int
    ) -> Sequence[tuple[int, Transfer]]:
        found = [(number, self._transfers[name]) for name, number in self._trades.items() if number > after]
        return [(number, transfer) for number, transfer in found if _is_within(transfer, since, until)][:limit]

    def order(self, order_id: str) -> Order | None:
        return self._orders.get(order_id)

    def order_of(self, agreement_id: str) -> Order | None:
        payment = self.transfer(agreement_id, TransferKind.PAYMENT)
        return None if payment is None else self._orders.get(payment.order_id)

    def open_orders(self, user: str | None = None, due: Instant | None = None) -> Sequence[Order]:
        every = [self._orders[order_id] for order_id in self._reserved]
        return [one for one in every if user in (None, one.user) and (due is None or one.valid_until <= due)]

    def starts_at(self, agreement_id: str) -> Instant | None:
        signed = self._signed.get(agreement_id)
        return None if signed is None else signed.starts_at

    def evidence(self, reference: str) -> Sequence[Evidence]:
        return self._evidence.get(reference, [])

    def add_evidence(self, evidence: Evidence) -> None:
        self._evidence.setdefault(evidence.reference, []).append(evidence)

    def changes(self, agreement_id: str) -> tuple[DecidedChange, ...]:
        return tuple(decided for _, decided in sorted(self._changes.get(agreement_id, {}).items()))

    def add_change(self, decided: DecidedChange) -> None:
        self._changes.setdefault(decided.agreement_id, {})[decided.number] = decided

    def snapshot(self) -> Snapshot:
        return Snapshot(
            accounts=tuple(
                AccountRow(name, each.account.kind, each.credit_limit, each.posted, each.reserved)
                for name, each in self._balances.items()
            ),
            orders=tuple(_row(OrderRow, each) for each in self._orders.values()),
            lines=tuple(self._line_row(order, line) for order in self._orders.values() for line in order.lines),
            transfers=tuple(
                _row(TransferRow, each)._replace(order_id=each.order_id or None) for each in self._transfers.values()
            ),
            changes=tuple(
                _row(ChangeRow, each) for of_agreement in self._changes.values() for each in of_agreement.values()
            ),
            entries=tuple(self._entries),
        )

    def _line_row(self, order: Order, line: OrderLine) -> LineRow:
        signed = self._signed.get(line.agreement_id) if line.agreement_id in order.countersigned else None
        at, starts_at = (None, None) if signed is None else (signed.at, signed.starts_at)
        return LineRow(order.order_id, line.agreement_id, line.resource, line.cost, at, starts_at, line.becomes)

    def append(self, *entries: Entry) -> None:
        for entry in entries:
            self._append(entry)

    def _append(self, entry: Entry) -> None:
        for change in balance_changes(entry):
            balance = self._balances[change.account_id]
            posted, reserved = balance.posted + change.posted, balance.reserved + change.reserved
            self._balances[change.account_id] = Balance(balance.account, posted, reserved)
        self._entries.append(entry_row(len(self._entries) + 1, entry))
        match entry.subject:
            case Account() as account:
                self._balances[account.account_id] = Balance(account, 0, 0)
            case Transfer() as transfer:
                self._transfers[transfer.transfer_id] = transfer
                if transfer.posted_at is not None:
                    self._trades[transfer.transfer_id] = len(self._entries)
            case Order() as order:
                self._put_order(order)
            case Countersignature() as signed:
                self._signed[signed.agreement_id] = signed
                self._put_countersigned(signed.agreement_id)

    def _put_order(self, order: Order) -> None:
        self._orders[order.order_id] = order
        if order.state is OrderState.RESERVED:
            self._reserved[order.order_id] = None
        else:
            self._reserved.pop(order.order_id, None)

    def _put_countersigned(self, agreement_id: str) -> None:
        order = self.order_of(agreement_id)
        assert order is not None
        marked = {*order.countersigned, agreement_id}
        in_order = tuple(line.agreement_id for line in order.lines if line.agreement_id in marked)
        self._orders[order.order_id] = replace(order, countersigned=in_order)


def _is_within(transfer: Transfer, since: Instant | None, until: Instant | None) -> bool:
    at = transfer.posted_at
    assert at is not None, "it is posted"
    return (since is None or at >= since) and (until is None or at <= until)


def _row(kind: Any, record: object) -> Any:
    """Return the row with the fields of a record that it names."""
    return kind._make(getattr(record, name) for name in kind._fields)
