"""The audit: every invariant of the ledger, checked over the rows of any storage.

It shares no arithmetic with the code that keeps balances and settles orders, so that each can catch the other's errors.
`RULES` has the questions about single rows; the other functions compare sums. It skips the evidence and the
words in memos and reasons, which no computation uses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from operator import attrgetter
from typing import Any, Final, get_type_hints

from ramp.ledger.entry import ISSUING_ACCOUNT, AccountKind, Action, transfer_id_of
from ramp.ledger.records import (
    ChangeRow,
    EntryRow,
    LineRow,
    OrderRow,
    Snapshot,
    TransferRow,
)
from ramp.model.agreement import change_key
from ramp.model.contents import OrderState, TransferKind

FINDINGS_MAX: Final = 20
"""Maximum findings of one rule; a ledger without one of its tables has thousands."""

_ACCOUNT_KINDS: Final = frozenset(AccountKind)
_TRANSFER_KINDS: Final = frozenset(TransferKind)
_STATES: Final = frozenset(OrderState)
_ENDED: Final = frozenset({OrderState.POSTED, OrderState.VOIDED})
_OF_ACCOUNT: Final = frozenset({Action.OPENED})
_OF_ORDER: Final = frozenset({Action.ENTERED, Action.SETTLED})
_OF_TRANSFER: Final = frozenset({Action.ENTERED, Action.SETTLED, Action.COUNTERSIGNED})

_Numbers = defaultdict[str, dict[str, int]]
"""Numbers of the entries of accounts, transfers or orders: by action, then by id."""


def audit(snapshot: Snapshot) -> list[str]:
    """Check every invariant.

    Returns:
        One sentence for each finding, at most `FINDINGS_MAX` of a rule, those about balances first.
    """
    if no_numbers := _no_numbers(snapshot):
        return no_numbers
    books = _Books(snapshot)
    findings: list[str] = []
    for found in (_balance_findings(snapshot), _overdraft_findings(snapshot, books), _refund_findings(snapshot, books)):
        findings += islice(found, FINDINGS_MAX)
    for table, rules in RULES.items():
        for sentence, is_broken in rules:
            broken = (row for row in getattr(snapshot, table) if is_broken(books, row))
            findings += [sentence.format_map(row._asdict()) for row in islice(broken, FINDINGS_MAX)]
    return findings


class _Books:
    """The rows by their keys."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.accounts = {row.account_id: row for row in snapshot.accounts}
        self.orders = {row.order_id: row for row in snapshot.orders}
        self.lines = {(row.order_id, row.agreement_id): row for row in snapshot.lines}
        self.with_lines = {row.order_id for row in snapshot.lines}
        self.transfers = {row.transfer_id: row for row in snapshot.transfers}
        self.moved = {_transfer_of(row) for row in snapshot.changes if not row.code}
        self.of_account: _Numbers = defaultdict(dict)
        self.of_transfer: _Numbers = defaultdict(dict)
        self.of_order: _Numbers = defaultdict(dict)
        for number, action, account_id, transfer_id, order_id in snapshot.entries:
            if account_id is not None:
                self.of_account[action][account_id] = number
            if transfer_id is not None:
                self.of_transfer[action][transfer_id] = number
            if order_id is not None:
                self.of_order[action][order_id] = number
        self.opened = self.of_account[Action.OPENED]
        self.entered, self.settled = self.of_transfer[Action.ENTERED], self.of_transfer[Action.SETTLED]
        self.countersigned = self.of_transfer[Action.COUNTERSIGNED]
        self.order_entered, self.order_settled = self.of_order[Action.ENTERED], self.of_order[Action.SETTLED]

    def kind(self, account_id: str) -> str | None:
        """Return the kind of an account, or None without such an account."""
        account = self.accounts.get(account_id)
        return None if account is None else account.kind

    def payment(self, agreement_id: str) -> TransferRow | None:
        """Return the payment of an agreement."""
        return self.transfers.get(transfer_id_of(agreement_id, TransferKind.PAYMENT))

    def line_of(self, transfer: TransferRow) -> LineRow | None:
        """Return the line of an order that a transfer pays."""
        return None if transfer.order_id is None else self.lines.get((transfer.order_id, transfer.agreement_id))

    def was_reserved(self, order: OrderRow) -> bool:
        """Whether an order was reserved on arrival, and so has transfers."""
        return order.state == OrderState.RESERVED or order.order_id in self.order_settled


Rule = tuple[str, Callable[[_Books, Any], bool]]
"""A finding, with fields of a row in braces, and whether the row is broken so."""


def _transfer_of(change: ChangeRow) -> str:
    kind = TransferKind.PAYMENT if change.amount > 0 else TransferKind.REFUND
    return transfer_id_of(change_key(change.agreement_id, change.number), kind)


def _before_opening(books: _Books, transfer: TransferRow) -> bool:
    name = transfer.transfer_id
    numbers = [each[name] for each in (books.entered, books.settled) if name in each]
    return any(
        number < books.opened.get(account, 0)
        for number in numbers
        for account in (transfer.debit_account, transfer.credit_account)
    )


def _wrongly_settled(books: _Books, transfer: TransferRow) -> bool:
    settled = books.settled.get(transfer.transfer_id)
    if settled is None:
        return False
    entered = books.entered.get(transfer.transfer_id, settled)
    pending = transfer.posted_at is None and transfer.voided_at is None
    return settled < entered or pending or transfer.kind != TransferKind.PAYMENT


def _no_deposit(books: _Books, transfer: TransferRow) -> bool:
    terms = transfer.debit_account, books.kind(transfer.credit_account), transfer.order_id
    return transfer.kind == TransferKind.DEPOSIT and terms != (ISSUING_ACCOUNT, AccountKind.USER, None)


def _without_order(books: _Books, transfer: TransferRow) -> bool:
    if transfer.kind != TransferKind.PAYMENT:
        return False
    order = None if transfer.order_id is None else books.orders.get(transfer.order_id)
    return order is None or books.line_of(transfer) is None or not books.was_reserved(order)


def _unfounded(books: _Books, transfer: TransferRow) -> bool:
    if transfer.posted_at is None or transfer.transfer_id in books.moved:
        return False
    line = books.line_of(transfer)
    return transfer.kind == TransferKind.REFUND or (line is not None and line.becomes != "")


def _wrong_end(books: _Books, order: OrderRow) -> bool:
    settled = books.order_settled.get(order.order_id)
    if settled is None:
        return order.state == OrderState.POSTED
    return settled < books.order_entered.get(order.order_id, settled) or order.state not in _ENDED


def _wrong_order(books: _Books, order: OrderRow) -> bool:
    if not books.was_reserved(order):
        return False
    is_late = order.entered_at >= order.valid_until
    return is_late or books.kind(order.user) != AccountKind.USER or order.order_id not in books.with_lines


def _unpaid(books: _Books, line: LineRow) -> bool:
    """Whether a line's payment is not in the state of its order; the order's entries precede those of the payment."""
    order = books.orders.get(line.order_id)
    if order is None or not books.was_reserved(order):
        return False
    payment = books.payment(line.agreement_id)
    if payment is None or books.kind(line.resource) != AccountKind.RESOURCE:
        return True
    said = (
        line.order_id,
        order.user,
        line.resource,
        line.cost,
        order.settled_at if order.state == OrderState.POSTED else None,
        order.settled_at if order.state == OrderState.VOIDED else None,
    )
    done = (
        payment.order_id,
        payment.debit_account,
        payment.credit_account,
        payment.amount,
        payment.posted_at,
        payment.voided_at,
    )
    numbers = [
        books.order_entered.get(line.order_id),
        books.entered.get(payment.transfer_id),
        books.order_settled.get(line.order_id),
        books.settled.get(payment.transfer_id),
    ]
    if order.state == OrderState.RESERVED:
        numbers = numbers[:2] if numbers[2:] == [None, None] else [None]
    known = [number for number in numbers if number is not None]
    return said != done or len(known) < len(numbers) or known != sorted(known)


def _wrongly_signed(books: _Books, line: LineRow) -> bool:
    order = books.orders.get(line.order_id)
    if order is None:
        return True
    payment = books.payment(line.agreement_id)
    signed = None
    if payment is not None and payment.order_id == line.order_id:
        signed = books.countersigned.get(payment.transfer_id)
    if line.countersigned_at is None:
        return signed is not None or line.starts_at is not None or order.state == OrderState.POSTED
    if signed is None or line.starts_at is None or line.countersigned_at >= order.valid_until:
        return True
    return not (
        books.order_entered.get(line.order_id, signed) <= signed <= books.order_settled.get(line.order_id, signed)
    )


def _without_transfer(books: _Books, change: ChangeRow) -> bool:
    """Whether a posted change has another transfer, or one that does not go with the payment of its agreement."""
    if change.code:
        return False
    moved = books.transfers.get(_transfer_of(change))
    paid = books.payment(change.agreement_id)
    if moved is None or paid is None or moved.posted_at is None or paid.posted_at is None:
        return True
    parties = paid.debit_account, paid.credit_account
    if change.amount > 0:
        line = books.line_of(moved)
        fits = line is not None and line.becomes == change.digest
    else:
        parties = parties[::-1]
        fits = moved.order_id == paid.order_id
    return not fits or (moved.debit_account, moved.credit_account) != parties or moved.amount != abs(change.amount)


def _of_nothing(books: _Books, entry: EntryRow) -> bool:
    """Whether an entry names nothing in the ledger, or another one has the same action and subject."""
    number, action, account_id, transfer_id, order_id = entry
    if sum(each is not None for each in (account_id, transfer_id, order_id)) != 1:
        return True
    if account_id is not None:
        allowed, known, of_kind, name = _OF_ACCOUNT, account_id in books.accounts, books.of_account, account_id
    elif transfer_id is not None:
        allowed, known, of_kind, name = _OF_TRANSFER, transfer_id in books.transfers, books.of_transfer, transfer_id
    else:
        assert order_id is not None
        allowed, known, of_kind, name = _OF_ORDER, order_id in books.orders, books.of_order, order_id
    return action not in allowed or not known or of_kind[action][name] != number


_TRANSFER: Final = "{transfer_id} ({amount} minor units from {debit_account} to {credit_account})"

RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "accounts": (
        ("account {account_id} is of the unknown kind {kind}", lambda _, row: row.kind not in _ACCOUNT_KINDS),
        (
            "resource account {account_id} has an overdraft of {credit_limit} minor units",
            lambda _, row: row.kind == AccountKind.RESOURCE and row.credit_limit != 0,
        ),
        ("account {account_id} was never opened", lambda books, row: row.account_id not in books.opened),
    ),
    "transfers": (
        (
            f"{_TRANSFER} was never entered",
            lambda books, row: row.transfer_id not in books.entered,
        ),
        (
            f"{_TRANSFER} has an id that does not fit {{kind}} {{agreement_id}}",
            lambda _, row: row.transfer_id != f"{row.kind}:{row.agreement_id}",
        ),
        (f"{_TRANSFER} is of the unknown kind {{kind}}", lambda _, row: row.kind not in _TRANSFER_KINDS),
        (f"{_TRANSFER} has an amount that is not above zero", lambda _, row: row.amount <= 0),
        (f"{_TRANSFER} has one account on both sides", lambda _, row: row.debit_account == row.credit_account),
        (
            f"{_TRANSFER} references an unknown account",
            lambda books, row: row.debit_account not in books.accounts or row.credit_account not in books.accounts,
        ),
        (f"{_TRANSFER} has an entry before one of these accounts was opened", _before_opening),
        (
            f"{_TRANSFER} is both posted and voided",
            lambda _, row: row.posted_at is not None and row.voided_at is not None,
        ),
        (
            f"{_TRANSFER} is not posted, expected of every {{kind}}",
            lambda _, row: row.kind != TransferKind.PAYMENT and row.posted_at is None,
        ),
        (f"{_TRANSFER} contradicts the entry that settles it", _wrongly_settled),
        (f"{_TRANSFER}: deposits go from {ISSUING_ACCOUNT} to users, without an order", _no_deposit),
        (f"{_TRANSFER} has no order that reserved it", _without_order),
        (f"{_TRANSFER} belongs to no decided change", _unfounded),
    ),
    "orders": (
        (
            "order {order_id} of {user} was never entered",
            lambda books, row: row.order_id not in books.order_entered,
        ),
        ("order {order_id} of {user} is in the unknown state {state}", lambda _, row: row.state not in _STATES),
        (
            "order {order_id} of {user} is {state} with the end {settled_at}",
            lambda _, row: (row.state == OrderState.RESERVED) != (row.settled_at is None),
        ),
        (
            "order {order_id} of {user} is posted after its deadline",
            lambda _, row: (
                row.state == OrderState.POSTED and row.settled_at is not None and row.settled_at >= row.valid_until
            ),
        ),
        ("order {order_id} of {user} is {state}, which its entries contradict", _wrong_end),
        (
            "order {order_id} was reserved after its deadline, without lines, or for {user}, who is not a user",
            _wrong_order,
        ),
    ),
    "lines": (
        (
            "order {order_id} is not in the state of its payment of {agreement_id} to {resource}, or differs from it",
            _unpaid,
        ),
        (
            "order {order_id} is not in the state that {resource}'s countersignature of {agreement_id} allows",
            _wrongly_signed,
        ),
    ),
    "changes": (
        (
            "change {number} of {agreement_id} over {amount} minor units and its transfer contradict each other",
            _without_transfer,
        ),
    ),
    "entries": (("entry {entry_number} ({action}) names nothing in the ledger, or is repeated", _of_nothing),),
}
"""What every row of a table must fulfil, by table of the snapshot."""


def _no_numbers(snapshot: Snapshot) -> list[str]:
    """Find other values in columns of whole numbers; SQLite would store them."""
    findings = []
    for table in RULES:
        rows: tuple[Any, ...] = getattr(snapshot, table)
        hints = get_type_hints(type(rows[0])).values() if rows else ()
        numbers = [(place, hint is not int) for place, hint in enumerate(hints) if hint in (int, int | None)]
        for row in rows:
            for place, is_optional in numbers:
                if type(row[place]) is not int and not (is_optional and row[place] is None):
                    named = ", ".join(f"{name} {value}" for name, value in row._asdict().items() if _is_name(name))
                    column = row._fields[place]
                    findings.append(f"in {table}, {column} is {row[place]!r:.40} instead of a whole number: {named}")
    return findings


def _is_name(column: str) -> bool:
    return column == "user" or column.endswith(("_account", "_id"))


def _balance_findings(snapshot: Snapshot) -> Iterator[str]:
    """Compare the kept balances with the transfers, and their sum with zero."""
    posted: Counter[str] = Counter()
    reserved: Counter[str] = Counter()
    for transfer in snapshot.transfers:
        if transfer.posted_at is not None:
            posted[transfer.debit_account] -= transfer.amount
            posted[transfer.credit_account] += transfer.amount
        elif transfer.voided_at is None:
            reserved[transfer.debit_account] += transfer.amount
    for account in sorted(snapshot.accounts):
        name = account.account_id
        if account.posted != posted[name]:
            yield f"account {name} has {account.posted} minor units posted, its transfers give {posted[name]}"
        if account.reserved != reserved[name]:
            yield f"account {name} has {account.reserved} minor units reserved, its transfers give {reserved[name]}"
    if total := sum(account.posted for account in snapshot.accounts):
        yield f"all balances sum to {total} minor units instead of zero"


def _overdraft_findings(snapshot: Snapshot, books: _Books) -> Iterator[str]:
    """Find entries that bring an account below its limit; a pending amount counts as spent."""
    spendable = Counter({account.account_id: account.credit_limit for account in snapshot.accounts})
    for entry in sorted(snapshot.entries, key=attrgetter("entry_number")):
        transfer = None if entry.transfer_id is None else books.transfers.get(entry.transfer_id)
        if transfer is None or entry.action == Action.COUNTERSIGNED:
            continue
        debit, credit = transfer.debit_account, transfer.credit_account
        if entry.action == Action.ENTERED:
            spendable[debit] -= transfer.amount
            if spendable[debit] < 0:
                yield f"{transfer.transfer_id} brings {debit} {-spendable[debit]} minor units below its limit"
        if entry.action == Action.SETTLED or transfer.transfer_id not in books.settled:
            if transfer.posted_at is not None:
                spendable[credit] += transfer.amount
            elif transfer.voided_at is not None:
                spendable[debit] += transfer.amount


def _refund_findings(snapshot: Snapshot, books: _Books) -> Iterator[str]:
    """Find agreements whose changes return more than was paid."""
    changed: Counter[str] = Counter()
    for change in snapshot.changes:
        changed[change.agreement_id] += change.amount
    for agreement_id, amount in changed.items():
        payment = books.payment(agreement_id)
        if payment is not None and payment.amount + amount < 0:
            yield f"the changes of {agreement_id} leave {payment.amount + amount} minor units of what was paid"
