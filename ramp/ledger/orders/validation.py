"""Validation of orders from the entries alone: every order is settled as a whole.

The entries of an order's transfers, one a line, follow its own entry directly, so both are compared entry by entry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ramp.ledger.account import AccountKind
from ramp.ledger.entry import (
    AccountOpened,
    AgreementCountersigned,
    Entry,
    OrderEntered,
    OrderSettled,
    TransferEntered,
    TransferSettled,
)
from ramp.ledger.orders.order import Order, OrderLine, OrderState
from ramp.ledger.transfer import Transfer, TransferKind, TransferState

_TRANSFER_STATES = {
    OrderState.RESERVED: TransferState.PENDING,
    OrderState.POSTED: TransferState.POSTED,
    OrderState.VOIDED: TransferState.VOIDED,
}


def check_orders(entries: Iterable[Entry], transfers: Sequence[Transfer]) -> list[str]:
    """Check that only reserved orders are posted, as a whole, and that every pending transfer has an order.

    Args:
        entries: all entries, in order.
        transfers: each in its last state.

    Returns:
        One sentence for each finding.
    """
    walk = _Walk()
    for entry in entries:
        walk.step(entry)
    walk.end_order()
    findings = walk.findings
    for transfer in transfers:
        order = walk.orders.get(transfer.order_id)
        if transfer.state is TransferState.PENDING and (order is None or order.state is not OrderState.RESERVED):
            findings.append(f"{transfer.transfer_id} is pending without a reserved order")
    return findings


class _Walk:
    """Goes through the entries once, and keeps the state of orders and their lines."""

    def __init__(self) -> None:
        self.findings: list[str] = []
        self.orders: dict[str, Order] = {}
        self._kinds: dict[str, AccountKind] = {}
        self._order_ids: dict[str, str] = {}  # by agreement id, of reserved lines
        self._order: Order | None = None  # its transfers must follow now
        self._due: deque[OrderLine] = deque()

    def step(self, entry: Entry) -> None:
        if isinstance(entry, TransferEntered | TransferSettled) and entry.transfer.kind is TransferKind.PAYMENT:
            self._payment(entry)
            return
        self.end_order()
        match entry:
            case AccountOpened(account):
                self._kinds[account.account_id] = account.kind
            case OrderEntered(order):
                self._entered(order)
            case OrderSettled(order):
                self._settled(order)
            case AgreementCountersigned():
                self._countersigned(entry)

    def end_order(self) -> None:
        """Report missing transfers of the current order."""
        if self._order is not None and self._due:
            missing = ", ".join(line.agreement_id for line in self._due)
            self._find(f"order {self._order.order_id} is {self._order.state} without the payment of {missing}")
        self._order = None
        self._due.clear()

    def _find(self, sentence: str) -> None:
        self.findings.append(sentence)

    def _payment(self, entry: TransferEntered | TransferSettled) -> None:
        transfer = entry.transfer
        if not self._due or self._order is None:
            self.end_order()
            self._find(f"{transfer.transfer_id} is {transfer.state} without an order in that state")
            return
        line, order = self._due.popleft(), self._order
        said = (order.order_id, line.agreement_id, order.user, line.resource, line.cost, order.settled_at)
        done = (
            transfer.order_id,
            transfer.agreement_id,
            transfer.debit_account,
            transfer.credit_account,
            transfer.amount,
            transfer.settled_at,
        )
        right_entry = isinstance(entry, TransferEntered) == (order.state is OrderState.RESERVED)
        if said != done or not right_entry or transfer.state is not _TRANSFER_STATES[order.state]:
            self._find(
                f"order {order.order_id} is {order.state}, but its {line.agreement_id} is not: "
                f"{transfer.transfer_id} is {transfer.state}, or differs from the order"
            )

    def _entered(self, order: Order) -> None:
        name = f"order {order.order_id}"
        if order.order_id in self.orders:
            self._find(f"{name} is entered twice")
        if order.state is OrderState.POSTED:
            self._find(f"{name} is entered as posted")
        if order.countersigned:
            self._find(f"{name} is entered with countersigned agreements")
        if (order.settled_at is None) != (order.state is OrderState.RESERVED):
            self._find(f"{name} is entered as {order.state} with the end {order.settled_at}")
        self.orders[order.order_id] = order
        if order.state is not OrderState.RESERVED:
            return
        if not order.lines:
            self._find(f"{name} is reserved without lines")
        if order.entered_at >= order.valid_until:
            self._find(f"{name} is reserved after its deadline")
        parties = [(order.user, AccountKind.USER), *((line.resource, AccountKind.RESOURCE) for line in order.lines)]
        self.findings.extend(
            f"{name} is reserved with {account_id}, which is not a {kind} account"
            for account_id, kind in parties
            if self._kinds.get(account_id) is not kind
        )
        self._order_ids.update((line.agreement_id, order.order_id) for line in order.lines)
        self._expect(order)

    def _settled(self, order: Order) -> None:
        name = f"order {order.order_id}"
        before = self.orders.get(order.order_id)
        self.orders[order.order_id] = order
        if before is None or before.state is not OrderState.RESERVED:
            self._find(f"{name} is settled as {order.state} but was {before.state if before else 'never entered'}")
            return
        settled = replace(before, state=order.state, settled_at=order.settled_at, code=order.code, reason=order.reason)
        if order != settled:
            self._find(f"{name} is settled on other terms than it was entered on")
        if order.state not in {OrderState.POSTED, OrderState.VOIDED} or order.settled_at is None:
            self._find(f"{name} is settled as {order.state} at {order.settled_at}")
            return
        if order.state is OrderState.POSTED:
            if len(before.countersigned) < len(order.lines):
                self._find(f"{name} is posted with {len(before.countersigned)} of {len(order.lines)} countersigned")
            if order.settled_at >= order.valid_until:
                self._find(f"{name} is posted after its deadline")
        self._expect(order)

    def _expect(self, order: Order) -> None:
        self._order = order
        self._due.extend(order.lines)

    def _countersigned(self, entry: AgreementCountersigned) -> None:
        order_id = self._order_ids.get(entry.agreement_id)
        order = None if order_id is None else self.orders[order_id]
        if order is None or order.state is not OrderState.RESERVED or entry.agreement_id in order.countersigned:
            self._find(f"{entry.agreement_id} is countersigned, but no reserved order awaits it")
            return
        if entry.at >= order.valid_until:
            self._find(f"{entry.agreement_id} is countersigned after the deadline of order {order.order_id}")
        marked = {*order.countersigned, entry.agreement_id}
        in_order = tuple(line.agreement_id for line in order.lines if line.agreement_id in marked)
        self.orders[order.order_id] = replace(order, countersigned=in_order)
