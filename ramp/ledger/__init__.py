"""Pure double-entry bookkeeping in integer minor units.

`interface.Ledger` has the operations; `payment_rules`, `order_rules` and `change_rules` their checks. `audit` checks
every invariant over a `snapshot`.
"""
