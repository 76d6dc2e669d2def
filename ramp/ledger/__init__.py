"""Double-entry bookkeeping in integer minor units, pure.

`interface.Ledger` has the operations, `rules` and `order_rules` what they check, `book.Book` keeps them in memory,
`validation` and `order_validation` recompute every invariant, `text` is the printed form, `statement` the account
statement, `overview` that of all trading.
"""
