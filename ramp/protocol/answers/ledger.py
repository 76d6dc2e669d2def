"""What a ledger answers to a bank: how orders stand, what was paid back or put in, and what is in the accounts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.model.contents import AccountLine, OrderLine, PaymentMade, RefundMade, StatementLine, TradeLine
from ramp.model.instant import Instant


class OrderFate(StrEnum):
    """How an order stands in the ledger."""

    RESERVED = "reserved"
    POSTED = "posted"
    VOIDED = "voided"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class OrderStanding:
    """An order as the ledger has it.

    Attributes:
        order_id: which.
        user: whose money.
        lines: one an agreement; none of a void that was remembered before its order came.
        valid_until: by the bank's clock.
        fate: reserved, posted, voided or refused.
        code: why it is void or refused.
        detail: the same as a sentence.
        transfers: the payments of a posted order, in the order of the lines.
        refunds: what has been given back of it since.
        awaited: the lines whose countersigned agreement is not there.
    """

    order_id: str
    user: str
    lines: tuple[OrderLine, ...]
    valid_until: Instant
    fate: OrderFate
    code: str = ""
    detail: str = ""
    transfers: tuple[PaymentMade, ...] = ()
    refunds: tuple[RefundMade, ...] = ()
    awaited: tuple[OrderLine, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderStands:
    """The ledger's answer about an order; None where it knows none, with the code of its refusal."""

    call_id: str
    order: OrderStanding | None
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OrdersSwept:
    """The ledger's answer to `SweepOrders`.

    Attributes:
        voided: orders that have been voided now.
        reserved: those that are still reserved.
    """

    voided: tuple[OrderStanding, ...]
    reserved: tuple[OrderStanding, ...]


@dataclass(frozen=True, slots=True)
class RefundPosted:
    """The ledger's answer to `PostRefund`."""

    call_id: str
    agreement_id: str
    transfer_id: str
    amount: int
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DepositPosted:
    """The ledger's answer to `PostDeposit`."""

    call_id: str
    deposit_id: str
    transfer_id: str
    amount: int
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OverviewLookedUp:
    """The ledger's answer to `LookUpOverview`."""

    call_id: str
    accounts: tuple[AccountLine, ...]
    trades: tuple[TradeLine, ...]
    next_after: int


@dataclass(frozen=True, slots=True)
class AccountLookedUp:
    """The ledger's answer to `LookUpAccount`; amounts in minor units."""

    call_id: str
    balance: int
    reserved: int
    credit_limit: int
    lines: tuple[StatementLine, ...]
    code: str = ""
    detail: str = ""


LedgerAnswer = OrderStands | OrdersSwept | RefundPosted | DepositPosted | AccountLookedUp | OverviewLookedUp
