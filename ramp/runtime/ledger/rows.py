"""Rows of the ledger's tables, made from what the ledger keeps and read back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from typing import Any

from sqlalchemy import Row

from ramp.ledger.account import Account, AccountKind
from ramp.ledger.entry import (
    AccountClosed,
    AccountOpened,
    AgreementCountersigned,
    Entry,
    OrderEntered,
    OrderSettled,
    TransferEntered,
    TransferSettled,
)
from ramp.ledger.orders.order import Order, OrderLine, OrderState
from ramp.ledger.transfer import Transfer, TransferKind, transfer_id_of
from ramp.runtime.ledger.schema import Action


def account_of(row: Row[Any]) -> Account:
    """An account of its row."""
    return Account(row.account_id, AccountKind(row.kind), row.credit_limit, row.opened_at, row.closed_at)


def transfer_of(row: Row[Any]) -> Transfer:
    """A transfer of its row."""
    return Transfer(
        transfer_id=row.transfer_id,
        debit_account=row.debit_account,
        credit_account=row.credit_account,
        amount=row.amount,
        agreement_id=row.agreement_id,
        kind=TransferKind(row.kind),
        entered_at=row.entered_at,
        posted_at=row.posted_at,
        voided_at=row.voided_at,
        reverses=row.reverses,
        memo=row.memo,
        order_id=row.order_id or "",
    )


def transfer_row(transfer: Transfer) -> dict[str, Any]:
    """The row of a transfer as it is entered."""
    return asdict(transfer) | {"kind": str(transfer.kind), "order_id": transfer.order_id or None}


def transfer_end(transfer: Transfer) -> dict[str, Any]:
    """The parameters that settle a transfer."""
    return {
        "wanted_id": transfer.transfer_id,
        "posted_then": transfer.posted_at,
        "voided_then": transfer.voided_at,
    }


def orders_of(rows: Iterable[Row[Any]]) -> list[Order]:
    """Orders of rows of `_ORDERS`, in which those of one order follow each other by line number."""
    return [_order_of(list(of_order)) for _, of_order in groupby(rows, key=lambda row: row.order_id)]


def _order_of(rows: list[Row[Any]]) -> Order:
    first = rows[0]
    lines = [row for row in rows if row.line_number is not None]
    return Order(
        order_id=first.order_id,
        user=first.user_account,
        lines=tuple(
            OrderLine(row.agreement_id, row.resource, row.cost, row.offer_id, row.amends, row.becomes) for row in lines
        ),
        valid_until=first.valid_until,
        entered_at=first.entered_at,
        state=OrderState(first.state),
        settled_at=first.settled_at,
        code=first.code,
        reason=first.reason,
        countersigned=tuple(row.agreement_id for row in lines if row.countersigned_at is not None),
    )


def order_row(order: Order) -> dict[str, Any]:
    """The row of an order as it is entered."""
    return {
        "order_id": order.order_id,
        "user_account": order.user,
        "valid_until": order.valid_until,
        "entered_at": order.entered_at,
        "state": str(order.state),
        "settled_at": order.settled_at,
        "code": order.code,
        "reason": order.reason,
    }


def order_end(order: Order) -> dict[str, Any]:
    """The parameters that settle an order."""
    return {
        "wanted_id": order.order_id,
        "state_then": str(order.state),
        "settled_at_then": order.settled_at,
        "code_then": order.code,
        "reason_then": order.reason,
    }


def line_rows(order: Order) -> list[dict[str, Any]]:
    """The rows of an order's lines."""
    return [
        {"order_id": order.order_id, "line_number": number, **asdict(line)}
        for number, line in enumerate(order.lines, start=1)
    ]


def line_key(agreement_id: str) -> dict[str, Any]:
    """The parameters that find the line of an agreement that has a payment."""
    return {"wanted_id": transfer_id_of(agreement_id, TransferKind.PAYMENT), "wanted_agreement": agreement_id}


def entry_row(entry: Entry) -> dict[str, Any]:
    """What an entry did and to what, as `entries` has it."""
    row: dict[str, Any] = dict.fromkeys(("account_id", "transfer_id", "order_id"))
    match entry:
        case AccountOpened(account):
            return row | {"action": str(Action.OPENED), "account_id": account.account_id}
        case AccountClosed(account):
            return row | {"action": str(Action.CLOSED), "account_id": account.account_id}
        case TransferEntered(transfer):
            return row | {"action": str(Action.ENTERED), "transfer_id": transfer.transfer_id}
        case TransferSettled(transfer):
            return row | {"action": str(Action.SETTLED), "transfer_id": transfer.transfer_id}
        case OrderEntered(order):
            return row | {"action": str(Action.ENTERED), "order_id": order.order_id}
        case OrderSettled(order):
            return row | {"action": str(Action.SETTLED), "order_id": order.order_id}
        case AgreementCountersigned(agreement_id):
            payment = transfer_id_of(agreement_id, TransferKind.PAYMENT)
            return row | {"action": str(Action.COUNTERSIGNED), "transfer_id": payment}
