"""Pure double-entry bookkeeping in integer minor units.

`interface.Ledger` has the operations; `payment_rules`, `orders.order_rules` and `amendments.amendment_rules` their
checks. `book.Book` keeps entries in memory. `validation` and `orders.validation` recompute every invariant. `statement`
is one account's statement, `overview` that of all trading.
"""
