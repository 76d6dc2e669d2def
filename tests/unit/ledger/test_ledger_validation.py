"""Every invariant of a ledger is seen to be broken by entries that break only it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ramp.errors import LedgerCorrupt
from ramp.ledger.account import ISSUER, Account, AccountKind, Balance
from ramp.ledger.book import Book
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
from ramp.ledger.transfer import Transfer, TransferKind, transfer_id_of
from ramp.ledger.validation import validate

ALICE = Account("alice", AccountKind.USER, 0, 1)
HECTOR = Account("hector", AccountKind.RESOURCE, 0, 1)


def posted(kind: TransferKind, agreement: str, debit: str, credit: str, amount: int) -> Transfer:
    reverses = transfer_id_of(agreement, TransferKind.PAYMENT) if kind is TransferKind.REFUND else None
    return Transfer(
        transfer_id_of(agreement, kind), debit, credit, amount, agreement, kind, 5, posted_at=5, reverses=reverses
    )


DEPOSIT = posted(TransferKind.DEPOSIT, "d-1", "market", "alice", 100)
PAYMENT = posted(TransferKind.PAYMENT, "a-1", "alice", "hector", 60)
REFUND = posted(TransferKind.REFUND, "a-1", "hector", "alice", 60)
HELD = replace(PAYMENT, posted_at=None)
START: list[Entry] = [AccountOpened(ISSUER), AccountOpened(ALICE), AccountOpened(HECTOR), TransferEntered(DEPOSIT)]


def test_a_sound_ledger_has_no_findings() -> None:
    entries = [
        *START,
        TransferEntered(HELD),
        TransferSettled(replace(HELD, posted_at=6)),
        TransferEntered(REFUND),
        TransferEntered(posted(TransferKind.PAYMENT, "a-2", "alice", "hector", 100)),
        AgreementRefused(Refusal("a-3", "expired", "too late", 9)),
    ]
    book = Book(entries)
    assert book.validate() == []
    assert [(balance.account.account_id, balance.posted) for balance in book.balances()] == [
        ("alice", 0),
        ("hector", 100),
        ("market", -100),
    ]


@pytest.mark.parametrize(
    ("entries", "finding"),
    [
        ([TransferEntered(replace(PAYMENT, amount=101))], "payment:a-1 brings alice 1 minor units below"),
        ([TransferEntered(replace(HELD, amount=101))], "payment:a-1 brings alice 1 minor units below"),
        ([TransferEntered(replace(PAYMENT, amount=0))], "payment:a-1 has the amount 0"),
        ([TransferEntered(replace(PAYMENT, credit_account="alice"))], "payment:a-1 goes from alice to itself"),
        ([TransferEntered(replace(PAYMENT, transfer_id="x"))], "payment a-1 has the id x"),
        ([TransferEntered(replace(PAYMENT, amount=1))] * 2, "payment a-1 is entered 2 times"),
        ([TransferEntered(replace(PAYMENT, voided_at=9))], "payment:a-1 is both posted and voided"),
        (
            [TransferEntered(replace(PAYMENT, reverses="deposit:d-1"))],
            "payment:a-1 reverses deposit:d-1 but is no refund",
        ),
        ([TransferSettled(PAYMENT)], "payment:a-1 is settled but was never entered"),
        (
            [TransferEntered(PAYMENT), TransferSettled(PAYMENT)],
            "payment:a-1 is settled as posted but was posted already",
        ),
        (
            [TransferEntered(HELD), TransferSettled(replace(PAYMENT, amount=61))],
            "payment:a-1 is settled on other terms",
        ),
        (
            [TransferEntered(PAYMENT), TransferEntered(replace(REFUND, amount=61))],
            "refund:a-1 brings refunds of payment:a-1",
        ),
        (
            [
                TransferEntered(PAYMENT),
                TransferEntered(replace(REFUND, debit_account="alice", credit_account="hector")),
            ],
            "refund:a-1 is not between the parties of payment:a-1",
        ),
        (
            [TransferEntered(HELD), TransferEntered(REFUND)],
            "refund:a-1 reverses payment:a-1, which is no posted payment",
        ),
        ([AccountOpened(ALICE)], "account alice is opened twice"),
        ([AccountClosed(Account("bob", AccountKind.USER, 0, 1, 9))], "account bob is closed but was never opened"),
        (
            [AccountClosed(replace(HECTOR, closed_at=4)), TransferEntered(PAYMENT)],
            "references the closed account hector",
        ),
        (
            [AgreementRefused(Refusal("a-1", "no", "", 4)), TransferEntered(PAYMENT)],
            "a-1 is refused, but payment:a-1 is posted",
        ),
        ([AgreementRefused(Refusal("a-1", "no", "", 4))] * 2, "a-1 is refused 2 times"),
    ],
)
def test_each_invariant_is_checked(entries: list[Entry], finding: str) -> None:
    findings = Book([*START, *entries]).validate()
    assert any(finding in line for line in findings), findings


def test_transfers_of_unknown_accounts_are_found() -> None:
    stray = TransferEntered(replace(PAYMENT, credit_account="nobody"))
    with pytest.raises(LedgerCorrupt, match="nobody"):
        Book([*START, stray])
    assert any("unknown account nobody" in line for line in validate([*START, stray], {}))


def test_kept_balances_are_compared_with_the_transfers() -> None:
    kept = {balance.account.account_id: balance for balance in Book([*START, TransferEntered(HELD)]).balances()}
    entries = [*START, TransferEntered(HELD)]
    assert validate(entries, kept) == []
    assert validate(entries, kept | {"alice": replace(kept["alice"], posted=101)}) == [
        "account alice has 101 minor units posted, its transfers give 100",
        "all balances sum to 1 minor units instead of zero",
    ]
    assert validate(entries, kept | {"alice": replace(kept["alice"], reserved=0)}) == [
        "account alice has 0 minor units reserved, its transfers give 60"
    ]
    assert len(validate(entries, kept | {"bob": Balance(Account("bob", AccountKind.USER, 0, 1), 0, 0)})) == 1


@pytest.mark.parametrize(
    "entry",
    [
        TransferEntered(PAYMENT),
        TransferEntered(HELD),
        TransferSettled(PAYMENT),
        TransferSettled(replace(HELD, voided_at=9)),
    ],
)
def test_every_entry_is_balanced(entry: Entry) -> None:
    assert sum(change.posted for change in balance_changes(entry)) == 0
