"""`Ledger`: every operation of the bank's ledger, for any storage.

The operations are written once, over `Records`, as rules (`ramp.ledger.payment_rules`, `ramp.ledger.order_rules` and
`ramp.ledger.change_rules`). A storage (`ramp.runtime.ledger.store.LedgerStore` in SQLite or PostgreSQL, a book in
memory in the simulator) says how one unit of work reads and writes. Amounts are integers of minor units, times integers
of microseconds since the Unix epoch. A refusal is a `LedgerRefusal` with a code of `RefusalCode`, and changes nothing.
Only deposits, orders and refunds move money.

`at` is the present time. `evidence` is the signed message that justifies the change; it is stored in the same unit of
work, and only if something changed.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from ramp.ledger import change_rules, order_rules, payment_rules
from ramp.ledger.audit import audit
from ramp.ledger.entry import Balance, DecidedChange, Evidence, Order, Transfer
from ramp.ledger.records import Records, Snapshot
from ramp.model.contents import TransferKind
from ramp.model.instant import Instant

Answer = TypeVar("Answer")
Terms = ParamSpec("Terms")


def _operation(
    rule: Callable[Concatenate[Records, Terms], Answer], *, writes: bool = True
) -> Callable[Concatenate[Ledger, Terms], Answer]:
    """Make an operation of a rule."""

    @functools.wraps(rule)
    def operation(ledger: Ledger, /, *args: Terms.args, **kwargs: Terms.kwargs) -> Answer:
        run = ledger.write if writes else ledger.read
        return run(lambda records: rule(records, *args, **kwargs))

    return operation


class Ledger(ABC):
    """Double-entry ledger of the market: accounts, deposits, orders, refunds, evidence.

    Every operation is one indivisible unit of work and idempotent: repeated on the same terms it gives the same answer
    and changes nothing; the same key on other terms is refused (`duplicate_differs`).
    """

    @abstractmethod
    def read(self, work: Callable[[Records], Answer]) -> Answer:
        """Run a unit of work that only reads, on one consistent state."""

    @abstractmethod
    def write(self, work: Callable[[Records], Answer]) -> Answer:
        """Run a unit of work in isolation: durably and completely, or not at all if it raises."""

    open_account = _operation(payment_rules.open_account)
    deposit = _operation(payment_rules.deposit)
    reserve_order = _operation(order_rules.reserve_order)
    countersign = _operation(order_rules.countersign)
    void_order = _operation(order_rules.void_order)
    post_change = _operation(order_rules.post_change)
    void_change = _operation(change_rules.void_change)
    overview = _operation(payment_rules.overview, writes=False)
    balance = _operation(payment_rules.known_balance, writes=False)
    statement = _operation(payment_rules.statement, writes=False)

    def expire_orders(self, at: Instant) -> tuple[Order, ...]:
        """Void every reserved order with a deadline at or before `at`; return them in order of entry."""
        # Asked often and mostly for nothing: so it is looked for first, without keeping any writer waiting.
        if not self.read(lambda records: records.open_orders(due=at)):
            return ()
        return self.write(lambda records: order_rules.expire_orders(records, at))

    def changes(self, agreement_id: str) -> tuple[DecidedChange, ...]:
        """Return the decided changes of an agreement, by number; the one that has ended it comes first."""
        return self.read(lambda records: records.changes(agreement_id))

    def order(self, order_id: str) -> Order | None:
        """Return the order of this id as last entered, or None."""
        return self.read(lambda records: records.order(order_id))

    def order_of(self, agreement_id: str) -> Order | None:
        """Return the order that reserved, posted or voided the payment of an agreement, or None."""
        return self.read(lambda records: records.order_of(agreement_id))

    def open_orders(self, user: str | None = None) -> tuple[Order, ...]:
        """Return the reserved orders of one user or of all users, in order of entry."""
        return self.read(lambda records: tuple(records.open_orders(user)))

    def evidence(self, reference: str) -> tuple[Evidence, ...]:
        """Return the signed messages about an order, agreement or deposit, oldest first."""
        return self.read(lambda records: tuple(records.evidence(reference)))

    def transfer(self, agreement_id: str, kind: TransferKind = TransferKind.PAYMENT) -> Transfer | None:
        """Return the payment, refund or (by its reference) deposit of an agreement, or None."""
        return self.read(lambda records: records.transfer(agreement_id, kind))

    def balances(self) -> tuple[Balance, ...]:
        """Return the balances of all accounts by account id; posted amounts sum to zero."""
        return self.read(lambda records: tuple(balance for _, balance in sorted(records.balances().items())))

    def snapshot(self) -> Snapshot:
        """Return all rows of one consistent state."""
        return self.read(lambda records: records.snapshot())

    def audit(self) -> list[str]:
        """Recompute everything from the rows; return one sentence for each broken invariant."""
        return audit(self.snapshot())
