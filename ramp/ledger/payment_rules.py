"""The rules of the ledger: checks and entries of each operation, for every storage.

A rule reads through `Records`, refuses with `LedgerRefusal`, and otherwise appends entries, which storage applies to
balances. It checks everything before it writes. Every operation is idempotent: repeated on the same terms it gives the
same answer and enters nothing; the same key with other terms is refused. Checks run in a fixed order (values, existing
entries, accounts, funds), so that every storage refuses with the same code. `ramp.ledger.order_rules` has the
rules of orders, `ramp.ledger.change_rules` those of changes and refunds.

Sources: paper sections 5.1.2 (debit and credit) and 6.3 (accounts, statement).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.ledger.entry import (
    ISSUING_ACCOUNT,
    Account,
    AccountKind,
    Action,
    Balance,
    Entry,
    Evidence,
    EvidenceKind,
    Transfer,
    agreement_of,
    transfer_id_of,
)
from ramp.ledger.records import Records
from ramp.ledger.refusals import (
    TEXT_LENGTH_MAX,
    RefusalCode,
    check_amount,
    check_evidence,
    check_identifier,
    check_instant,
    refuse,
)
from ramp.model.contents import StatementLine, TradeLine, TransferKind
from ramp.model.instant import Instant
from ramp.model.money import AMOUNT_MAX, credits_text
from ramp.text import one_line

Problem = tuple[RefusalCode, str]
"""Code and sentence of a refusal."""

OVERVIEW_LIMIT_MAX: Final = 10_000
"""Maximum transfers on one page."""


@dataclass(frozen=True, slots=True)
class Overview:
    """One page of the transfers posted in a period.

    Attributes:
        trades: posted transfers of this page, in order of posting.
        next_after: the next page's `after`, or None on the last page.
    """

    trades: tuple[TradeLine, ...]
    next_after: int | None


def open_account(
    records: Records, account_id: str, kind: AccountKind, *, at: Instant, credit_limit: int = 0
) -> Account:
    """Open an account; opening it again on the same terms returns the existing one.

    Raises:
        LedgerRefusal: `duplicate_differs`, `malformed_value`, `wrong_account` (a resource with an overdraft).
    """
    account = Account(account_id, kind, credit_limit, at)
    check_identifier("account id", account.account_id)
    check_instant("opening time", account.opened_at)
    limit = account.credit_limit
    if type(limit) is not int or not 0 <= limit <= AMOUNT_MAX:
        refuse(
            RefusalCode.MALFORMED_VALUE,
            f"credit limit must be an integer of 0 to {AMOUNT_MAX} minor units, got {limit!r}",
        )
    if limit and account.kind is AccountKind.RESOURCE:
        refuse(
            RefusalCode.WRONG_ACCOUNT,
            f"resource account {account.account_id} must have no overdraft, got {credits_text(limit)}: it only returns "
            "what it was paid",
        )
    there = records.balances([account.account_id]).get(account.account_id)
    if there is None:
        records.append(Entry(Action.OPENED, account))
        return account
    if (there.account.kind, there.account.credit_limit) != (account.kind, account.credit_limit):
        refuse(
            RefusalCode.DUPLICATE_DIFFERS,
            f"account {account.account_id} exists as a {there.account.kind} account with credit limit "
            f"{credits_text(there.account.credit_limit)}, not {account.kind} with {credits_text(limit)}",
        )
    return there.account


def deposit(
    records: Records,
    deposit_id: str,
    account_id: str,
    amount: int,
    *,
    at: Instant,
    memo: str = "",
    evidence: str = "",
) -> Transfer:
    """Credit a user's account with new money from the issuing account; `deposit_id` is the idempotency key.

    Raises:
        LedgerRefusal: `unknown_account`, `wrong_account`, `amount_not_positive`, `duplicate_differs`, ...
    """
    check_identifier("deposit id", deposit_id)
    check_identifier("credit account", account_id)
    check_amount("amount", amount)
    check_instant("time", at)
    check_evidence(evidence)
    if account_id == ISSUING_ACCOUNT:
        refuse(RefusalCode.SAME_ACCOUNT, f"deposit {deposit_id} must go to another account than {ISSUING_ACCOUNT}")
    wanted = Transfer(
        transfer_id=transfer_id_of(deposit_id, TransferKind.DEPOSIT),
        debit_account=ISSUING_ACCOUNT,
        credit_account=account_id,
        amount=amount,
        agreement_id=deposit_id,
        kind=TransferKind.DEPOSIT,
        entered_at=at,
        posted_at=at,
        memo=one_line(memo, TEXT_LENGTH_MAX),
    )
    there = _same_terms(records, wanted)
    if there is not None:
        return there
    balances = records.balances((ISSUING_ACCOUNT, account_id))
    if account_id not in balances:
        refuse(RefusalCode.UNKNOWN_ACCOUNT, f"no account {account_id}")
    kind = balances[account_id].account.kind
    if kind is not AccountKind.USER:
        refuse(RefusalCode.WRONG_ACCOUNT, f"account {account_id} is a {kind} account; deposits go to user accounts")
    available = balances[ISSUING_ACCOUNT].available
    if amount > available:
        refuse(
            RefusalCode.INSUFFICIENT_FUNDS,
            f"{ISSUING_ACCOUNT} has {credits_text(available)} available, needs {credits_text(amount)}",
        )
    records.append(Entry(Action.ENTERED, wanted))
    store_evidence(records, EvidenceKind.DEPOSIT, deposit_id, evidence, at)
    return wanted


def overview(
    records: Records, since: Instant | None, until: Instant | None, *, after: int = 0, limit: int = 500
) -> Overview:
    """Return one page of the transfers posted in a period (paper section 6.3).

    Args:
        records: the ledger.
        since: first instant, None for the beginning.
        until: last instant (included), None for everything so far.
        after: 0, or `next_after` of the page before.
        limit: transfers on a page, 1 to `OVERVIEW_LIMIT_MAX`.

    Raises:
        LedgerRefusal: `malformed_value`.
    """
    for name, instant in (("first instant", since), ("last instant", until)):
        if instant is not None:
            check_instant(name, instant)
    if type(limit) is not int or not 1 <= limit <= OVERVIEW_LIMIT_MAX:
        refuse(RefusalCode.MALFORMED_VALUE, f"limit must be an integer from 1 to {OVERVIEW_LIMIT_MAX}, got {limit!r}")
    if type(after) is not int or after < 0:
        refuse(RefusalCode.MALFORMED_VALUE, f"after must be 0 or next_after of a page, got {after!r}")
    found = records.trades(since, until, after, limit + 1)  # one more, to see whether there is a next page
    page = found[:limit]
    return Overview(
        trades=tuple(_trade_of(transfer) for _, transfer in page),
        next_after=page[-1][0] if len(found) > limit else None,
    )


def _trade_of(transfer: Transfer) -> TradeLine:
    """Return a posted transfer for the overview."""
    assert transfer.posted_at is not None
    return TradeLine(
        transfer_id=transfer.transfer_id,
        posted_at=transfer.posted_at,
        kind=str(transfer.kind),
        debit_account=transfer.debit_account,
        credit_account=transfer.credit_account,
        agreement_id=agreement_of(transfer),
        order_id=transfer.order_id,
        amount=transfer.amount,
    )


def statement(
    records: Records, account_id: str, since: Instant | None = None, until: Instant | None = None
) -> tuple[StatementLine, ...]:
    """Return the transfers of an account posted from `since` to `until` (both included), with a running balance.

    Raises:
        LedgerRefusal: `unknown_account`.
    """
    known_balance(records, account_id)
    balance = 0 if since is None else records.posted_before(account_id, since)
    lines = []
    for transfer in records.posted(account_id, since, until):
        debited = transfer.debit_account == account_id
        amount = -transfer.amount if debited else transfer.amount
        balance += amount
        assert transfer.posted_at is not None
        lines.append(
            StatementLine(
                transfer_id=transfer.transfer_id,
                posted_at=transfer.posted_at,
                kind=str(transfer.kind),
                counterparty=transfer.credit_account if debited else transfer.debit_account,
                agreement_id=agreement_of(transfer),
                amount=amount,
                balance=balance,
            )
        )
    return tuple(lines)


def known_balance(records: Records, account_id: str) -> Balance:
    """Return the balance of an account: posted, reserved, available; `LedgerRefusal` with `unknown_account`."""
    check_identifier("account id", account_id)
    there = records.balances([account_id]).get(account_id)
    if there is None:
        refuse(RefusalCode.UNKNOWN_ACCOUNT, f"no account {account_id}")
    return there


def store_evidence(records: Records, kind: EvidenceKind, reference: str, text: str, at: Instant) -> None:
    """Store the signed message that justifies a change, unless the text is empty."""
    if text:
        records.add_evidence(Evidence(reference, kind, text, at))


def _same_terms(records: Records, wanted: Transfer) -> Transfer | None:
    """Return the existing transfer with the same key, or None; refuse it if its terms differ (memos may)."""
    there = records.transfer(wanted.agreement_id, wanted.kind)
    if there is None:
        return None
    terms = (there.debit_account, there.credit_account, there.amount)
    if terms != (wanted.debit_account, wanted.credit_account, wanted.amount):
        refuse(
            RefusalCode.DUPLICATE_DIFFERS,
            f"{there.kind} {there.agreement_id} exists as {credits_text(there.amount)} from {there.debit_account} to "
            f"{there.credit_account}, not {credits_text(wanted.amount)} from {wanted.debit_account} to "
            f"{wanted.credit_account}",
        )
    return there
