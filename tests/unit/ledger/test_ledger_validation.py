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
    AgreementCountersigned,
    Entry,
    OrderEntered,
    OrderSettled,
    TransferEntered,
    TransferSettled,
    balance_changes,
)
from ramp.ledger.orders.order import Order, OrderLine, OrderState
from ramp.ledger.transfer import Transfer, TransferKind, agreement_of, transfer_id_of
from ramp.ledger.validation import check_refunds, validate

ALICE = Account("alice", AccountKind.USER, 0, 1)
HECTOR = Account("hector", AccountKind.RESOURCE, 0, 1)


def posted(kind: TransferKind, agreement: str, debit: str, credit: str, amount: int) -> Transfer:
    return Transfer(transfer_id_of(agreement, kind), debit, credit, amount, agreement, kind, 5, posted_at=5)


DEPOSIT = posted(TransferKind.DEPOSIT, "d-1", "market", "alice", 100)
PAYMENT = posted(TransferKind.PAYMENT, "a-1", "alice", "hector", 60)
REFUND = posted(TransferKind.REFUND, "a-1", "hector", "alice", 60)
HELD = replace(PAYMENT, posted_at=None)
START: list[Entry] = [AccountOpened(ISSUER), AccountOpened(ALICE), AccountOpened(HECTOR), TransferEntered(DEPOSIT)]


# An order of two lines as it goes: reserved, one countersigned, the other, posted.
LINES = (OrderLine("a-1", "hector", 30), OrderLine("a-2", "hector", 20))
RESERVED = Order("o-1", "alice", LINES, 100, 10, OrderState.RESERVED)
SIGNED = replace(RESERVED, countersigned=("a-1", "a-2"))
POSTED = replace(SIGNED, state=OrderState.POSTED, settled_at=20)
VOIDED = replace(RESERVED, state=OrderState.VOIDED, settled_at=20, code="unwanted", reason="too dear")
PAY_1 = Transfer("payment:a-1", "alice", "hector", 30, "a-1", TransferKind.PAYMENT, 10, order_id="o-1")
PAY_2 = Transfer("payment:a-2", "alice", "hector", 20, "a-2", TransferKind.PAYMENT, 10, order_id="o-1")
ENTER: list[Entry] = [OrderEntered(RESERVED), TransferEntered(PAY_1), TransferEntered(PAY_2)]
SIGN: list[Entry] = [AgreementCountersigned("a-1", 15, 500), AgreementCountersigned("a-2", 20, 500)]
POST_1, POST_2 = (TransferSettled(replace(one, posted_at=20)) for one in (PAY_1, PAY_2))
VOID_1, VOID_2 = (TransferSettled(replace(one, voided_at=20)) for one in (PAY_1, PAY_2))
REFUND_1 = Transfer("refund:a-1", "hector", "alice", 30, "a-1", TransferKind.REFUND, 30, 30, order_id="o-1")


def test_what_stands_on_an_account_that_was_closed_all_the_same_is_not_lost() -> None:
    book = Book([*START, AccountClosed(replace(ALICE, closed_at=9))])
    assert (book.balance("alice").posted, book.balance("alice").account.closed_at) == (100, 9)


def test_a_sound_ledger_has_no_findings() -> None:
    entries = [
        *START,
        *ENTER,
        *SIGN,
        OrderSettled(POSTED),
        POST_1,
        POST_2,
        TransferEntered(REFUND_1),
        OrderEntered(replace(VOIDED, order_id="o-2", entered_at=20)),
        OrderEntered(replace(VOIDED, order_id="o-3", user="nobody", state=OrderState.REFUSED)),
    ]
    book = Book(entries)
    assert book.validate() == []
    assert book.order("o-1") == POSTED
    assert [(balance.account.account_id, balance.posted) for balance in book.balances()] == [
        ("alice", 80),
        ("hector", 20),
        ("market", -100),
    ]


def test_a_voided_order_has_no_findings() -> None:
    book = Book([*START, *ENTER, SIGN[0], OrderSettled(replace(VOIDED, countersigned=("a-1",))), VOID_1, VOID_2])
    assert book.validate() == []
    assert book.balance("alice").available == 100


def test_what_a_void_has_given_back_may_be_spent() -> None:
    whole = replace(RESERVED, order_id="o-2", lines=(OrderLine("a-3", "hector", 100),), entered_at=30, valid_until=200)
    pay = Transfer("payment:a-3", "alice", "hector", 100, "a-3", TransferKind.PAYMENT, 30, order_id="o-2")
    voided = [*START, *ENTER, OrderSettled(VOIDED), VOID_1, VOID_2]
    assert Book([*voided, OrderEntered(whole), TransferEntered(pay)]).validate() == []


def test_every_refund_is_looked_at_and_all_of_a_payment_together() -> None:
    stray = [replace(REFUND, transfer_id=f"refund:{name}", agreement_id=name) for name in ("x", "y")]
    findings = Book([*START, *map(TransferEntered, stray)]).validate()
    assert [line for line in findings if "has no posted payment" in line] == [
        "refund:x is for x, which has no posted payment",
        "refund:y is for y, which has no posted payment",
    ]
    parts = [replace(REFUND, transfer_id=f"refund:a-1#{n}", agreement_id=f"a-1#{n}", amount=40) for n in (1, 2)]
    findings = Book([*START, TransferEntered(PAYMENT), *map(TransferEntered, parts)]).validate()
    assert [line for line in findings if "above" in line] == [
        "refund:a-1#2 brings the refunds of a-1 above what was paid"
    ]


def test_every_addition_is_looked_at_and_what_it_adds_to() -> None:
    open_one, of_nothing, of_another, elsewhere = (
        replace(PAYMENT, transfer_id=f"payment:a-1#{number}", agreement_id=f"a-1#{number}", amount=7)
        for number in range(4)
    )
    added = {"payment:a-1#0": "a-1", "payment:a-1#1": "b-1", "payment:a-1#2": "a-1", "payment:a-1#3": "c-1"}
    transfers = [PAYMENT, replace(open_one, posted_at=None), of_nothing, replace(of_another, credit_account="kelvin")]
    assert check_refunds([*transfers, elsewhere], added) == [
        "payment:a-1#1 adds to b-1, which has no payment between the same parties",
        "payment:a-1#2 adds to a-1, which has no payment between the same parties",
        "payment:a-1#3 adds to c-1, which has no payment between the same parties",
    ]


def test_a_refund_belongs_to_the_agreement_before_the_mark() -> None:
    assert agreement_of(replace(REFUND, agreement_id="a#1")) == "a"
    assert agreement_of(REFUND) == "a-1"
    assert agreement_of(replace(PAYMENT, agreement_id="a#1")) == "a#1"


def test_what_was_returned_of_an_addition_counts_with_its_agreement() -> None:
    """A slot of 30 that has grown by 20: 20 went back by a change, and all 50 with the slot."""
    line = OrderLine("a-1#1", "hector", 20, "", "state-0", "state-1")
    order = replace(RESERVED, order_id="o-2", lines=(line,), entered_at=25, valid_until=200)
    pay = Transfer("payment:a-1#1", "alice", "hector", 20, "a-1#1", TransferKind.PAYMENT, 25, order_id="o-2")
    part = replace(REFUND_1, transfer_id="refund:a-1#2", agreement_id="a-1#2", amount=20)
    grown: list[Entry] = [
        *START,
        *ENTER,
        *SIGN,
        OrderSettled(POSTED),
        POST_1,
        POST_2,
        OrderEntered(order),
        TransferEntered(pay),
        AgreementCountersigned("a-1#1", 26, 500),
        OrderSettled(replace(order, state=OrderState.POSTED, settled_at=26, countersigned=("a-1#1",))),
        TransferSettled(replace(pay, posted_at=26)),
        TransferEntered(part),
    ]
    assert Book([*grown, TransferEntered(REFUND_1)]).validate() == []
    assert Book([*grown, TransferEntered(replace(REFUND_1, amount=50))]).validate() == [
        "refund:a-1 brings the refunds of a-1 above what was paid"
    ]


def test_every_account_is_looked_at() -> None:
    findings = validate([*START, *ENTER], {})
    assert [line.split(" is kept as ")[0] for line in findings] == ["account alice", "account hector", "account market"]


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
        ([TransferSettled(PAYMENT)], "payment:a-1 is settled but was never entered"),
        (
            [TransferEntered(PAYMENT), TransferSettled(PAYMENT)],
            "payment:a-1 is settled as posted but was already posted",
        ),
        (
            [TransferEntered(HELD), TransferSettled(replace(PAYMENT, amount=61))],
            "payment:a-1 is settled on other terms",
        ),
        (
            [TransferEntered(PAYMENT), TransferEntered(replace(REFUND, amount=61))],
            "refund:a-1 brings the refunds of a-1 above",
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
            "refund:a-1 is for a-1, which has no posted payment",
        ),
        ([AccountOpened(ALICE)], "account alice is opened twice"),
        ([AccountClosed(Account("bob", AccountKind.USER, 0, 1, 9))], "account bob is closed but was never opened"),
        (
            [AccountClosed(replace(HECTOR, closed_at=4)), TransferEntered(PAYMENT)],
            "references the closed account hector",
        ),
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
    spent = TransferEntered(replace(PAYMENT, debit_account="nobody"))
    assert any("brings nobody 60 minor units below" in line for line in validate([*START, spent], {}))


def test_kept_balances_are_compared_with_the_transfers() -> None:
    entries = [*START, *ENTER]
    kept = {balance.account.account_id: balance for balance in Book(entries).balances()}
    assert validate(entries, kept) == []
    assert validate(entries, kept | {"alice": replace(kept["alice"], posted=101)}) == [
        "account alice has 101 minor units posted, its transfers give 100",
        "all balances sum to 1 minor units instead of zero",
    ]
    assert validate(entries, kept | {"alice": replace(kept["alice"], reserved=0)}) == [
        "account alice has 0 minor units reserved, its transfers give 50"
    ]
    assert len(validate(entries, kept | {"bob": Balance(Account("bob", AccountKind.USER, 0, 1), 0, 0)})) == 1


@pytest.mark.parametrize(
    ("entries", "finding"),
    [
        ([TransferEntered(HELD)], "payment:a-1 is pending without a reserved order"),
        ([TransferEntered(PAY_1)], "payment:a-1 is pending without an order in that state"),
        ([*ENTER[:2]], "order o-1 is reserved without the payment of a-2"),
        ([*ENTER[:2], AccountOpened(Account("bob", AccountKind.USER, 0, 1)), ENTER[2]], "without the payment of a-2"),
        ([*ENTER[:2], TransferEntered(replace(PAY_2, amount=21))], "order o-1 is reserved, but its a-2 is not"),
        ([*ENTER[:2], TransferEntered(replace(PAY_2, posted_at=10))], "order o-1 is reserved, but its a-2 is not"),
        ([*ENTER[:2], TransferEntered(replace(PAY_2, order_id="o-2"))], "order o-1 is reserved, but its a-2 is not"),
        ([*ENTER, *SIGN, OrderSettled(POSTED), POST_1], "order o-1 is posted without the payment of a-2"),
        ([*ENTER, *SIGN, OrderSettled(POSTED), POST_1, VOID_2], "order o-1 is posted, but its a-2 is not"),
        ([*ENTER, *SIGN, OrderSettled(POSTED), VOID_1, VOID_2], "order o-1 is posted, but its a-1 is not"),
        ([*ENTER, *SIGN, POST_1, POST_2], "payment:a-1 is posted without an order in that state"),
        (
            [*ENTER, *SIGN, OrderSettled(POSTED), VOID_1, VOID_2, POST_1, POST_2],
            "payment:a-2 is posted without an order",
        ),
        ([*ENTER, TransferEntered(posted(TransferKind.PAYMENT, "a-9", "alice", "hector", 1))], "payment:a-9 is posted"),
        (
            [*ENTER, *SIGN, OrderSettled(replace(POSTED, settled_at=100)), POST_1, POST_2],
            "is posted after its deadline",
        ),
        (
            [*ENTER, SIGN[0], OrderSettled(replace(POSTED, countersigned=("a-1",))), POST_1, POST_2],
            "order o-1 is posted with 1 of 2 countersigned",
        ),
        ([*ENTER, SIGN[0], OrderSettled(POSTED), POST_1, POST_2], "order o-1 is settled on other terms"),
        (
            [*ENTER, OrderSettled(replace(VOIDED, valid_until=99)), VOID_1, VOID_2],
            "order o-1 is settled on other terms",
        ),
        ([*ENTER, OrderSettled(replace(VOIDED, settled_at=None)), VOID_1, VOID_2], "is settled as voided at None"),
        ([*ENTER, OrderSettled(replace(VOIDED, state=OrderState.REFUSED))], "is settled as refused at 20"),
        ([*ENTER, OrderSettled(VOIDED), VOID_1, VOID_2, OrderSettled(POSTED)], "posted but was voided"),
        ([OrderSettled(VOIDED)], "order o-1 is settled as voided but was never entered"),
        ([OrderEntered(POSTED)], "order o-1 is entered as posted"),
        ([OrderEntered(replace(VOIDED, countersigned=("a-1",)))], "order o-1 is entered with countersigned agreements"),
        ([OrderEntered(replace(VOIDED, settled_at=None))], "order o-1 is entered as voided with the end None"),
        ([OrderEntered(VOIDED), OrderEntered(VOIDED)], "order o-1 is entered twice"),
        ([OrderEntered(replace(RESERVED, lines=()))], "order o-1 is reserved without lines"),
        ([OrderEntered(replace(RESERVED, valid_until=10)), *ENTER[1:]], "order o-1 is reserved after its deadline"),
        (
            [OrderEntered(replace(RESERVED, user="hector")), *ENTER[1:]],
            "with hector, which is not a user account",
        ),
        (
            [OrderEntered(replace(RESERVED, lines=(OrderLine("a-1", "market", 5),)))],
            "with market, which is not a resource account",
        ),
        ([*ENTER, SIGN[0], SIGN[0]], "a-1 is countersigned, but no reserved order awaits it"),
        (
            [*ENTER, OrderSettled(VOIDED), VOID_1, VOID_2, SIGN[0]],
            "a-1 is countersigned, but no reserved order awaits it",
        ),
        ([*ENTER, AgreementCountersigned("a-1", 100, 500)], "a-1 is countersigned after the deadline of order o-1"),
        (
            [*ENTER, *SIGN, OrderSettled(POSTED), POST_1, POST_2, TransferEntered(replace(REFUND_1, order_id=""))],
            "refund:a-1 is not of the order of payment:a-1",
        ),
    ],
)
def test_each_invariant_of_orders_is_checked(entries: list[Entry], finding: str) -> None:
    findings = Book([*START, *entries]).validate()
    assert any(finding in line for line in findings), findings


def test_a_countersignature_that_no_order_waits_for_is_no_ledger() -> None:
    with pytest.raises(LedgerCorrupt, match="a-1"):
        Book([*START, SIGN[0]])
    assert any("a-1 is countersigned, but" in line for line in validate([*START, SIGN[0]], {}))


def test_no_refund_brings_a_resource_below_its_limit() -> None:
    """A seller that is paid 100 and pays 60 to another in league with it has 40 to return."""
    spent = posted(TransferKind.PAYMENT, "a-2", "hector", "kelvin", 60)
    kelvin = AccountOpened(Account("kelvin", AccountKind.RESOURCE, 0, 1))
    entries = [*START, kelvin, TransferEntered(PAYMENT), TransferEntered(spent), TransferEntered(REFUND)]
    assert any("refund:a-1 brings hector 60 minor" in line for line in Book(entries).validate())


@pytest.mark.parametrize(
    ("entries", "finding"),
    [
        ([AccountOpened(Account("kelvin", AccountKind.RESOURCE, 5, 1))], "kelvin has an overdraft of 5 minor units"),
        ([TransferEntered(posted(TransferKind.DEPOSIT, "d-2", "market", "hector", 5))], "from market to hector"),
        ([TransferEntered(posted(TransferKind.DEPOSIT, "d-2", "hector", "alice", 5))], "from hector to alice"),
    ],
)
def test_a_resource_has_no_money_but_what_it_was_paid(entries: list[Entry], finding: str) -> None:
    assert any(finding in line for line in Book([*START, *entries]).validate())


def test_a_refund_does_not_bring_a_user_below_its_limit() -> None:
    paid = posted(TransferKind.PAYMENT, "a-1", "hector", "alice", 100)
    funds = posted(TransferKind.DEPOSIT, "d-2", "market", "hector", 100)
    spent = posted(TransferKind.PAYMENT, "a-2", "alice", "hector", 200)
    back = posted(TransferKind.REFUND, "a-1", "alice", "hector", 100)
    entries = [*START, *(TransferEntered(one) for one in (funds, paid, spent, back))]
    assert any("refund:a-1 brings alice 100 minor units below" in line for line in Book(entries).validate())


@pytest.mark.parametrize(
    "entry",
    [
        TransferEntered(PAYMENT),
        TransferEntered(HELD),
        TransferSettled(PAYMENT),
        TransferSettled(replace(HELD, voided_at=9)),
        OrderEntered(RESERVED),
        OrderSettled(POSTED),
        SIGN[0],
    ],
)
def test_every_entry_is_balanced(entry: Entry) -> None:
    assert sum(change.posted for change in balance_changes(entry)) == 0
