"""What every operation of the ledger leaves behind and leaves out, on a book in memory."""

import pytest
from ledger_answers import end, fail

from ramp.ledger.entry import AccountKind
from ramp.model.contents import OrderLine, TransferKind
from simulation.market.book import Book

UNTIL, START = 1_000, 5_000


@pytest.fixture
def book() -> Book:
    """Alice and bob have 100.00 credits each."""
    made = Book()
    for number, name in enumerate(("alice", "bob")):
        made.open_account(name, AccountKind.USER, at=1)
        made.deposit(f"d-{number}", name, 10_000, at=2)
    made.open_account("hector", AccountKind.RESOURCE, at=1)
    return made


def reserve(book: Book, number: int, user: str = "alice") -> None:
    book.reserve_order(f"o-{number}", user, [OrderLine(f"a-{number}", "hector", 100)], UNTIL, at=10)


def test_what_is_done_without_a_signed_message_leaves_none(book: Book) -> None:
    for number in (1, 2, 3):
        reserve(book, number)
    for number in (1, 2):
        book.countersign(f"a-{number}", at=20, starts_at=START)
    end(book, "a-1", at=30)
    fail(book, "a-2", "hector", at=30, reason="it burns")
    book.void_order("o-3", "alice", UNTIL, at=30, code="unwanted", reason="too dear")
    book.void_order("o-4", "alice", UNTIL, at=30, code="unwanted", reason="it comes later")
    for reference in ("d-0", *(f"{kind}-{number}" for kind in "ao" for number in (1, 2, 3, 4))):
        assert book.evidence(reference) == ()


def test_the_overview_begins_with_the_first_transfer_and_has_500_on_a_page() -> None:
    book = Book()
    book.open_account("alice", AccountKind.USER, at=1)
    for number in range(501):
        book.deposit(f"d-{number}", "alice", 1, at=2)
    first = book.overview(None, None)
    assert [trade.agreement_id for trade in first.trades] == [f"d-{number}" for number in range(500)]
    assert first.next_after is not None
    last = book.overview(None, None, after=first.next_after)
    assert ([trade.agreement_id for trade in last.trades], last.next_after) == (["d-500"], None)


def test_a_statement_shows_nothing_of_others(book: Book) -> None:
    for number, user in ((1, "alice"), (2, "bob")):
        reserve(book, number, user=user)
        book.countersign(f"a-{number}", at=20, starts_at=START)
    assert [line.agreement_id for line in book.statement("alice", since=3)] == ["a-1"]


def test_what_nobody_has_written_down_has_no_memo(book: Book) -> None:
    reserve(book, 1)
    book.countersign("a-1", at=20, starts_at=START)
    end(book, "a-1", at=30)
    refund = book.transfer("a-1", TransferKind.REFUND)
    assert refund is not None
    assert refund.memo == ""
    assert book.deposit("d-9", "alice", 1, at=40).memo == ""
