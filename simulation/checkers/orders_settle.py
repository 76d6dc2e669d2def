"""Money set aside does not outlive its deadline, nothing is posted later, and at the end none is left."""

from __future__ import annotations

from simulation.market.actors import BANK
from simulation.market.market_view import Checker, MarketView, posted_transfers


class OrdersSettle(Checker):
    """Looks at the open orders of the bank's ledger."""

    name = "orders_settle"

    def on_step(self, view: MarketView) -> None:
        """A bank that is up voids what has run out at its deadline, not later."""
        if not view.bank_is_up:
            return
        now = view.time_of(BANK)
        late = [order.order_id for order in view.ledger.open_orders() if order.valid_until < now]
        if late:
            raise self._violated(f"{late} are still reserved after their deadline")

    def at_end(self, view: MarketView) -> None:
        """At rest nothing is set aside any more."""
        waiting = [order.order_id for order in view.ledger.open_orders()]
        if waiting:
            raise self._violated(f"still set aside: orders {waiting}")
        self.at_stop(view)

    def at_stop(self, view: MarketView) -> None:
        """Nothing was ever posted after its deadline."""
        for order_id in {transfer.order_id for transfer in posted_transfers(view) if transfer.order_id}:
            order = view.ledger.order(order_id)
            if order is not None and order.settled_at is not None and order.settled_at >= order.valid_until:
                late = order.settled_at - order.valid_until
                raise self._violated(f"{order_id} was posted {late} us after its deadline")
