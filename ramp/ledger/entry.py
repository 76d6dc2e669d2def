"""Entries: what happened to a ledger, in order. They are only ever appended, and everything else follows from them."""

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
    """A transfer was entered, pending or (a deposit or refund) posted at once; the transfer as it was then."""

    transfer: Transfer


@dataclass(frozen=True, slots=True)
class TransferSettled:
    """A pending transfer was posted or voided; the transfer as it was then."""

    transfer: Transfer


@dataclass(frozen=True, slots=True)
class OrderEntered:
    """An order was entered, reserved, refused or voided; the order as it was then.

    Entries of its pending transfers follow at once, one for each line, if it is reserved; else none do.
    """

    order: Order


@dataclass(frozen=True, slots=True)
class OrderSettled:
    """A reserved order was posted or voided; the order as it was then. Entries of all its transfers follow at once."""

    order: Order


@dataclass(frozen=True, slots=True)
class AgreementCountersigned:
    """The countersigned agreement of a reserved order's line came.

    Attributes:
        agreement_id: of the line.
        at: when it came.
        starts_at: when the slot that it buys begins.
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
    """What an entry adds to one account's balance, in minor units."""

    account_id: str
    posted: int
    reserved: int


def balance_changes(entry: Entry) -> tuple[BalanceChange, ...]:
    """What an entry does to balances; the changes of `posted` sum to zero, which is what double entry means."""
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
