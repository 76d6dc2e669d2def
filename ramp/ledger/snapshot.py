"""All rows of a ledger in one consistent state, as every storage gives them to the audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ramp.ledger.account import Account
from ramp.ledger.entry import Countersignature, Entry
from ramp.ledger.orders.order import Order
from ramp.ledger.transfer import Transfer, transfer_id_of
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
