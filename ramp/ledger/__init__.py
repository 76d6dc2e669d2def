"""Double-entry bookkeeping in integer minor units, pure.

`interface.Ledger` has the operations, `rules` and `orders.rules` what they check, `book.Book` keeps entries in memory,
`validation` and `orders.validation` recompute every invariant, `text` is the printed form, `statement` the account
statement, `overview` that of all trading.
"""
