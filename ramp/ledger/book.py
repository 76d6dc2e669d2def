"""`Book`: the ledger in memory, as the simulator uses it; immutable entries and an index over them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from ramp.errors import LedgerCorrupt
from ramp.ledger.account import ISSUER, Account, Balance
from ramp.ledger.entry import (
    AccountClosed,
    AccountOpened,
    AgreementRefused,
    Entry,
    Refusal,
    TransferEntered,
    TransferSettled,
    balance_changes,
)
from ramp.ledger.interface import Answer, Ledger
from ramp.ledger.records import Records
from ramp.ledger.transfer import Transfer, TransferKind, TransferState, transfer_id_of
from ramp.model.instant import Instant


class Book(Ledger):
    """The ledger in memory: a list of entries that only grows, and everything else derived from it."""

    def __init__(self, entries: Iterable[Entry] = (AccountOpened(ISSUER),)) -> None:
        """Make a book of entries; they are not judged: `validate` does that.

        Args:
            entries: everything that has happened so far; a new book has the opening of the issuing account.

        Raises:
            LedgerCorrupt: if an entry moves money of an account that no entry before it opened.
        """
        self._records = _Index()
        for entry in entries:
            self._records.append(entry)

    def validate(self) -> list[str]:
        """Check the book's own invariants, under the name that every state machine of the project gives this."""
        return self.audit()

    def _read(self, work: Callable[[Records], Answer]) -> Answer:
        return work(self._records)

    def _write(self, work: Callable[[Records], Answer]) -> Answer:
        # Rules check everything before their only append, so a refusal leaves nothing half done.
        return work(self._records)


class _Index:
    """Entries, and what is looked up in them; implements `Records`."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._balances: dict[str, Balance] = {}
        self._transfers: dict[str, Transfer] = {}
        self._pending: dict[str, None] = {}  # ids in order of entry; a dict because it is an ordered set
        self._refusals: dict[str, Refusal] = {}
        # account id -> (posted at, order of posting, transfer id), sorted: the clock may have been set back between two
        self._postings: dict[str, list[tuple[Instant, int, str]]] = {}
        self._nonces: set[tuple[str, str]] = set()
        self._expiries: list[tuple[Instant, str, str]] = []  # a heap, earliest expiry first
        self._certificates: dict[str, str] = {}

    def balances(self, account_ids: Iterable[str] | None = None) -> dict[str, Balance]:
        """Accounts by id with what they hold; see `Records.balances`."""
        if account_ids is None:
            return dict(self._balances)
        return {name: self._balances[name] for name in account_ids if name in self._balances}

    def transfer(self, agreement_id: str, kind: TransferKind) -> Transfer | None:
        """The transfer of a kind under an agreement, or None."""
        return self._transfers.get(transfer_id_of(agreement_id, kind))

    def pending(self, account_id: str | None = None) -> Sequence[Transfer]:
        """Transfers that reserve money and are neither posted nor voided, in order of entry."""
        every = [self._transfers[transfer_id] for transfer_id in self._pending]
        return [one for one in every if account_id in (None, one.debit_account, one.credit_account)]

    def posted(self, account_id: str, since: Instant | None, until: Instant | None) -> Sequence[Transfer]:
        """Posted transfers of an account within two instants, both included, in order of posting."""
        postings = self._postings.get(account_id, [])
        first = 0 if since is None else bisect_left(postings, (since,))
        last = len(postings) if until is None else bisect_right(postings, (until + 1,))
        return [self._transfers[transfer_id] for _, _, transfer_id in postings[first:last]]

    def posted_before(self, account_id: str, since: Instant) -> int:
        """Sum in minor units of what an account received less what it paid before an instant."""
        before = self.posted(account_id, None, since - 1)
        return sum(one.amount if one.credit_account == account_id else -one.amount for one in before)

    def refusal(self, agreement_id: str) -> Refusal | None:
        """Why an agreement was refused for good, or None."""
        return self._refusals.get(agreement_id)

    def entries(self) -> Sequence[Entry]:
        """All entries in order."""
        return self._entries

    def append(self, entry: Entry) -> None:
        """Apply an entry to the balances and keep it."""
        for change in balance_changes(entry):
            balance = self._balances.get(change.account_id)
            if balance is None:
                raise LedgerCorrupt(
                    f"entry {len(self._entries) + 1} moves money of the unknown account {change.account_id}"
                )
            self._balances[change.account_id] = replace(
                balance, posted=balance.posted + change.posted, reserved=balance.reserved + change.reserved
            )
        match entry:
            case AccountOpened(account) | AccountClosed(account):
                self._put_account(account)
            case TransferEntered(transfer) | TransferSettled(transfer):
                self._put_transfer(transfer)
            case AgreementRefused(refusal):
                self._refusals[refusal.agreement_id] = refusal
        self._entries.append(entry)

    def _put_account(self, account: Account) -> None:
        balance = self._balances.get(account.account_id)
        self._balances[account.account_id] = (
            Balance(account, 0, 0) if balance is None else replace(balance, account=account)
        )

    def _put_transfer(self, transfer: Transfer) -> None:
        self._transfers[transfer.transfer_id] = transfer
        if transfer.state is TransferState.PENDING:
            self._pending[transfer.transfer_id] = None
            return
        self._pending.pop(transfer.transfer_id, None)
        if transfer.posted_at is not None:
            posting = (transfer.posted_at, len(self._entries), transfer.transfer_id)
            for account_id in (transfer.debit_account, transfer.credit_account):
                insort(self._postings.setdefault(account_id, []), posting)

    def certificate(self, account_id: str) -> str | None:
        """An account's certificate in PEM, or None."""
        return self._certificates.get(account_id)

    def put_certificate(self, account_id: str, pem: str) -> None:
        """Keep an account's certificate in place of the one before."""
        self._certificates[account_id] = pem

    def add_nonce(self, signer: str, nonce: str, expires_at: Instant) -> bool:
        """Remember a nonce until it expires; False if its signer used it already."""
        if (signer, nonce) in self._nonces:
            return False
        self._nonces.add((signer, nonce))
        heappush(self._expiries, (expires_at, signer, nonce))
        return True

    def forget_nonces(self, now: Instant) -> None:
        """Forget the nonces that have expired."""
        while self._expiries and self._expiries[0][0] <= now:
            _, signer, nonce = heappop(self._expiries)
            self._nonces.remove((signer, nonce))
