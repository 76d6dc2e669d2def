"""A ledger's answers to the bank: orders, refunds, deposits and accounts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.model.contents import AccountLine, OrderLine, PaymentMade, RefundMade, StatementLine, TradeLine
from ramp.model.instant import Instant


class OrderFate(StrEnum):
    """The state of an order in the ledger."""

    RESERVED = "reserved"
    POSTED = "posted"
    VOIDED = "voided"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class OrderStanding:
    """The present state of an order.

    Attributes:
        lines: one an agreement; empty for a void remembered before its order came.
        valid_until: by the bank's clock.
        code: why it is void or refused.
        detail: the same as a sentence.
        transfers: payments of a posted order, in the order of the lines.
        refunds: of its payments so far.
        awaited: lines without their countersigned agreement.
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
    """The ledger's answer about an order; None for an unknown one, with the code of its refusal."""

    call_id: str
    order: OrderStanding | None
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OrdersSwept:
    """The ledger's answer to `SweepOrders`: orders voided now, and those still reserved."""

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
