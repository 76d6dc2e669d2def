"""Entries: the ledger's history, which is only appended to and determines everything else."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.ledger.account import Account
from ramp.ledger.orders.order import Order
from ramp.ledger.transfer import Transfer, TransferState
from ramp.model.instant import Instant


@dataclass(frozen=True, slots=True)
class AccountOpened:
    """An account was opened."""

    account: Account


@dataclass(frozen=True, slots=True)
class AccountClosed:
    """An empty account was closed; `account.closed_at` says when."""

    account: Account


@dataclass(frozen=True, slots=True)
class TransferEntered:
    """A transfer was entered, pending or (a deposit or refund) posted at once; in its state then."""

    transfer: Transfer


@dataclass(frozen=True, slots=True)
class TransferSettled:
    """A pending transfer was posted or voided; in its state then."""

    transfer: Transfer


@dataclass(frozen=True, slots=True)
class OrderEntered:
    """An order was entered, reserved, refused or voided; in its state then.

    If it is reserved, entries of its pending transfers follow at once, one a line.
    """

    order: Order


@dataclass(frozen=True, slots=True)
class OrderSettled:
    """A reserved order was posted or voided; in its state then. Entries of all its transfers follow at once."""

    order: Order


@dataclass(frozen=True, slots=True)
class AgreementCountersigned:
    """The countersigned agreement of a reserved order's line arrived.

    Attributes:
        agreement_id: of the line.
        at: when it arrived.
        starts_at: start of the slot.
    """

    agreement_id: str
    at: Instant
    starts_at: Instant


Entry = (
    AccountOpened
    | AccountClosed
    | TransferEntered
    | TransferSettled
    | OrderEntered
    | OrderSettled
    | AgreementCountersigned
)


@dataclass(frozen=True, slots=True)
class BalanceChange:
    """The change of one account's balance by an entry, in minor units."""

    account_id: str
    posted: int
    reserved: int


def balance_changes(entry: Entry) -> tuple[BalanceChange, ...]:
    """Return the balance changes of an entry; those of `posted` sum to zero, as double entry demands."""
    if not isinstance(entry, TransferEntered | TransferSettled):
        return ()
    transfer = entry.transfer
    released = transfer.amount if isinstance(entry, TransferSettled) else 0
    match transfer.state:
        case TransferState.PENDING:
            return (BalanceChange(transfer.debit_account, 0, transfer.amount),)
        case TransferState.VOIDED:
            return (BalanceChange(transfer.debit_account, 0, -released),)
        case TransferState.POSTED:
            return (
                BalanceChange(transfer.debit_account, -transfer.amount, -released),
                BalanceChange(transfer.credit_account, transfer.amount, 0),
            )
