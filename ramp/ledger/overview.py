"""The overview of all trading (paper section 6.3): balances and posted transfers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.ledger.account import Balance
from ramp.ledger.transfer import Transfer, agreement_of
from ramp.model.contents import TradeLine

OVERVIEW_LIMIT_MAX: Final = 10_000
"""Maximum transfers on one page."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Present balances, and one page of the transfers posted in a period.

    Attributes:
        balances: of all accounts, by account id.
        trades: posted transfers of this page, in order of posting.
        next_after: the next page's `after`, or None on the last page.
    """

    balances: tuple[Balance, ...]
    trades: tuple[TradeLine, ...]
    next_after: int | None


def trade_of(transfer: Transfer) -> TradeLine:
    """Return a posted transfer for the overview."""
    assert transfer.posted_at is not None
    return TradeLine(
        transfer_id=transfer.transfer_id,
        posted_at=transfer.posted_at,
        kind=str(transfer.kind),
        debit_account=transfer.debit_account,
        credit_account=transfer.credit_account,
        agreement_id=agreement_of(transfer),
        order_id=transfer.order_id,
        amount=transfer.amount,
    )
