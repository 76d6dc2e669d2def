"""`Ledger`: every operation of the bank's ledger, whatever it is kept in.

The operations are written once, over `Records`; a storage says how one unit of work reads and writes
(`ramp.ledger.book.Book` in memory, `ramp.runtime.ledger_store.LedgerStore` in SQLite or PostgreSQL). Amounts are
integers of minor units and times integers of microseconds since the Unix epoch. Refusals are `LedgerRefusal` with a
code of `RefusalCode`; a refused operation changes nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from ramp.ledger import rules
from ramp.ledger.account import Account, AccountKind, Balance
from ramp.ledger.entry import Entry, Refusal
from ramp.ledger.records import Records
from ramp.ledger.statement import Statement, make_statement
from ramp.ledger.transfer import Transfer, TransferKind
from ramp.ledger.validation import validate
from ramp.model.instant import Instant

Answer = TypeVar("Answer")


class Ledger(ABC):
    """Double-entry ledger of the market: accounts, deposits, escrow, payments, refunds, refusals, keys on file.

    Every operation is one indivisible unit of work and idempotent: repeated on the same terms it gives the same answer
    and changes nothing; the same key on other terms is refused (`duplicate_differs`).
    """

    @abstractmethod
    def _read(self, work: Callable[[Records], Answer]) -> Answer:
        """Do a unit of work that only reads, on one consistent state."""

    @abstractmethod
    def _write(self, work: Callable[[Records], Answer]) -> Answer:
        """Do a unit of work as if alone: all of it and durably, or (when it raises) nothing of it."""

    def open_account(self, account_id: str, kind: AccountKind, *, at: Instant, credit_limit: int = 0) -> Account:
        """Open an account.

        Args:
            account_id: the party's name, without white space or double quotes.
            kind: whose account it is.
            at: now.
            credit_limit: overdraft in minor units, 0 for none.

        Raises:
            LedgerRefusal: `duplicate_differs`, `account_closed`, `malformed_value`.
        """
        account = Account(account_id, kind, credit_limit, at)
        return self._write(lambda records: rules.open_account(records, account))

    def close_account(self, account_id: str, *, at: Instant) -> Account:
        """Close an account that has nothing on it and nothing pending.

        Raises:
            LedgerRefusal: `unknown_account`, `account_not_empty`, `wrong_account`.
        """
        return self._write(lambda records: rules.close_account(records, account_id, at))

    def deposit(self, deposit_id: str, account_id: str, amount: int, *, at: Instant, memo: str = "") -> Transfer:
        """Credit an account with new money out of the market's issuing account.

        Args:
            deposit_id: the deposit's reference, its idempotency key.
            account_id: who gets it.
            amount: minor units, above zero.
            at: now.
            memo: one line for people.

        Raises:
            LedgerRefusal: `unknown_account`, `account_closed`, `amount_not_positive`, `duplicate_differs`, ...
        """
        return self._write(lambda records: rules.deposit(records, deposit_id, account_id, amount, at, memo))

    def set_pending(
        self, agreement_id: str, debit_account: str, credit_account: str, amount: int, *, at: Instant, memo: str = ""
    ) -> Transfer:
        """Reserve an agreement's payment (escrow); a pending transfer stays until it is posted or voided.

        Args:
            agreement_id: the idempotency key.
            debit_account: who will pay.
            credit_account: who will be paid.
            amount: minor units, above zero.
            at: now.
            memo: one line for people.

        Raises:
            LedgerRefusal: `insufficient_funds`, `unknown_account`, `agreement_refused`, `already_voided`, ...
        """
        parties = (debit_account, credit_account)
        return self._write(lambda records: rules.set_pending(records, agreement_id, parties, amount, at, memo))

    def post(self, agreement_id: str, *, at: Instant) -> Transfer:
        """Post an agreement's pending payment.

        Raises:
            LedgerRefusal: `unknown_transfer`, `already_voided`.
        """
        return self._write(lambda records: rules.post(records, agreement_id, at))

    def void(self, agreement_id: str, *, at: Instant) -> Transfer:
        """Give an agreement's pending payment up; what was reserved is available again.

        Raises:
            LedgerRefusal: `unknown_transfer`, `already_posted`.
        """
        return self._write(lambda records: rules.void(records, agreement_id, at))

    def pay(
        self, agreement_id: str, debit_account: str, credit_account: str, amount: int, *, at: Instant, memo: str = ""
    ) -> Transfer:
        """Make an agreement's payment at once (paper section 5.1.2, step 3).

        Args:
            agreement_id: the idempotency key.
            debit_account: the user's account.
            credit_account: the resource's account.
            amount: minor units, above zero.
            at: now.
            memo: one line for people.

        Raises:
            LedgerRefusal: `insufficient_funds`, `unknown_account`, `agreement_refused`, `already_pending`, ...
        """
        parties = (debit_account, credit_account)
        return self._write(lambda records: rules.pay(records, agreement_id, parties, amount, at, memo))

    def refund(self, agreement_id: str, amount: int | None = None, *, at: Instant, memo: str = "") -> Transfer:
        """Give back an agreement's posted payment, once (paper section 5.1.2: cancellation).

        Args:
            agreement_id: whose payment.
            amount: minor units, at most what was charged; None for all of it.
            at: now.
            memo: one line for people.

        Raises:
            LedgerRefusal: `unknown_transfer`, `not_posted`, `refund_exceeds_charge`, `already_refunded` (with another
                amount), `insufficient_funds` (the resource has spent the money), ...
        """
        return self._write(lambda records: rules.refund(records, agreement_id, amount, at, memo))

    def record_refusal(self, agreement_id: str, code: str, reason: str, *, at: Instant) -> Refusal:
        """Refuse an agreement for good: from now on `pay` and `set_pending` refuse it. The first refusal stays.

        Args:
            agreement_id: what is refused.
            code: machine-readable reason, the ledger's or the verification's.
            reason: the sentence for people; kept on one line.
            at: now.

        Raises:
            LedgerRefusal: `already_posted` or `already_pending` if the agreement has been paid meanwhile or has money
                in escrow: paid and refused exclude each other.
        """
        return self._write(lambda records: rules.record_refusal(records, agreement_id, code, reason, at))

    def use_nonce(self, signer: str, nonce: str, expires_at: Instant, now: Instant) -> bool:
        """Use up the nonce of a signed request: True exactly once and before its expiry, else False (a replay).

        Args:
            signer: who signed; each signer has nonces of its own.
            nonce: the nonce.
            expires_at: until when such a request is accepted; the nonce is forgotten later.
            now: now.
        """
        return self._write(lambda records: rules.use_nonce(records, signer, nonce, expires_at, now))

    def register_certificate(self, account_id: str, pem: str) -> None:
        """Keep the public certificate of an account's owner on file (paper section 6.3), replacing an older one.

        Args:
            account_id: whose.
            pem: X.509 certificate in PEM text.

        Raises:
            LedgerRefusal: `unknown_account`, `malformed_value`.
        """
        self._write(lambda records: rules.register_certificate(records, account_id, pem))

    def certificate(self, account_id: str) -> str | None:
        """The certificate on file for an account as PEM text, or None."""
        return self._read(lambda records: records.certificate(account_id))

    def refusal(self, agreement_id: str) -> Refusal | None:
        """The final refusal of an agreement, or None."""
        return self._read(lambda records: records.refusal(agreement_id))

    def transfer(self, agreement_id: str, kind: TransferKind = TransferKind.PAYMENT) -> Transfer | None:
        """The payment, refund or (by its reference) deposit of an agreement, or None."""
        return self._read(lambda records: records.transfer(agreement_id, kind))

    def pending(self, account_id: str | None = None) -> tuple[Transfer, ...]:
        """Transfers in escrow, oldest first: those that touch an account, or all."""
        return self._read(lambda records: tuple(records.pending(account_id)))

    def balance(self, account_id: str) -> Balance:
        """What stands on an account: posted, reserved, available.

        Raises:
            LedgerRefusal: `unknown_account`.
        """
        return self._read(lambda records: rules.known_balance(records, account_id))

    def balances(self) -> tuple[Balance, ...]:
        """Balances of all accounts, ordered by account id; what is posted sums to zero."""
        return self._read(lambda records: tuple(balance for _, balance in sorted(records.balances().items())))

    def statement(self, account_id: str, since: Instant | None = None, until: Instant | None = None) -> Statement:
        """Posted transfers of an account with running balance.

        Args:
            account_id: whose.
            since: first instant, None for the beginning.
            until: last instant (included), None for everything so far.

        Raises:
            LedgerRefusal: `unknown_account`.
        """

        def work(records: Records) -> Statement:
            balance = rules.known_balance(records, account_id)
            opening = 0 if since is None else records.posted_before(account_id, since)
            posted = records.posted(account_id, since, until)
            return make_statement(balance, opening, posted, records.pending(account_id), since, until)

        return self._read(work)

    def entries(self) -> tuple[Entry, ...]:
        """Everything that ever happened, in order; `ramp.ledger.text.ledger_text` prints it."""
        return self._read(lambda records: tuple(records.entries()))

    def audit(self) -> list[str]:
        """Recompute everything from the entries and compare: one sentence for each invariant that does not hold."""
        return self._read(lambda records: validate(records.entries(), records.balances()))
