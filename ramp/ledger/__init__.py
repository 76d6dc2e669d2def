"""Double-entry bookkeeping in integer minor units, pure.

`interface.Ledger` has the operations, `rules` what they check, `book.Book` keeps them in memory, `validation`
recomputes every invariant, `text` is the printed form, `statement` the account statement.
"""
