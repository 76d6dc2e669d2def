"""Money set aside does not outlive its deadline, and at the end none is left; the audit of the ledger does the sums."""

from __future__ import annotations

from simulation.checkers.observation import Checker, MarketView


class OrdersSettle(Checker):
    """Looks at the open orders of the bank's ledger."""

    name = "orders_settle"

    def on_step(self, view: MarketView) -> None:
        """A bank that is up voids what has run out at its deadline, not later."""
        deadline = view.ledger.next_deadline()
        if deadline is not None and deadline < view.now and view.bank_is_up:
            late = [order.order_id for order in view.ledger.open_orders() if order.valid_until < view.now]
            raise self._violated(f"{late} are still reserved after their deadline")

    def at_end(self, view: MarketView) -> None:
        """At rest nothing is set aside any more."""
        waiting = [order.order_id for order in view.ledger.open_orders()]
        reserved = [balance.account.account_id for balance in view.ledger.balances() if balance.reserved]
        if waiting or reserved:
            raise self._violated(f"still set aside: orders {waiting}, accounts {reserved}")
