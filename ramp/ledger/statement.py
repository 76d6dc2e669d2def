"""Account statements: posted transfers in order with the balance after each, and pending transfers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramp.ledger.account import Account, Balance
from ramp.ledger.transfer import Transfer, agreement_of
from ramp.model.contents import StatementLine
from ramp.model.instant import Instant


@dataclass(frozen=True, slots=True)
class Statement:
    """The transfers of one account in a period; amounts in minor units.

    Attributes:
        since: first instant, or None for the beginning.
        until: last instant (included), or None for everything so far.
        opening_balance: posted balance before the first line.
        lines: posted transfers, oldest first; `amount` is negative for a debit, `balance` is the balance after it.
        closing_balance: posted balance after the last line.
        pending: transfers from or to the account that are pending now, whatever the period.
    """

    account: Account
    since: Instant | None
    until: Instant | None
    opening_balance: int
    lines: tuple[StatementLine, ...]
    closing_balance: int
    pending: tuple[Transfer, ...] = ()


def make_statement(
    balance: Balance,
    opening_balance: int,
    posted: Sequence[Transfer],
    pending: Sequence[Transfer],
    since: Instant | None,
    until: Instant | None,
) -> Statement:
    """Return a statement; `posted` are the account's transfers from `since` to `until`, in order."""
    account_id = balance.account.account_id
    running = opening_balance
    lines = []
    for transfer in posted:
        debited = transfer.debit_account == account_id
        amount = -transfer.amount if debited else transfer.amount
        running += amount
        assert transfer.posted_at is not None
        lines.append(
            StatementLine(
                transfer_id=transfer.transfer_id,
                posted_at=transfer.posted_at,
                kind=str(transfer.kind),
                counterparty=transfer.credit_account if debited else transfer.debit_account,
                agreement_id=agreement_of(transfer),
                amount=amount,
                balance=running,
            )
        )
    return Statement(balance.account, since, until, opening_balance, tuple(lines), running, tuple(pending))
