"""Validation: the ledger's invariants, recomputed from its entries alone.

It shares no arithmetic with the code that keeps balances, so that each can catch the other's errors. Each function
checks one invariant and returns one sentence for each finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ramp.ledger.account import ISSUING_ACCOUNT, Account, AccountKind, Balance
from ramp.ledger.entry import (
    AccountClosed,
    AccountOpened,
    Entry,
    OrderEntered,
    TransferEntered,
    TransferSettled,
)
from ramp.ledger.orders.order import OrderState
from ramp.ledger.orders.validation import check_orders
from ramp.ledger.transfer import Transfer, TransferKind, TransferState, agreement_of, transfer_id_of


def validate(entries: Sequence[Entry], balances: Mapping[str, Balance]) -> list[str]:
    """Check every invariant; return one sentence for each finding.

    Args:
        entries: all entries, in order.
        balances: kept by the ledger, by account id.
    """
    transfers = final_transfers(entries)
    return [
        *check_references(entries),
        *check_unique(entries),
        *check_settlements(entries),
        *check_overdrafts(entries),
        *check_sellers(entries, transfers),
        *check_refunds(transfers, additions(entries)),
        *check_orders(entries, transfers),
        *check_balances(entries, transfers, balances),
    ]


def final_transfers(entries: Iterable[Entry]) -> list[Transfer]:
    """Return each transfer in its last state, in order of entry."""
    last: dict[str, Transfer] = {}
    for entry in entries:
        if isinstance(entry, TransferEntered | TransferSettled):
            last[entry.transfer.transfer_id] = entry.transfer
    return list(last.values())


def check_references(entries: Iterable[Entry]) -> list[str]:
    """Check that every transfer is between two different accounts, open when it was entered and settled."""
    findings = []
    state: dict[str, Account] = {}
    for entry in entries:
        match entry:
            case AccountOpened(account):
                if account.account_id in state:
                    findings.append(f"account {account.account_id} is opened twice")
                state[account.account_id] = account
            case AccountClosed(account):
                if account.account_id not in state:
                    findings.append(f"account {account.account_id} is closed but was never opened")
                state[account.account_id] = account
            case TransferEntered(transfer) | TransferSettled(transfer):
                if transfer.debit_account == transfer.credit_account:
                    findings.append(f"{transfer.transfer_id} goes from {transfer.debit_account} to itself")
                for account_id in (transfer.debit_account, transfer.credit_account):
                    if account_id not in state:
                        findings.append(f"{transfer.transfer_id} references the unknown account {account_id}")
                    elif state[account_id].closed_at is not None:
                        findings.append(f"{transfer.transfer_id} references the closed account {account_id}")
    return findings


def check_unique(entries: Iterable[Entry]) -> list[str]:
    """Check that idempotency keys are unique, and that each gives its transfer's id."""
    entered = [entry.transfer for entry in entries if isinstance(entry, TransferEntered)]
    counts = Counter((transfer.agreement_id, transfer.kind) for transfer in entered)
    findings = [
        f"{kind} {agreement} is entered {count} times" for (agreement, kind), count in counts.items() if count > 1
    ]
    findings.extend(
        f"{transfer.kind} {transfer.agreement_id} has the id {transfer.transfer_id} of another transfer"
        for transfer in entered
        if transfer.transfer_id != transfer_id_of(transfer.agreement_id, transfer.kind)
    )
    return findings


def check_settlements(entries: Iterable[Entry]) -> list[str]:
    """Check that amounts are above zero, and that only pending transfers are settled, once and on their terms."""
    findings = []
    now: dict[str, Transfer] = {}
    for entry in entries:
        if not isinstance(entry, TransferEntered | TransferSettled):
            continue
        transfer = entry.transfer
        if transfer.amount <= 0:
            findings.append(f"{transfer.transfer_id} has the amount {transfer.amount}, expected above zero")
        if transfer.posted_at is not None and transfer.voided_at is not None:
            findings.append(f"{transfer.transfer_id} is both posted and voided")
        if isinstance(entry, TransferSettled):
            before = now.get(transfer.transfer_id)
            if before is None:
                findings.append(f"{transfer.transfer_id} is settled but was never entered")
            elif before.state is not TransferState.PENDING:
                findings.append(f"{transfer.transfer_id} is settled as {transfer.state} but was already {before.state}")
            elif _terms(before) != _terms(transfer):
                findings.append(f"{transfer.transfer_id} is settled on other terms than it was entered on")
        now[transfer.transfer_id] = transfer
    return findings


def _terms(transfer: Transfer) -> tuple[str, str, int, str]:
    return (transfer.debit_account, transfer.credit_account, transfer.amount, transfer.order_id)


def check_overdrafts(entries: Iterable[Entry]) -> list[str]:
    """Check that no entry brings an account below its overdraft limit, with reservations counted as spent."""
    findings = []
    limits: dict[str, int] = {}
    spendable: Counter[str] = Counter()
    pending: set[str] = set()
    for entry in entries:
        if isinstance(entry, AccountOpened):
            limits[entry.account.account_id] = entry.account.credit_limit
        if not isinstance(entry, TransferEntered | TransferSettled):
            continue
        transfer = entry.transfer
        is_debited = transfer.transfer_id not in pending  # a pending amount counts as spent since its entry
        if is_debited:
            spendable[transfer.debit_account] -= transfer.amount
        if transfer.state is TransferState.PENDING:
            pending.add(transfer.transfer_id)
        elif transfer.state is TransferState.POSTED:
            spendable[transfer.credit_account] += transfer.amount
        else:
            spendable[transfer.debit_account] += transfer.amount
        missing = -spendable[transfer.debit_account] - limits.get(transfer.debit_account, 0)
        if missing > 0 and is_debited:
            findings.append(
                f"{transfer.transfer_id} brings {transfer.debit_account} {missing} minor units below its limit"
            )
    return findings


def check_sellers(entries: Iterable[Entry], transfers: Sequence[Transfer]) -> list[str]:
    """Check that resources have no overdraft, and that deposits go from the issuing account to users.

    With `check_orders` and `check_refunds` it follows that a resource only receives payments and only returns parts of
    them, so that nobody gains more than was deposited.
    """
    accounts = [entry.account for entry in entries if isinstance(entry, AccountOpened)]
    findings = [
        f"resource account {account.account_id} has an overdraft of {account.credit_limit} minor units"
        for account in accounts
        if account.kind is AccountKind.RESOURCE and account.credit_limit
    ]
    users = {account.account_id for account in accounts if account.kind is AccountKind.USER}
    findings.extend(
        f"{transfer.transfer_id} goes from {transfer.debit_account} to {transfer.credit_account}; deposits go from "
        f"{ISSUING_ACCOUNT} to users"
        for transfer in transfers
        if transfer.kind is TransferKind.DEPOSIT
        and (transfer.debit_account != ISSUING_ACCOUNT or transfer.credit_account not in users)
    )
    return findings


def additions(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the payment ids of additions, with the agreement that each adds to."""
    found = {}
    for entry in entries:
        if isinstance(entry, OrderEntered) and entry.order.state is OrderState.RESERVED:
            for line in entry.order.lines:
                if (named := line.amended) is not None:
                    found[transfer_id_of(line.agreement_id, TransferKind.PAYMENT)] = named[0]
    return found


def check_refunds(transfers: Sequence[Transfer], added: Mapping[str, str]) -> list[str]:
    """Check that refunds return parts of posted payments to their payer, in total at most what was paid.

    Args:
        transfers: each in its last state.
        added: see `additions`; the payment of an addition counts with its agreement's.
    """
    findings = []
    posted = [each for each in transfers if each.kind is TransferKind.PAYMENT and each.state is TransferState.POSTED]
    payments = {each.agreement_id: each for each in posted if each.transfer_id not in added}
    paid = {name: payment.amount for name, payment in payments.items()}
    for more in posted:
        agreement_id = added.get(more.transfer_id)
        if agreement_id is None:
            continue
        payment = payments.get(agreement_id)
        if payment is None or _parties(payment) != _parties(more):
            findings.append(f"{more.transfer_id} adds to {agreement_id}, which has no payment between the same parties")
            continue
        paid[agreement_id] += more.amount
    returned: Counter[str] = Counter()
    for refund in transfers:
        if refund.kind is not TransferKind.REFUND:
            continue
        agreement_id = agreement_of(refund)
        payment = payments.get(agreement_id)
        if payment is None:
            findings.append(f"{refund.transfer_id} is for {agreement_id}, which has no posted payment")
            continue
        if (refund.debit_account, refund.credit_account) != (payment.credit_account, payment.debit_account):
            findings.append(f"{refund.transfer_id} is not between the parties of {payment.transfer_id}")
        if refund.order_id != payment.order_id:
            findings.append(f"{refund.transfer_id} is not of the order of {payment.transfer_id}")
        returned[agreement_id] += refund.amount
        if returned[agreement_id] > paid[agreement_id]:
            findings.append(f"{refund.transfer_id} brings the refunds of {agreement_id} above what was paid")
    return findings


def _parties(transfer: Transfer) -> tuple[str, str]:
    return transfer.debit_account, transfer.credit_account


def check_balances(
    entries: Iterable[Entry], transfers: Sequence[Transfer], balances: Mapping[str, Balance]
) -> list[str]:
    """Check that the kept balances follow from the transfers, and sum to zero."""
    posted: Counter[str] = Counter()
    reserved: Counter[str] = Counter()
    for transfer in transfers:
        if transfer.state is TransferState.PENDING:
            reserved[transfer.debit_account] += transfer.amount
        if transfer.state is TransferState.POSTED:
            posted[transfer.debit_account] -= transfer.amount
            posted[transfer.credit_account] += transfer.amount
    accounts: dict[str, Account] = {}
    for entry in entries:
        if isinstance(entry, AccountOpened | AccountClosed):
            accounts[entry.account.account_id] = entry.account
    findings = []
    for account_id in sorted(accounts.keys() | balances.keys()):
        balance = balances.get(account_id)
        if balance is None or balance.account != accounts.get(account_id):
            findings.append(f"account {account_id} is kept as {balance}, its entries say {accounts.get(account_id)}")
            continue
        for what, kept, right in (
            ("posted", balance.posted, posted[account_id]),
            ("reserved", balance.reserved, reserved[account_id]),
        ):
            if kept != right:
                findings.append(f"account {account_id} has {kept} minor units {what}, its transfers give {right}")
    total = sum(balance.posted for balance in balances.values())
    if total != 0:
        findings.append(f"all balances sum to {total} minor units instead of zero")
    return findings
