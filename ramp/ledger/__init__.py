"""Pure double-entry bookkeeping in integer minor units.

`interface.Ledger` has the operations; `payment_rules`, `order_rules` and `change_rules` their checks. `book.Book`
is the storage in memory. `audit` recomputes every invariant from a `snapshot`. `statement` is one account's statement,
`overview` that of all trading.
"""
