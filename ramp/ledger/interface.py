"""`Ledger`: every operation of the bank's ledger, for any storage.

The operations are written once, over `Records`; a storage (`ramp.ledger.book.Book` in memory,
`ramp.runtime.ledger.store.LedgerStore` in SQLite or PostgreSQL) says how one unit of work reads and writes. Amounts are
integers of minor units, times integers of microseconds since the Unix epoch. A refusal is a `LedgerRefusal` with a code
of `RefusalCode`, and changes nothing. Only deposits, orders and refunds move money.

`at` is the present time. `evidence` is the signed message that justifies the change; it is stored in the same unit of
work, and only if something changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeVar

from ramp.ledger import change_rules, payment_rules
from ramp.ledger.account import Account, AccountKind, Balance
from ramp.ledger.audit import audit
from ramp.ledger.contract_change import ChangeTerms, DecidedChange
from ramp.ledger.evidence import Evidence, EvidenceKind
from ramp.ledger.orders import order_rules
from ramp.ledger.orders.order import Order, RememberedVoid
from ramp.ledger.overview import Overview
from ramp.ledger.records import Records
from ramp.ledger.snapshot import Snapshot
from ramp.ledger.transfer import Transfer
from ramp.model.contents import OrderLine, OrderState, StatementLine, TransferKind
from ramp.model.instant import Instant

Answer = TypeVar("Answer")


class Ledger(ABC):
    """Double-entry ledger of the market: accounts, deposits, orders, refunds, evidence, certificates.

    Every operation is one indivisible unit of work and idempotent: repeated on the same terms it gives the same answer
    and changes nothing; the same key on other terms is refused (`duplicate_differs`).
    """

    @abstractmethod
    def _read(self, work: Callable[[Records], Answer]) -> Answer:
        """Run a unit of work that only reads, on one consistent state."""

    @abstractmethod
    def _write(self, work: Callable[[Records], Answer]) -> Answer:
        """Run a unit of work in isolation: durably and completely, or not at all if it raises."""

    def open_account(self, account_id: str, kind: AccountKind, *, at: Instant, credit_limit: int = 0) -> Account:
        """Open an account.

        Raises:
            LedgerRefusal: `duplicate_differs`, `malformed_value`, `wrong_account` (a resource with an overdraft).
        """
        account = Account(account_id, kind, credit_limit, at)
        return self._write(lambda records: payment_rules.open_account(records, account))

    def deposit(
        self, deposit_id: str, account_id: str, amount: int, *, at: Instant, memo: str = "", evidence: str = ""
    ) -> Transfer:
        """Credit a user's account with new money from the issuing account; `deposit_id` is the idempotency key.

        Raises:
            LedgerRefusal: `unknown_account`, `wrong_account`, `amount_not_positive`, `duplicate_differs`, ...
        """
        return self._write(
            lambda records: payment_rules.deposit(records, deposit_id, account_id, amount, at, memo, evidence)
        )

    def reserve_order(
        self,
        order_id: str,
        user: str,
        lines: Iterable[OrderLine],
        valid_until: Instant,
        *,
        at: Instant,
        evidence: str = "",
    ) -> Order:
        """Reserve the money of several agreements in escrow, all or nothing.

        An order that cannot be reserved is entered as refused for good, with a code, and returned:
        `insufficient_funds`, `unknown_account`, `wrong_account`, `agreement_in_use`, `no_lines`, `expired`,
        `malformed_value` (an agreement id with the mark of amendments), and for an addition to a slot
        `unknown_transfer`, `not_posted`, `no_agreement`, `refunded`, `out_of_order` or `other_state`. A refused order
        does not use its agreement ids up. An order whose void came first is entered as voided. A repeated call returns
        the order in its present state.

        Args:
            order_id: the idempotency key.
            user: the account that will pay, of kind user.
            lines: at most `ORDER_LINES_MAX`; resources are accounts of kind resource.
            valid_until: first instant at which an unposted order is void.
            at: now.
            evidence: the user's signed order.

        Raises:
            LedgerRefusal: `duplicate_differs` (other user, lines or deadline), `malformed_value`,
                `amount_not_positive`, `amount_too_large`.
        """
        wanted = Order(order_id, user, tuple(lines), valid_until, at, OrderState.RESERVED)
        return self._write(lambda records: order_rules.reserve_order(records, wanted, evidence))

    def countersign(self, agreement_id: str, *, at: Instant, starts_at: Instant, evidence: str = "") -> Order:
        """Record a countersigned agreement; the last one of an order posts all its lines.

        At or after the order's deadline it is voided instead (`expired`). A settled or refused order stays unchanged.
        `starts_at` is the start of the agreement's slot.

        Raises:
            LedgerRefusal: `unknown_transfer` if no order has the agreement.
        """
        return self._write(lambda records: order_rules.countersign(records, agreement_id, at, starts_at, evidence))

    def void_order(
        self, order_id: str, user: str, valid_until: Instant, *, at: Instant, code: str, reason: str, evidence: str = ""
    ) -> Order:
        """Void an order with all its lines; a posted, voided or refused order stays unchanged.

        The void of an unknown order is remembered until `valid_until`, the order's deadline, and voids the order on
        arrival. This requires that `user` has an account and `valid_until` is at most `VOID_REMEMBERED_MAX` ahead;
        else nothing is entered.

        Args:
            order_id: which.
            user: of the order.
            valid_until: the order's deadline.
            at: now.
            code: machine-readable reason.
            reason: the sentence for people.
            evidence: the user's signed void.

        Returns:
            The order in its new state; for an unknown order, a voided one without lines.

        Raises:
            LedgerRefusal: `unknown_order` if the order is another user's.
        """
        void = RememberedVoid(order_id, user, valid_until, at, code, reason, evidence)
        return self._write(lambda records: order_rules.void_order(records, void))

    def post_change(self, terms: ChangeTerms, *, at: Instant, evidence: str = "") -> DecidedChange:
        """Return money for a change of an agreement, once (section 5.1.2); an earlier decision stays.

        A reduction returns its amount, or is void for good with a code `expired`, `refunded`, `out_of_order`,
        `other_state` or `more_than_paid`, or that of an earlier void. A terminal change returns all that is left of
        the agreement's payments, and whatever is not posted by then never will be. The buyer alone ends an agreement
        only before its slot begins. A seller's failure before the payment voids the order; the answer then has the
        order's code (`resource_failed`, or that of an earlier end).

        Args:
            terms: what is wanted, and on whose grounds.
            at: now.
            evidence: the change with its signatures, or the sealed message.

        Raises:
            LedgerRefusal: `no_agreement` for an addition, `unknown_transfer` (no payment, or between other parties),
                `not_posted`, `started`, `duplicate_differs`, `malformed_value`, `amount_not_positive`,
                `amount_too_large`; nothing is decided then.
        """
        return self._write(lambda records: order_rules.post_change(records, terms, at, evidence))

    def void_change(
        self, agreement_id: str, number: int, user: str, *, at: Instant, evidence: str = ""
    ) -> DecidedChange:
        """Void an unposted change of size, known or not, for the user who has paid; an earlier decision stays.

        Raises:
            LedgerRefusal: `no_agreement`, `unknown_transfer`, `not_posted`, `malformed_value`.
        """
        return self._write(lambda records: change_rules.void_change(records, agreement_id, number, user, at, evidence))

    def changes(self, agreement_id: str) -> tuple[DecidedChange, ...]:
        """Return the decided changes of an agreement, by number; the one that has ended it comes first."""
        return self._read(lambda records: records.changes(agreement_id))

    def expire_orders(self, at: Instant) -> tuple[Order, ...]:
        """Void every reserved order with a deadline at or before `at`; return them in order of entry."""
        # Asked often and mostly for nothing: so it is looked for first, without keeping any writer waiting.
        if not self._read(lambda records: records.open_orders(due=at)):
            return ()
        return self._write(lambda records: order_rules.expire_orders(records, at))

    def order(self, order_id: str) -> Order | None:
        """Return the order of this id as last entered, or None; remembered voids do not count."""
        return self._read(lambda records: records.order(order_id))

    def order_of(self, agreement_id: str) -> Order | None:
        """Return the order that reserved, posted or voided the payment of an agreement, or None."""
        return self._read(lambda records: records.order_of(agreement_id))

    def open_orders(self, user: str | None = None) -> tuple[Order, ...]:
        """Return the reserved orders of one user or of all users, in order of entry."""
        return self._read(lambda records: tuple(records.open_orders(user)))

    def evidence(self, reference: str, *, after: int = 0) -> tuple[Evidence, ...]:
        """Return the signed messages about an order, agreement or deposit, oldest first, without the first `after`."""

        def work(records: Records) -> tuple[Evidence, ...]:
            early = (
                Evidence(reference, EvidenceKind.VOID, void.evidence, void.voided_at)
                for void in records.remembered_voids(reference)
                if void.evidence
            )
            return (*records.evidence(reference, after), *early)

        return self._read(work)

    def overview(self, since: Instant | None, until: Instant | None, *, after: int = 0, limit: int = 500) -> Overview:
        """Return all balances, and one page of the transfers posted in a period (paper section 6.3).

        Args:
            since: first instant, None for the beginning.
            until: last instant (included), None for everything so far.
            after: 0, or `next_after` of the page before.
            limit: transfers on a page, 1 to `OVERVIEW_LIMIT_MAX`.

        Raises:
            LedgerRefusal: `malformed_value`.
        """
        return self._read(lambda records: payment_rules.overview(records, since, until, after, limit))

    def use_nonce(self, signer: str, nonce: str, expires_at: Instant, now: Instant) -> bool:
        """Consume the nonce of a signed request: True exactly once before its expiry, False for a replay.

        Each signer has its own nonces. A nonce is forgotten after `expires_at`, when such a request is refused anyway.
        """
        return self._write(lambda records: payment_rules.use_nonce(records, signer, nonce, expires_at, now))

    def register_certificate(self, account_id: str, pem: str) -> None:
        """Store the X.509 certificate (PEM text) of an account's owner (paper section 6.3), replacing an older one.

        Raises:
            LedgerRefusal: `unknown_account`, `malformed_value`.
        """
        self._write(lambda records: payment_rules.register_certificate(records, account_id, pem))

    def certificate(self, account_id: str) -> str | None:
        """Return the stored certificate of an account as PEM text, or None."""
        return self._read(lambda records: records.certificate(account_id))

    def transfer(self, agreement_id: str, kind: TransferKind = TransferKind.PAYMENT) -> Transfer | None:
        """Return the payment, refund or (by its reference) deposit of an agreement, or None."""
        return self._read(lambda records: records.transfer(agreement_id, kind))

    def balance(self, account_id: str) -> Balance:
        """Return the balance of an account: posted, reserved, available; `LedgerRefusal` with `unknown_account`."""
        return self._read(lambda records: payment_rules.known_balance(records, account_id))

    def balances(self) -> tuple[Balance, ...]:
        """Return the balances of all accounts by account id; posted amounts sum to zero."""
        return self._read(lambda records: tuple(balance for _, balance in sorted(records.balances().items())))

    def statement(
        self, account_id: str, since: Instant | None = None, until: Instant | None = None
    ) -> tuple[StatementLine, ...]:
        """Return the transfers of an account posted from `since` to `until` (both included), with a running balance.

        Raises:
            LedgerRefusal: `unknown_account`.
        """
        return self._read(lambda records: payment_rules.statement(records, account_id, since, until))

    def snapshot(self) -> Snapshot:
        """Return all rows of one consistent state."""
        return self._read(lambda records: records.snapshot())

    def audit(self) -> list[str]:
        """Recompute everything from the rows; return one sentence for each broken invariant."""
        return audit(self.snapshot())
