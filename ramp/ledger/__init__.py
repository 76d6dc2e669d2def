"""Pure double-entry bookkeeping in integer minor units.

`interface.Ledger` has the operations; `payment_rules`, `orders.order_rules` and `change_rules` their checks.
`book.Book` is the storage in memory. `audit` checks every invariant over a `snapshot`.
"""
