"""`Book`: the ledger in memory, as the simulator uses it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import islice
from operator import itemgetter

from ramp.errors import LedgerCorrupt
from ramp.ledger.account import ISSUER, Account, Balance
from ramp.ledger.contract_change import DecidedChange
from ramp.ledger.entry import Action, Countersignature, Entry, balance_changes
from ramp.ledger.evidence import Evidence
from ramp.ledger.interface import Answer, Ledger
from ramp.ledger.orders.order import Order, RememberedVoid
from ramp.ledger.records import Records
from ramp.ledger.snapshot import (
    AccountRow,
    ChangeRow,
    EntryRow,
    LineRow,
    OrderRow,
    Snapshot,
    TransferRow,
    entry_row,
)
from ramp.ledger.transfer import Transfer, TransferState, transfer_id_of
from ramp.model.contents import OrderLine, OrderState, TransferKind
from ramp.model.instant import Instant


class Book(Ledger):
    """The ledger in memory."""

    def __init__(self) -> None:
        self._records = _Index()
        self._records.append(Entry(Action.OPENED, ISSUER))

    def validate(self) -> list[str]:
        """Check the invariants, under the common name of all state machines."""
        return self.audit()

    def _read(self, work: Callable[[Records], Answer]) -> Answer:
        return work(self._records)

    def _write(self, work: Callable[[Records], Answer]) -> Answer:
        # Rules check everything before they write anything, so a refusal leaves nothing half done.
        return work(self._records)


class _Index:
    """The present state with indexes over it; implements `Records`."""

    def __init__(self) -> None:
        self._entries: list[EntryRow] = []
        self._balances: dict[str, Balance] = {}
        self._transfers: dict[str, Transfer] = {}
        # account id -> (posted at, order of posting, transfer id), sorted: the clock may have been set back between two
        self._postings: dict[str, list[tuple[Instant, int, str]]] = {}
        self._trades: list[tuple[int, str]] = []  # (number of the posting entry, transfer id)
        self._orders: dict[str, Order] = {}
        self._reserved: dict[str, None] = {}  # ids in order of entry; a dict because it is an ordered set
        self._signed: dict[str, Countersignature] = {}  # by agreement id
        self._voids: dict[str, dict[str, RememberedVoid]] = {}  # by order id and user
        self._evidence: dict[str, list[Evidence]] = {}
        self._changes: dict[str, dict[int, DecidedChange]] = {}  # by agreement id and number
        self._nonces: set[tuple[str, str]] = set()
        self._expiries: list[tuple[Instant, str, str]] = []  # a heap, earliest expiry first
        self._certificates: dict[str, str] = {}

    def balances(self, account_ids: Iterable[str] | None = None) -> dict[str, Balance]:
        if account_ids is None:
            return dict(self._balances)
        return {name: self._balances[name] for name in account_ids if name in self._balances}

    def transfer(self, agreement_id: str, kind: TransferKind) -> Transfer | None:
        return self._transfers.get(transfer_id_of(agreement_id, kind))

    def posted(self, account_id: str, since: Instant | None, until: Instant | None) -> Sequence[Transfer]:
        postings = self._postings.get(account_id, [])
        first = 0 if since is None else bisect_left(postings, (since,))
        last = len(postings) if until is None else bisect_right(postings, (until + 1,))
        return [self._transfers[transfer_id] for _, _, transfer_id in postings[first:last]]

    def posted_before(self, account_id: str, since: Instant) -> int:
        before = self.posted(account_id, None, since - 1)
        return sum(one.amount if one.credit_account == account_id else -one.amount for one in before)

    def trades(
        self, since: Instant | None, until: Instant | None, after: int, limit: int
    ) -> Sequence[tuple[int, Transfer]]:
        first = bisect_right(self._trades, after, key=itemgetter(0))
        return list(islice(self._posted_within(since, until, first), limit))

    def _posted_within(
        self, since: Instant | None, until: Instant | None, first: int
    ) -> Iterator[tuple[int, Transfer]]:
        for number, transfer_id in islice(self._trades, first, None):
            transfer = self._transfers[transfer_id]
            assert transfer.posted_at is not None
            if (since is None or transfer.posted_at >= since) and (until is None or transfer.posted_at <= until):
                yield number, transfer

    def order(self, order_id: str) -> Order | None:
        return self._orders.get(order_id)

    def order_of(self, agreement_id: str) -> Order | None:
        payment = self.transfer(agreement_id, TransferKind.PAYMENT)
        return None if payment is None else self._orders.get(payment.order_id)

    def open_orders(self, user: str | None = None, due: Instant | None = None) -> Sequence[Order]:
        every = [self._orders[order_id] for order_id in self._reserved]
        return [one for one in every if user in (None, one.user) and (due is None or one.valid_until <= due)]

    def starts_at(self, agreement_id: str) -> Instant | None:
        signed = self._signed.get(agreement_id)
        return None if signed is None else signed.starts_at

    def remembered_voids(self, order_id: str) -> Sequence[RememberedVoid]:
        return [void for _, void in sorted(self._voids.get(order_id, {}).items())]

    def remember_void(self, void: RememberedVoid) -> None:
        self._voids.setdefault(void.order_id, {})[void.user] = void

    def forget_void(self, order_id: str, user: str) -> None:
        self._voids[order_id].pop(user)

    def forget_voids(self, now: Instant) -> None:
        for order_id, of_users in list(self._voids.items()):
            left = {user: void for user, void in of_users.items() if now < void.valid_until}
            if left:
                self._voids[order_id] = left
            else:
                del self._voids[order_id]

    def evidence(self, reference: str, after: int) -> Sequence[Evidence]:
        return self._evidence.get(reference, [])[after:]

    def add_evidence(self, evidence: Evidence) -> None:
        self._evidence.setdefault(evidence.reference, []).append(evidence)

    def changes(self, agreement_id: str) -> tuple[DecidedChange, ...]:
        return tuple(decided for _, decided in sorted(self._changes.get(agreement_id, {}).items()))

    def add_change(self, decided: DecidedChange) -> None:
        self._changes.setdefault(decided.agreement_id, {})[decided.number] = decided

    def snapshot(self) -> Snapshot:
        return Snapshot(
            accounts=tuple(
                AccountRow(name, each.account.kind, each.credit_limit, each.posted, each.reserved)
                for name, each in self._balances.items()
            ),
            orders=tuple(
                OrderRow(each.order_id, each.user, each.state, each.entered_at, each.valid_until, each.settled_at)
                for each in self._orders.values()
            ),
            lines=tuple(self._line_row(order, line) for order in self._orders.values() for line in order.lines),
            transfers=tuple(
                TransferRow(
                    each.transfer_id,
                    each.kind,
                    each.agreement_id,
                    each.order_id or None,
                    each.debit_account,
                    each.credit_account,
                    each.amount,
                    each.posted_at,
                    each.voided_at,
                )
                for each in self._transfers.values()
            ),
            changes=tuple(
                ChangeRow(each.agreement_id, each.number, each.digest, each.amount, each.code)
                for of_agreement in self._changes.values()
                for each in of_agreement.values()
            ),
            entries=tuple(self._entries),
        )

    def _line_row(self, order: Order, line: OrderLine) -> LineRow:
        signed = self._signed.get(line.agreement_id) if line.agreement_id in order.countersigned else None
        at, starts_at = (None, None) if signed is None else (signed.at, signed.starts_at)
        return LineRow(order.order_id, line.agreement_id, line.resource, line.cost, at, starts_at, line.becomes)

    def append(self, *entries: Entry) -> None:
        for entry in entries:
            self._append(entry)

    def _append(self, entry: Entry) -> None:
        if not self._follows(entry):
            raise LedgerCorrupt(f"entry {len(self._entries) + 1} contradicts those before it: {entry}")
        for change in balance_changes(entry):
            balance = self._balances[change.account_id]
            posted, reserved = balance.posted + change.posted, balance.reserved + change.reserved
            self._balances[change.account_id] = Balance(balance.account, posted, reserved)
        self._entries.append(entry_row(len(self._entries) + 1, entry))
        match entry.subject:
            case Account() as account:
                self._balances[account.account_id] = Balance(account, 0, 0)
            case Transfer() as transfer:
                self._put_transfer(transfer)
            case Order() as order:
                self._put_order(order)
            case Countersignature() as signed:
                self._signed[signed.agreement_id] = signed
                self._put_countersigned(signed.agreement_id)

    def _follows(self, entry: Entry) -> bool:
        """Whether the constraints of a database would accept an entry."""
        is_settled = entry.action is Action.SETTLED
        match entry.subject:
            case Account(account_id):
                return account_id not in self._balances
            case Transfer() as transfer if is_settled:
                pending = self._transfers.get(transfer.transfer_id)
                return pending is not None and pending.state is TransferState.PENDING and _same_terms(pending, transfer)
            case Transfer() as transfer:
                accounts_known = {transfer.debit_account, transfer.credit_account} <= self._balances.keys()
                return accounts_known and transfer.transfer_id not in self._transfers
            case Order() as order if is_settled:
                before = self._orders.get(order.order_id)
                terms = (order.user, order.lines, order.valid_until, OrderState.RESERVED)
                return before is not None and (before.user, before.lines, before.valid_until, before.state) == terms
            case Order(order_id):
                return order_id not in self._orders
            case Countersignature(agreement_id):
                return agreement_id not in self._signed and self.order_of(agreement_id) is not None

    def _put_order(self, order: Order) -> None:
        self._orders[order.order_id] = order
        if order.state is OrderState.RESERVED:
            self._reserved[order.order_id] = None
        else:
            self._reserved.pop(order.order_id, None)

    def _put_countersigned(self, agreement_id: str) -> None:
        order = self.order_of(agreement_id)
        assert order is not None
        marked = {*order.countersigned, agreement_id}
        in_order = tuple(line.agreement_id for line in order.lines if line.agreement_id in marked)
        self._orders[order.order_id] = replace(order, countersigned=in_order)

    def _put_transfer(self, transfer: Transfer) -> None:
        self._transfers[transfer.transfer_id] = transfer
        if transfer.posted_at is not None:
            posting = (transfer.posted_at, len(self._entries), transfer.transfer_id)
            self._trades.append((len(self._entries), transfer.transfer_id))
            for account_id in (transfer.debit_account, transfer.credit_account):
                insort(self._postings.setdefault(account_id, []), posting)

    def certificate(self, account_id: str) -> str | None:
        return self._certificates.get(account_id)

    def put_certificate(self, account_id: str, pem: str) -> None:
        self._certificates[account_id] = pem

    def add_nonce(self, signer: str, nonce: str, expires_at: Instant) -> bool:
        if (signer, nonce) in self._nonces:
            return False
        self._nonces.add((signer, nonce))
        heappush(self._expiries, (expires_at, signer, nonce))
        return True

    def forget_nonces(self, now: Instant) -> None:
        while self._expiries and self._expiries[0][0] <= now:
            _, signer, nonce = heappop(self._expiries)
            self._nonces.remove((signer, nonce))


def _same_terms(one: Transfer, other: Transfer) -> bool:
    terms = (one.debit_account, one.credit_account, one.amount, one.order_id)
    return terms == (other.debit_account, other.credit_account, other.amount, other.order_id)
