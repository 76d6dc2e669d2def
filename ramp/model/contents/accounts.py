"""Accounts, the bank's clock, and the keeper's orders and overview of all trading (paper section 6.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model.communicative_acts import Content, Interaction, Performative, said
from ramp.model.instant import Instant
from ramp.model.seal import BY_BANK, BY_KEEPER, BY_TRADER

ISSUING: Final = "market"
"""Kind of the account that deposits come from: its overdraft is all money that can ever exist, without a limit."""


class TransferKind(StrEnum):
    """The purpose of a transfer; a refund returns a part of a payment, or all that is left of it."""

    PAYMENT = "payment"
    REFUND = "refund"
    DEPOSIT = "deposit"


@dataclass(frozen=True, slots=True)
class StatementLine:
    """One posted transfer as its account sees it; amounts in minor units, `amount` negative for a debit."""

    transfer_id: str
    posted_at: Instant
    kind: str
    counterparty: str
    agreement_id: str
    amount: int
    balance: int

    @property
    def deposit_id(self) -> str:
        """Return the id of a deposit, which replaces an agreement's; empty for other transfers."""
        return self.agreement_id if self.kind == TransferKind.DEPOSIT else ""


@said(Performative.QUERY_REF, interaction=Interaction.QUERY, by=BY_TRADER)
@dataclass(frozen=True, slots=True)
class AccountQuery(Content):
    """QUERY_REF to the bank for one's own balance or statement (paper section 6.3, BalanceRequestBehaviour).

    Attributes:
        nonce: names the question, so that no old answer fits.
        account: must be the sender's.
        since: first instant of the statement, or None for balances only.
        until: last instant of the statement, or None for the present one.
    """

    nonce: str
    account: str
    since: Instant | None = None
    until: Instant | None = None


@said(Performative.INFORM, interaction=Interaction.QUERY, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class AccountStatement(Content):
    """INFORM by the bank to an account query; amounts in minor units."""

    nonce: str
    account: str
    balance: int
    reserved: int
    credit_limit: int
    bank_time: Instant
    lines: tuple[StatementLine, ...] = ()


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_KEEPER)
@dataclass(frozen=True, slots=True)
class DepositOrder(Content):
    """REQUEST by the keeper: credit an account out of the market's issuing account.

    Attributes:
        deposit_id: unique; the idempotency key.
        account: the account to credit.
        amount: minor units, above zero.
        memo: one line for people.
    """

    deposit_id: str
    account: str
    amount: int
    memo: str = ""


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_KEEPER)
@dataclass(frozen=True, slots=True)
class RefundOrder(Content):
    """REQUEST by the keeper: refund what is left of an agreement's payments; answered by `ChangePosted`, once.

    Attributes:
        agreement_id: of the agreement; the idempotency key.
        reason: one line for people.
    """

    agreement_id: str
    reason: str


@said(Performative.AGREE, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class DepositMade(Content):
    """AGREE by the bank: the account has been credited, once."""

    deposit_id: str
    transfer_id: str
    amount: int


@said(Performative.QUERY_REF, interaction=Interaction.QUERY, by=BY_KEEPER)
@dataclass(frozen=True, slots=True)
class OverviewQuery(Content):
    """QUERY_REF by the keeper: all trading in a period (paper section 6.3), in pages.

    Attributes:
        query_id: names the question.
        since: first instant, None for the beginning.
        until: last instant, None for the present.
        after: begin of the page: the number after the last trade of the page before.
    """

    query_id: str
    since: Instant | None = None
    until: Instant | None = None
    after: int = 0


@dataclass(frozen=True, slots=True)
class AccountLine:
    """One account in the overview; amounts in minor units."""

    account: str
    kind: str
    balance: int
    reserved: int
    credit_limit: int

    @property
    def is_limited(self) -> bool:
        """Whether its overdraft is a limit, as for all accounts but the issuing one."""
        return self.kind != ISSUING


@dataclass(frozen=True, slots=True)
class TradeLine:
    """One posted transfer in the overview; the amount in minor units; the order may be empty."""

    transfer_id: str
    posted_at: Instant
    kind: str
    debit_account: str
    credit_account: str
    agreement_id: str
    order_id: str
    amount: int

    @property
    def deposit_id(self) -> str:
        """Return the id of a deposit, which replaces an agreement's; empty for other transfers."""
        return self.agreement_id if self.kind == TransferKind.DEPOSIT else ""

    @property
    def is_end(self) -> bool:
        """Whether it refunds all that was left of an agreement's payments, which ends the agreement."""
        return self.transfer_id == f"{TransferKind.REFUND}:{self.agreement_id}"


@said(Performative.INFORM, interaction=Interaction.QUERY, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class MarketOverview(Content):
    """INFORM by the bank to the keeper: all accounts and a page of the trading.

    Attributes:
        query_id: as asked.
        bank_time: the bank's clock.
        accounts: every account; on the first page only.
        trades: in the order of posting.
        next_after: begin of the next page; 0 on the last.
    """

    query_id: str
    bank_time: Instant
    accounts: tuple[AccountLine, ...] = ()
    trades: tuple[TradeLine, ...] = ()
    next_after: int = 0


@said(Performative.QUERY_REF, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class ClockQuery(Content):
    """QUERY_REF to the bank for its time; `query_id` serves once, so that no old answer fits."""

    query_id: str


@said(Performative.INFORM, interaction=Interaction.QUERY, by=BY_BANK, any_age=True)
@dataclass(frozen=True, slots=True)
class ClockReading(Content):
    """INFORM by the bank: its clock, read between the question and this answer."""

    query_id: str
    bank_time: Instant
