"""Text form of the ledger: printed, compared line by line, read back. After beancount's plain text accounting.

```
; ramp ledger 2
1970-01-01T00:00:00Z open market alice credit_limit 0.00
2026-03-01T12:00:00Z * deposit d-1 "start"         posted at once (! instead of *: pending, in escrow)
  market -100.00
  alice 100.00
2026-03-01T12:05:00Z order o-1 of alice valid_until 2026-03-01T12:10:00Z reserved
  a-1 hector 20.00 ; offer-1                       agreement, resource and cost of each line, and its offer
2026-03-01T12:05:00Z ! payment a-1 order o-1 ""
  alice -20.00
  hector 20.00
2026-03-01T12:06:00Z countersign a-1 starts 2026-03-01T13:00:00Z
2026-03-01T12:06:00Z post order o-1                or void order o-1 expired "too late"
2026-03-01T12:06:00Z post payment a-1              or void
2026-03-01T12:07:00Z order o-2 of alice valid_until 2026-03-01T12:10:00Z refused insufficient_funds "too little"
  a-2 hector 200.00
2026-03-01T13:00:00Z * refund a-1 reverses payment:a-1 order o-1 ""
2026-03-01T13:01:00Z refuse a-3 bad_signature "the user's signature is broken"     before there were orders
2026-03-01T14:00:00Z close alice
balance alice posted 100.00 reserved 0.00
```

Entries stand in the order in which they happened. The balances at the end are assertions: reading checks them. Lines
that begin with `;` and empty lines are skipped. Amounts are in credits, times in UTC. The form's first version had no
orders and is read too.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NoReturn

from ramp.errors import DocumentError
from ramp.ledger.account import Account, AccountKind, Balance
from ramp.ledger.book import Book
from ramp.ledger.entry import (
    AccountClosed,
    AccountOpened,
    AgreementCountersigned,
    AgreementRefused,
    Entry,
    OrderEntered,
    OrderSettled,
    Refusal,
    TransferEntered,
    TransferSettled,
    balance_changes,
)
from ramp.ledger.orders.order import Order, OrderLine, OrderState
from ramp.ledger.transfer import Transfer, TransferKind, TransferState, transfer_id_of
from ramp.model.instant import Instant, from_iso, iso
from ramp.model.money import credits_text, parse_credits

HEADER: Final = "; ramp ledger 2"
"""First line of every text, with the version of the form."""

_HEADERS_READ: Final = ("; ramp ledger 1", HEADER)

_QUOTED: Final = r'(?P<text>"(?:[^"\\]|\\.)*")'
_OPEN: Final = re.compile(r"open (?P<kind>\S+) (?P<account>\S+) credit_limit (?P<limit>.+)")
_CLOSE: Final = re.compile(r"close (?P<account>\S+)")
_ENTER: Final = re.compile(
    rf"(?P<flag>[*!]) (?P<kind>\S+) (?P<agreement>\S+)(?: reverses (?P<reverses>\S+))?"
    rf"(?: order (?P<order>\S+))? {_QUOTED}"
)
_ORDER: Final = re.compile(
    r"order (?P<order>\S+) of (?P<user>\S+) valid_until (?P<until>\S+) "
    rf"(?P<state>reserved|(?:refused|voided) (?P<code>\S+) {_QUOTED})"
)
_ORDER_LINE: Final = re.compile(r"  (?P<agreement>\S+) (?P<resource>\S+) (?P<cost>[^;]+?)(?: ; (?P<offer>\S+))?")
_COUNTERSIGN: Final = re.compile(r"countersign (?P<agreement>\S+) starts (?P<starts>\S+)")
_SETTLE_ORDER: Final = re.compile(rf"(?:post order (?P<posted>\S+)|void order (?P<voided>\S+) (?P<code>\S+) {_QUOTED})")
_SETTLE: Final = re.compile(r"(?P<verb>post|void) (?P<kind>\S+) (?P<agreement>\S+)")
_REFUSE: Final = re.compile(rf"refuse (?P<agreement>\S+) (?P<code>\S+) {_QUOTED}")
_LEG: Final = re.compile(r"  (?P<account>\S+) (?P<amount>.+)")
_BALANCE: Final = re.compile(r"balance (?P<account>\S+) posted (?P<posted>.+) reserved (?P<reserved>.+)")


def ledger_text(entries: Iterable[Entry], balances: Iterable[Balance] = ()) -> str:
    """Write entries, and balances as assertions after them.

    Args:
        entries: as `Ledger.entries()` gives them.
        balances: as `Ledger.balances()` gives them; none for a part of a ledger.
    """
    lines = [HEADER]
    for entry in entries:
        lines.extend(_entry_lines(entry))
    for balance in balances:
        amounts = f"posted {credits_text(balance.posted)} reserved {credits_text(balance.reserved)}"
        lines.append(f"balance {balance.account.account_id} {amounts}")
    return "\n".join(lines) + "\n"


def _entry_lines(entry: Entry) -> Iterator[str]:
    match entry:
        case AccountOpened(account):
            limit = credits_text(account.credit_limit)
            yield f"{iso(account.opened_at)} open {account.kind} {account.account_id} credit_limit {limit}"
        case AccountClosed(account):
            assert account.closed_at is not None
            yield f"{iso(account.closed_at)} close {account.account_id}"
        case TransferEntered(transfer):
            flag = "*" if transfer.state is TransferState.POSTED else "!"
            reverses = f" reverses {transfer.reverses}" if transfer.reverses is not None else ""
            order_id = f" order {transfer.order_id}" if transfer.order_id else ""
            references = f"{transfer.agreement_id}{reverses}{order_id}"
            yield f"{iso(transfer.entered_at)} {flag} {transfer.kind} {references} {_quoted(transfer.memo)}"
            yield f"  {transfer.debit_account} {credits_text(-transfer.amount)}"
            yield f"  {transfer.credit_account} {credits_text(transfer.amount)}"
        case TransferSettled(transfer):
            assert transfer.settled_at is not None
            verb = "post" if transfer.state is TransferState.POSTED else "void"
            yield f"{iso(transfer.settled_at)} {verb} {transfer.kind} {transfer.agreement_id}"
        case AgreementRefused(refusal):
            yield f"{iso(refusal.refused_at)} refuse {refusal.agreement_id} {refusal.code} {_quoted(refusal.reason)}"
        case OrderEntered(order):
            terms = f"order {order.order_id} of {order.user} valid_until {iso(order.valid_until)}"
            why = "" if order.state is OrderState.RESERVED else f" {order.code} {_quoted(order.reason)}"
            yield f"{iso(order.entered_at)} {terms} {order.state}{why}"
            for line in order.lines:
                offer = f" ; {line.offer_id}" if line.offer_id else ""
                yield f"  {line.agreement_id} {line.resource} {credits_text(line.cost)}{offer}"
        case OrderSettled(order):
            assert order.settled_at is not None
            if order.state is OrderState.POSTED:
                yield f"{iso(order.settled_at)} post order {order.order_id}"
            else:
                yield f"{iso(order.settled_at)} void order {order.order_id} {order.code} {_quoted(order.reason)}"
        case AgreementCountersigned(agreement_id, at, starts_at):
            yield f"{iso(at)} countersign {agreement_id} starts {iso(starts_at)}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def parse_ledger(text: str, source: str = "ledger") -> Book:
    """Read a text back into a book and check its balance assertions.

    Whether the book is sound otherwise is what its `validate` says.

    Args:
        text: what `ledger_text` wrote, or a person.
        source: name of the file, for messages.

    Raises:
        DocumentError: naming line and value, if a line cannot be read or an assertion does not hold.
    """
    return _Reader(text, source).read()


class _Reader:
    """Reads one text; knows the accounts and transfers met so far, since later lines only name them."""

    def __init__(self, text: str, source: str) -> None:
        self._lines = text.splitlines()
        self._source = source
        self._number = 0  # of the line being read, from 1
        self._accounts: dict[str, Account] = {}
        self._transfers: dict[str, Transfer] = {}
        self._orders: dict[str, Order] = {}
        self._posted: Counter[str] = Counter()
        self._reserved: Counter[str] = Counter()

    def read(self) -> Book:
        """The book that the lines say."""
        entries: list[Entry] = []
        if not self._lines or self._lines[0].strip() not in _HEADERS_READ:
            self._number = 1
            self._fail(f"the first line must be {HEADER!r}")
        while (line := self._next_line()) is not None:
            if found := _BALANCE.fullmatch(line):
                self._check_balance(found)
                continue
            entry = self._entry(line)
            for change in balance_changes(entry):
                self._posted[change.account_id] += change.posted
                self._reserved[change.account_id] += change.reserved
            entries.append(entry)
        return Book(entries)

    def _next_line(self) -> str | None:
        while self._number < len(self._lines):
            line = self._lines[self._number].rstrip()
            self._number += 1
            if line and not line.startswith(";"):
                return line
        return None

    def _fail(self, reason: str) -> NoReturn:
        raise DocumentError(f"line {self._number}: {reason}", source=self._source)

    def _entry(self, line: str) -> Entry:
        time_text, _, rest = line.partition(" ")
        at = self._instant(time_text)
        if found := _OPEN.fullmatch(rest):
            kind = self._account_kind(found["kind"])
            account = Account(found["account"], kind, self._amount(found["limit"]), at)
            self._accounts[account.account_id] = account
            return AccountOpened(account)
        if found := _CLOSE.fullmatch(rest):
            self._check_known(found["account"])
            return AccountClosed(replace(self._accounts[found["account"]], closed_at=at))
        if found := _ENTER.fullmatch(rest):
            return self._entered(found, at)
        if found := _ORDER.fullmatch(rest):
            return self._order(found, at)
        if found := _COUNTERSIGN.fullmatch(rest):
            return self._countersigned(found, at)
        if found := _SETTLE_ORDER.fullmatch(rest):
            return self._order_settled(found, at)
        if found := _SETTLE.fullmatch(rest):
            transfer_id = transfer_id_of(found["agreement"], self._transfer_kind(found["kind"]))
            if transfer_id not in self._transfers:
                self._fail(f"{found['verb']} of {transfer_id}, which was never entered")
            there = self._transfers[transfer_id]
            settled = replace(there, posted_at=at) if found["verb"] == "post" else replace(there, voided_at=at)
            self._transfers[transfer_id] = settled
            return TransferSettled(settled)
        if found := _REFUSE.fullmatch(rest):
            return AgreementRefused(Refusal(found["agreement"], found["code"], self._text(found["text"]), at))
        return self._fail(
            f"{line!r} is no entry; right would be open, close, * or ! and a transfer, order, countersign, post, void, "
            "refuse"
        )

    def _entered(self, found: re.Match[str], at: Instant) -> TransferEntered:
        kind = self._transfer_kind(found["kind"])
        memo = self._text(found["text"])
        (debit_account, given), (credit_account, got) = self._leg(), self._leg()
        if given >= 0 or given + got != 0:
            self._fail(
                f"{credits_text(given)} and {credits_text(got)}: the first must be negative and both sum to zero"
            )
        transfer = Transfer(
            transfer_id=transfer_id_of(found["agreement"], kind),
            debit_account=debit_account,
            credit_account=credit_account,
            amount=got,
            agreement_id=found["agreement"],
            kind=kind,
            entered_at=at,
            posted_at=at if found["flag"] == "*" else None,
            reverses=found["reverses"],
            memo=memo,
            order_id=found["order"] or "",
        )
        self._transfers[transfer.transfer_id] = transfer
        return TransferEntered(transfer)

    def _order(self, found: re.Match[str], at: Instant) -> OrderEntered:
        state = OrderState(found["state"].partition(" ")[0])
        reserved = state is OrderState.RESERVED
        order = Order(
            order_id=found["order"],
            user=found["user"],
            lines=tuple(self._order_lines()),
            valid_until=self._instant(found["until"]),
            entered_at=at,
            state=state,
            settled_at=None if reserved else at,
            code="" if reserved else found["code"],
            reason="" if reserved else self._text(found["text"]),
        )
        self._orders[order.order_id] = order
        return OrderEntered(order)

    def _order_lines(self) -> Iterator[OrderLine]:
        while True:
            before = self._number
            line = self._next_line() or ""
            found = _ORDER_LINE.fullmatch(line)
            if found is None:
                self._number = before  # the next entry's
                return
            yield OrderLine(found["agreement"], found["resource"], self._amount(found["cost"]), found["offer"] or "")

    def _countersigned(self, found: re.Match[str], at: Instant) -> AgreementCountersigned:
        payment = self._transfers.get(transfer_id_of(found["agreement"], TransferKind.PAYMENT))
        order = None if payment is None else self._orders.get(payment.order_id)
        if order is None:
            self._fail(f"countersign of {found['agreement']}, which no order has")
        marked = {*order.countersigned, found["agreement"]}
        in_order = tuple(line.agreement_id for line in order.lines if line.agreement_id in marked)
        self._orders[order.order_id] = replace(order, countersigned=in_order)
        return AgreementCountersigned(found["agreement"], at, self._instant(found["starts"]))

    def _order_settled(self, found: re.Match[str], at: Instant) -> OrderSettled:
        order_id = found["posted"] or found["voided"]
        if order_id not in self._orders:
            self._fail(f"end of order {order_id}, which was never entered")
        order = replace(self._orders[order_id], settled_at=at)
        if found["posted"]:
            order = replace(order, state=OrderState.POSTED)
        else:
            order = replace(order, state=OrderState.VOIDED, code=found["code"], reason=self._text(found["text"]))
        self._orders[order_id] = order
        return OrderSettled(order)

    def _leg(self) -> tuple[str, int]:
        line = self._next_line() or ""
        found = _LEG.fullmatch(line)
        if found is None:
            self._fail(f"{line!r} is no line of a transfer; right would be two spaces, an account and an amount")
        self._check_known(found["account"])
        return found["account"], self._amount(found["amount"])

    def _check_known(self, account_id: str) -> None:
        if account_id not in self._accounts:
            self._fail(f"account {account_id} was never opened")

    def _check_balance(self, found: re.Match[str]) -> None:
        account_id = found["account"]
        self._check_known(account_id)
        for what, kept in (("posted", self._posted[account_id]), ("reserved", self._reserved[account_id])):
            if self._amount(found[what]) != kept:
                self._fail(f"{account_id} has {credits_text(kept)} {what}, not {found[what]}")

    def _instant(self, text: str) -> Instant:
        try:
            return from_iso(text)
        except ValueError:
            self._fail(f"{text!r} is no time; right would be for example 2026-03-01T12:00:00Z")

    def _amount(self, text: str) -> int:
        try:
            return parse_credits(text)
        except ValueError as error:
            self._fail(str(error))

    def _text(self, quoted: str) -> str:
        try:
            return str(json.loads(quoted))
        except ValueError:
            self._fail(f"{quoted} is no quoted text")

    def _account_kind(self, text: str) -> AccountKind:
        try:
            return AccountKind(text)
        except ValueError:
            self._fail(f"{text!r} is no kind of account; right would be {', '.join(AccountKind)}")

    def _transfer_kind(self, text: str) -> TransferKind:
        try:
            return TransferKind(text)
        except ValueError:
            self._fail(f"{text!r} is no kind of transfer; right would be {', '.join(TransferKind)}")
