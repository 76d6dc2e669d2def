"""The overview of all trading (paper section 6.3): every balance, every posted transfer, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.ledger.account import Balance
from ramp.ledger.transfer import Transfer, TransferKind, agreement_of
from ramp.model.instant import Instant

OVERVIEW_LIMIT_MAX: Final = 10_000
"""Most transfers on one page."""


@dataclass(frozen=True, slots=True)
class Trade:
    """One posted transfer.

    Attributes:
        transfer_id: the transfer.
        kind: payment, refund, deposit or rebate.
        agreement_id: its agreement, or a deposit's reference.
        order_id: the order that it belongs to; empty for a deposit.
        debit_account: who gave.
        credit_account: who got.
        amount: minor units.
        posted_at: when the money moved.
    """

    transfer_id: str
    kind: TransferKind
    agreement_id: str
    order_id: str
    debit_account: str
    credit_account: str
    amount: int
    posted_at: Instant


@dataclass(frozen=True, slots=True)
class Total:
    """How many transfers of a kind were posted, and their sum in minor units."""

    count: int = 0
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Overview:
    """Balances now, and one page of what was posted in a period.

    Attributes:
        balances: of all accounts, by account id.
        trades: posted transfers of this page, in order of posting.
        next_after: what to ask the next page with, or None if this is the last one.
        payments: of the whole period.
        refunds: of the whole period.
        deposits: of the whole period.
        rebates: what amendments have given back, of the whole period.
    """

    balances: tuple[Balance, ...]
    trades: tuple[Trade, ...]
    next_after: int | None
    payments: Total = Total()
    refunds: Total = Total()
    deposits: Total = Total()
    rebates: Total = Total()


def trade_of(transfer: Transfer) -> Trade:
    """A posted transfer as the overview shows it."""
    assert transfer.posted_at is not None
    return Trade(
        transfer_id=transfer.transfer_id,
        kind=transfer.kind,
        agreement_id=agreement_of(transfer),
        order_id=transfer.order_id,
        debit_account=transfer.debit_account,
        credit_account=transfer.credit_account,
        amount=transfer.amount,
        posted_at=transfer.posted_at,
    )
