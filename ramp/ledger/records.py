"""`Records`: the interface between the rules of the ledger and any storage; and a storage's rows, for the audit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ramp.ledger.entry import (
    Account,
    Balance,
    Countersignature,
    DecidedChange,
    Entry,
    Evidence,
    Order,
    Transfer,
    transfer_id_of,
)
from ramp.model.contents import TransferKind
from ramp.model.instant import Instant


class AccountRow(NamedTuple):
    """An account and its kept balance."""

    account_id: str
    kind: str
    credit_limit: int
    posted: int
    reserved: int


class OrderRow(NamedTuple):
    """An order without its lines."""

    order_id: str
    user: str
    state: str
    entered_at: Instant
    valid_until: Instant
    settled_at: Instant | None


class LineRow(NamedTuple):
    """A line of an order; `becomes` is empty unless it pays for an addition."""

    order_id: str
    agreement_id: str
    resource: str
    cost: int
    countersigned_at: Instant | None
    starts_at: Instant | None
    becomes: str


class TransferRow(NamedTuple):
    """A transfer; a deposit has no order."""

    transfer_id: str
    kind: str
    agreement_id: str
    order_id: str | None
    debit_account: str
    credit_account: str
    amount: int
    posted_at: Instant | None
    voided_at: Instant | None


class ChangeRow(NamedTuple):
    """A decided change of an agreement; `code` is empty if it is posted."""

    agreement_id: str
    number: int
    digest: str
    amount: int
    code: str


class EntryRow(NamedTuple):
    """An entry: its action, and the one account, transfer or order of it."""

    entry_number: int
    action: str
    account_id: str | None
    transfer_id: str | None
    order_id: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows; each kind in any order."""

    accounts: tuple[AccountRow, ...]
    orders: tuple[OrderRow, ...]
    lines: tuple[LineRow, ...]
    transfers: tuple[TransferRow, ...]
    changes: tuple[ChangeRow, ...]
    entries: tuple[EntryRow, ...]


def entry_row(number: int, entry: Entry) -> EntryRow:
    """Return the row of an entry; that of a countersignature names the payment."""
    match entry.subject:
        case Account(account_id):
            return EntryRow(number, entry.action, account_id, None, None)
        case Transfer(transfer_id):
            return EntryRow(number, entry.action, None, transfer_id, None)
        case Order(order_id):
            return EntryRow(number, entry.action, None, None, order_id)
        case Countersignature(agreement_id):
            return EntryRow(number, entry.action, None, transfer_id_of(agreement_id, TransferKind.PAYMENT), None)


class Records(Protocol):
    """Reads and writes of rules, within one indivisible unit of work."""

    def balances(self, account_ids: Iterable[str] | None = None) -> dict[str, Balance]:
        """Balances of existing accounts among these (None: of all), locked until the unit of work ends."""
        ...

    def transfer(self, agreement_id: str, kind: TransferKind) -> Transfer | None:
        """The transfer with this idempotency key, or None."""
        ...

    def posted(self, account_id: str, since: Instant | None, until: Instant | None) -> Sequence[Transfer]:
        """Posted transfers of an account from `since` to `until` (both included), by time, then order of posting."""
        ...

    def posted_before(self, account_id: str, since: Instant) -> int:
        """Sum of what was posted to an account before an instant, in minor units."""
        ...

    def trades(
        self, since: Instant | None, until: Instant | None, after: int, limit: int
    ) -> Sequence[tuple[int, Transfer]]:
        """Transfers posted from `since` to `until` (both included) with the numbers of their posting entries.

        Only those numbered above `after`, in order, at most `limit`.
        """
        ...

    def order(self, order_id: str) -> Order | None:
        """Return the order of this id in its present state, or None."""
        ...

    def order_of(self, agreement_id: str) -> Order | None:
        """The order that entered the payment of an agreement, or None."""
        ...

    def open_orders(self, user: str | None = None, due: Instant | None = None) -> Sequence[Order]:
        """Reserved orders in order of entry: of one user or all, with a deadline at or before `due` or any."""
        ...

    def starts_at(self, agreement_id: str) -> Instant | None:
        """When the slot of a countersigned agreement begins, or None."""
        ...

    def evidence(self, reference: str) -> Sequence[Evidence]:
        """Evidence about a reference, in order of arrival."""
        ...

    def add_evidence(self, evidence: Evidence) -> None:
        """Store a signed message."""
        ...

    def snapshot(self) -> Snapshot:
        """All rows."""
        ...

    def append(self, *entries: Entry) -> None:
        """Append entries and apply their balance changes: all or none of them."""
        ...

    def changes(self, agreement_id: str) -> tuple[DecidedChange, ...]:
        """Decided changes of an agreement, by number."""
        ...

    def add_change(self, decided: DecidedChange) -> None:
        """Store a decision, the first of its agreement and number."""
        ...
