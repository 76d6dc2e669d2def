"""Entries: the ledger's history, which is only appended to and determines everything else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.ledger.account import Account
from ramp.ledger.orders.order import Order
from ramp.ledger.transfer import Transfer, TransferState
from ramp.model.instant import Instant


class Action(StrEnum):
    """What an entry did with its subject."""

    OPENED = "opened"
    """An account was opened."""
    ENTERED = "entered"
    """A transfer was entered, pending or (a deposit or refund) posted at once; or an order, in any state but posted.

    If the order is reserved, entries of its pending transfers follow at once, one a line.
    """
    SETTLED = "settled"
    """A pending transfer or a reserved order was posted or voided; entries of all transfers of the order follow."""
    COUNTERSIGNED = "countersigned"
    """The countersigned agreement of a reserved order's line arrived."""


@dataclass(frozen=True, slots=True)
class Countersignature:
    """The arrival of a countersigned agreement.

    Attributes:
        agreement_id: of the line.
        at: when it arrived.
        starts_at: start of the slot.
    """

    agreement_id: str
    at: Instant
    starts_at: Instant


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of the history; its subject is in its state then."""

    action: Action
    subject: Account | Transfer | Order | Countersignature


@dataclass(frozen=True, slots=True)
class BalanceChange:
    """The change of one account's balance by an entry, in minor units."""

    account_id: str
    posted: int
    reserved: int


def balance_changes(entry: Entry) -> tuple[BalanceChange, ...]:
    """Return the balance changes of an entry; those of `posted` sum to zero, as double entry demands."""
    transfer = entry.subject
    if not isinstance(transfer, Transfer):
        return ()
    released = transfer.amount if entry.action is Action.SETTLED else 0
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
