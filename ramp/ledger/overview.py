"""The overview of all trading (paper section 6.3): balances, posted transfers and totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.ledger.account import Balance
from ramp.ledger.transfer import Transfer, TransferKind, agreement_of, transfer_id_of
from ramp.model.instant import Instant

OVERVIEW_LIMIT_MAX: Final = 10_000
"""Maximum transfers on one page."""


@dataclass(frozen=True, slots=True)
class Trade:
    """One posted transfer.

    Attributes:
        agreement_id: its agreement, or a deposit's reference.
        order_id: empty for a deposit.
        amount: minor units.
    """

    transfer_id: str
    kind: TransferKind
    agreement_id: str
    order_id: str
    debit_account: str
    credit_account: str
    amount: int
    posted_at: Instant

    @property
    def is_end(self) -> bool:
        """Whether it refunds all that was left of an agreement's payments, which ends the agreement."""
        return self.kind is TransferKind.REFUND and self.transfer_id == transfer_id_of(self.agreement_id, self.kind)


@dataclass(frozen=True, slots=True)
class Total:
    """Number of posted transfers of a kind, and their sum in minor units."""

    count: int = 0
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Overview:
    """Present balances, and one page of the transfers posted in a period.

    Attributes:
        balances: of all accounts, by account id.
        trades: posted transfers of this page, in order of posting.
        next_after: the next page's `after`, or None on the last page.
        payments: of the whole period, like the other totals.
    """

    balances: tuple[Balance, ...]
    trades: tuple[Trade, ...]
    next_after: int | None
    payments: Total = Total()
    refunds: Total = Total()
    deposits: Total = Total()


def trade_of(transfer: Transfer) -> Trade:
    """Return a posted transfer for the overview."""
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
