"""Accounts of the market's bank and their balances (paper sections 6.3 and 6.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model.instant import Instant


class AccountKind(StrEnum):
    """The kind of an account's owner."""

    USER = "user"
    RESOURCE = "resource"
    MARKET = "market"


@dataclass(frozen=True, slots=True)
class Account:
    """One party's account.

    Attributes:
        account_id: the party's name in the market, without white space or double quotes.
        credit_limit: overdraft in minor units, not negative: how far the balance less reservations may go below zero.
    """

    account_id: str
    kind: AccountKind
    credit_limit: int
    opened_at: Instant


@dataclass(frozen=True, slots=True)
class Balance:
    """Balance of an account, in minor units.

    Attributes:
        posted: credits less debits of posted transfers; negative when overdrawn.
        reserved: total of the pending transfers that will debit the account (money in escrow).
    """

    account: Account
    posted: int
    reserved: int

    @property
    def credit_limit(self) -> int:
        """Overdraft in minor units."""
        return self.account.credit_limit

    @property
    def available(self) -> int:
        """Amount that can still be spent, including the overdraft, in minor units."""
        return self.posted - self.reserved + self.account.credit_limit


ISSUE_LIMIT: Final = 10**18
"""Overdraft of the issuing account in minor units: all money that can ever exist."""

ISSUING_ACCOUNT: Final = "market"
"""The account debited by deposits: its balance is minus all money in circulation, so all balances sum to zero."""

ISSUER: Final = Account(ISSUING_ACCOUNT, AccountKind.MARKET, ISSUE_LIMIT, 0)
"""The issuing account as every ledger opens it first."""
