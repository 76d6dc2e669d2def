"""Compares transfers, orders, lines, entries and balances with each other, and reads each row once.

This is a part of the audit at a bank's start (`ramp.runtime.ledger.audit`). These tables grow with every purchase, and
each of their rows needs several others by name. A dictionary finds one in a fraction of the time that a database needs
with an index. The statements work on SQLite and PostgreSQL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Connection, Row, text

_ACCOUNTS: Final = "SELECT account_id, kind, credit_limit, posted, reserved FROM accounts"

_TRANSFERS: Final = """
    SELECT transfers.transfer_id, kind, transfers.agreement_id, transfers.order_id, debit_account, credit_account,
        amount, posted_at, voided_at,
        entered.entry_number AS entered, settled.entry_number AS settled, signed.entry_number AS signed
    FROM transfers
    LEFT JOIN entries AS entered ON entered.transfer_id = transfers.transfer_id AND entered.action = 'entered'
    LEFT JOIN entries AS settled ON settled.transfer_id = transfers.transfer_id AND settled.action = 'settled'
    LEFT JOIN entries AS signed ON signed.transfer_id = transfers.transfer_id AND signed.action = 'countersigned'
"""

_ORDERS: Final = """
    SELECT orders.order_id, user_account, state, entered_at, valid_until, settled_at,
        entered.entry_number AS entered, settled.entry_number AS settled
    FROM orders
    LEFT JOIN entries AS entered ON entered.order_id = orders.order_id AND entered.action = 'entered'
    LEFT JOIN entries AS settled ON settled.order_id = orders.order_id AND settled.action = 'settled'
"""

_LINES: Final = "SELECT order_id, agreement_id, resource, cost, countersigned_at, starts_at FROM order_lines"

_WHOLE: Final = {
    "accounts": ("credit_limit", "posted", "reserved"),
    "transfers": ("amount", "posted_at", "voided_at"),
    "orders": ("entered_at", "valid_until", "settled_at"),
    "lines": ("cost", "countersigned_at", "starts_at"),
}
"""Columns of whole numbers; SQLite would also store other values there."""

_KINDS: Final = frozenset({"payment", "refund", "deposit"})
_STATES: Final = frozenset({"reserved", "posted", "voided", "refused"})


@dataclass(frozen=True, slots=True)
class Rows:
    """The compared rows, with the columns listed above.

    Attributes:
        accounts: all accounts.
        transfers: each with the numbers of its entries.
        orders: each with the numbers of its entries.
        lines: lines of the orders.
    """

    accounts: Sequence[Row[Any]]
    transfers: Sequence[Row[Any]]
    orders: Sequence[Row[Any]]
    lines: Sequence[Row[Any]]

    @property
    def account_kinds(self) -> dict[str, str]:
        return {row.account_id: row.kind for row in self.accounts}

    @property
    def entries(self) -> tuple[int, int]:
        """Number of entries of transfers and of orders."""
        found = (
            sum(number is not None for row in rows for number in row[-most:])
            for rows, most in ((self.transfers, 3), (self.orders, 2))
        )
        return next(found), next(found)


def read_rows(connection: Connection) -> Rows:
    """Read the rows in a transaction that sees one state of the ledger."""
    return Rows(*(connection.execute(text(query)).all() for query in (_ACCOUNTS, _TRANSFERS, _ORDERS, _LINES)))


def compare_rows(rows: Rows) -> Iterator[list[str]]:
    """Compare the rows.

    Yields:
        The findings of one comparison as sentences; those about balances first. A value that is not a whole number ends
        its comparison.
    """
    try:
        yield compare_balances(rows)
        yield compare_transfers(rows)
        yield find_overdrafts(rows)
        yield compare_orders(rows)
        yield compare_lines(rows)
        yield compare_payments(rows)
    except TypeError:
        found = [sentence for table in _WHOLE for sentence in _no_numbers(table, getattr(rows, table))]
        if not found:
            raise
        yield found


def _no_numbers(table: str, rows: Iterable[Row[Any]]) -> Iterator[str]:
    for row in rows:
        of_row = row._asdict()
        for column in _WHOLE[table]:
            if not isinstance(of_row[column], int | None):
                named = ", ".join(f"{name} {of_row[name]}" for name in of_row if name.endswith(("account", "_id")))
                yield f"in {table}, {column} is {of_row[column]!r:.40} instead of a whole number: {named}"


def compare_balances(rows: Rows) -> list[str]:
    """Compare the balance of each account with its transfers; a resource has no overdraft."""
    posted: Counter[str] = Counter()
    reserved: Counter[str] = Counter()
    for _, _, _, _, debit, credit, amount, posted_at, voided_at, *_ in rows.transfers:
        if posted_at is not None:
            posted[debit] -= amount
            posted[credit] += amount
        elif voided_at is None:
            reserved[debit] += amount
    compared = (
        (account_id, what, kept, given[account_id])
        for account_id, _, _, kept_posted, kept_reserved in sorted(rows.accounts, key=itemgetter(0))
        for what, kept, given in (("posted", kept_posted, posted), ("reserved", kept_reserved, reserved))
    )
    differing = [
        f"account {account_id} has {kept} minor units {what}, its transfers give {right}"
        for account_id, what, kept, right in compared
        if kept != right
    ]
    return differing + [
        f"resource account {account_id} has an overdraft of {credit_limit} minor units"
        for account_id, kind, credit_limit, *_ in rows.accounts
        if kind == "resource" and credit_limit
    ]


def compare_transfers(rows: Rows) -> list[str]:
    """Check each transfer by itself: its accounts, times and entries."""
    accounts = rows.account_kinds
    return [
        f"{transfer_id} ({amount} minor units from {debit} to {credit}) contradicts itself or its entries"
        for (
            transfer_id, kind, agreement_id, order_id, debit, credit, amount,
            posted_at, voided_at, entered, settled, _,
        ) in rows.transfers
        if entered is None
        or transfer_id != f"{kind}:{agreement_id}"
        or kind not in _KINDS
        or amount <= 0
        or debit == credit
        or debit not in accounts
        or credit not in accounts
        or (posted_at is not None and voided_at is not None)
        or (kind == "refund" and posted_at is None)
        or (kind == "deposit" and (debit != "market" or accounts[credit] != "user"))
        or (posted_at is None and voided_at is None and order_id is None)
        or (
            settled is not None
            and (settled < entered or kind != "payment" or (posted_at is None and voided_at is None))
        )
    ]  # fmt: skip


def find_overdrafts(rows: Rows) -> list[str]:
    """Find entries that bring an account below its limit.

    Accounts that could pay everything with their first funds, and entries that do not reduce a user's funds, need no
    walk.
    """
    accounts = {row.account_id: row for row in rows.accounts}
    spenders = {debit for _, _, _, _, debit, *_ in rows.transfers if debit in accounts}
    first_funds = _first_funds(rows.transfers, spenders)
    walked = {account_id for account_id in spenders if first_funds[account_id] + accounts[account_id].credit_limit < 0}
    spendable = dict.fromkeys(walked, 0)
    findings = []
    for _, change, account_id, transfer_id in sorted(_moves(rows.transfers, walked)):
        spendable[account_id] += change
        missing = -spendable[account_id] - accounts[account_id].credit_limit
        if missing > 0 and change < 0:
            findings.append(f"{transfer_id} brings {account_id} {missing} minor units below its limit")
    return findings


def _first_funds(transfers: Iterable[Row[Any]], spenders: set[str]) -> Counter[str]:
    """Return the funds of accounts before their first payment, less all their payments."""
    funds: Counter[str] = Counter()
    first: dict[str, int] = {}
    for _, _, _, _, debit, _, amount, _, _, entered, settled, _ in transfers:
        if debit in spenders:
            funds[debit] -= amount
            number = settled if entered is None else entered
            if number is not None:
                first[debit] = min(number, first.get(debit, number))
    for _, _, _, _, _, credit, amount, posted_at, _, entered, settled, _ in transfers:
        last = entered if settled is None else settled
        if posted_at is not None and last is not None and last < first.get(credit, last):
            funds[credit] += amount
    return funds


def _moves(transfers: Iterable[Row[Any]], spenders: set[str]) -> Iterator[tuple[int, int, str, str]]:
    """Return the changes of accounts' available funds: number, change, account, and id of the transfer."""
    for transfer_id, kind, _, _, debit, credit, amount, posted_at, voided_at, entered, settled, _ in transfers:
        if debit in spenders:
            voided = amount if voided_at is not None else 0
            if entered is not None:
                yield entered, (voided if kind != "payment" else 0) - amount, debit, transfer_id
            if settled is not None and voided_at is not None:
                yield settled, voided, debit, transfer_id
        if posted_at is not None and credit in spenders:
            last = max((number for number in (entered, settled) if number is not None), default=None)
            if last is not None:
                yield last, amount, credit, transfer_id


def compare_orders(rows: Rows) -> list[str]:
    """Compare each order with its times, lines, account and entries."""
    kinds = rows.account_kinds
    with_lines = {order_id for order_id, *_ in rows.lines}
    return [
        f"order {order_id} of {user} is {state}, which its own times, lines, account or entries contradict"
        for order_id, user, state, entered_at, valid_until, settled_at, entered, settled in rows.orders
        if entered is None
        or state not in _STATES
        or (state == "reserved") != (settled_at is None)
        or (state == "posted" and (settled is None or settled_at >= valid_until))
        or (settled is not None and (settled < entered or state in {"reserved", "refused"}))
        or (
            (state == "reserved" or settled is not None)
            and (entered_at >= valid_until or kinds.get(user) != "user" or order_id not in with_lines)
        )
    ]


def compare_lines(rows: Rows) -> list[str]:
    """Compare payment and countersignature of each line with its order.

    An order's entries precede those of its transfers; entries of other banks may lie between them.
    """
    kinds = rows.account_kinds
    orders = {row[0]: row for row in rows.orders}
    transfers = {row[0]: row for row in rows.transfers}
    unpaid: list[str] = []
    unsigned: list[str] = []
    for order_id, agreement_id, resource, cost, countersigned_at, starts_at in rows.lines:
        order = orders.get(order_id)
        if order is None:
            continue  # its payment, if there is one, has no order that says so
        _, user, state, _, valid_until, settled_at, entered, settled = order
        payment = transfers.get(f"payment:{agreement_id}")
        signed = None
        paid = False
        if payment is not None:
            _, _, _, paid_order, debit, credit, amount, posted_at, voided_at, paid_entered, paid_settled, mark = payment
            signed = mark if paid_order == order_id else None
            paid = (
                (paid_order, debit, credit, amount) == (order_id, user, resource, cost)
                and posted_at == (settled_at if state == "posted" else None)
                and voided_at == (settled_at if state == "voided" else None)
                and paid_entered is not None
                and (entered is None or paid_entered > entered)
                and (paid_settled is None) == (settled is None)
                and (settled is None or paid_entered < settled < paid_settled)
            )
        if (state == "reserved" or settled is not None) and not (paid and kinds.get(resource) == "resource"):
            of = f"its payment of {agreement_id} from {user} to {resource}"
            unpaid.append(f"order {order_id} is {state}, but {of} is not")
        if (
            (countersigned_at is None) != (signed is None)
            or (countersigned_at is None) != (starts_at is None)
            or (countersigned_at is None and state == "posted")
            or (countersigned_at is not None and countersigned_at >= valid_until)
            or (signed is not None and entered is not None and signed < entered)
            or (signed is not None and settled is not None and signed > settled)
        ):
            denied = f"{resource}'s countersignature of {agreement_id} denies it"
            unsigned.append(f"order {order_id} of {user} is {state}, and {denied}")
    return unpaid + unsigned


def compare_payments(rows: Rows) -> list[str]:
    """Check that each payment belongs to an order."""
    unsettled = {row[0] for row in rows.orders if row[2] != "reserved" and row[-1] is None}
    lines = {(order_id, agreement_id) for order_id, agreement_id, *_ in rows.lines}
    return [
        f"{transfer_id} ({amount} minor units from {debit} to {credit}) has no order that says so"
        for transfer_id, kind, agreement_id, order_id, debit, credit, amount, *_ in rows.transfers
        if kind == "payment" and ((order_id, agreement_id) not in lines or order_id in unsettled)
    ]
