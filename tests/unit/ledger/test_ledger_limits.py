"""What the ledger takes and refuses at the very edge of each limit, and what operations leave out, in memory."""

from dataclasses import replace
from unittest.mock import patch

import pytest
from ledger_answers import end, fail, refusal_code

from ramp.errors import LedgerRefusal
from ramp.ledger.entry import EVIDENCE_LENGTH_MAX, ISSUER, AccountKind
from ramp.ledger.refusals import (
    IDENTIFIER_LENGTH_MAX,
    TEXT_LENGTH_MAX,
    RefusalCode,
    check_evidence,
    check_identifier,
    check_instant,
)
from ramp.model.contents import OrderLine, TransferKind
from ramp.model.money import AMOUNT_MAX
from ramp.text import one_line
from simulation.market.book import Book


@pytest.mark.parametrize("name", ["a", "a" * IDENTIFIER_LENGTH_MAX, "alice@grid.example"])
def test_names_that_are_taken(name: str) -> None:
    check_identifier("account id", name)


@pytest.mark.parametrize("name", ["", "a" * (IDENTIFIER_LENGTH_MAX + 1), 'a"b', "a b", "a\tb"])
def test_names_that_are_refused(name: str) -> None:
    assert refusal_code(lambda: check_identifier("account id", name)) == RefusalCode.MALFORMED_VALUE


def test_a_moment_is_a_whole_number_from_1970_on() -> None:
    check_instant("time", 0)
    for wrong in (-1, 1.0, True):
        with pytest.raises(LedgerRefusal):
            check_instant("time", wrong)  # type: ignore[arg-type]  # what a caller without mypy may do


@pytest.mark.parametrize("text", ["", "a" * EVIDENCE_LENGTH_MAX, chr(0xD7FF), chr(0xE000), "é"])
def test_evidence_that_is_kept(text: str) -> None:
    check_evidence(text)


@pytest.mark.parametrize("text", ["a" * (EVIDENCE_LENGTH_MAX + 1), "a\0", chr(0xD800), chr(0xDFFF)])
def test_evidence_that_could_not_be_kept(text: str) -> None:
    """Surrogates are U+D800 to U+DFFF (Unicode 15, section 3.8); no database takes one, nor PostgreSQL a NUL."""
    assert refusal_code(lambda: check_evidence(text)) == RefusalCode.MALFORMED_VALUE


def test_what_cannot_be_printed_becomes_one_question_mark() -> None:
    assert one_line("two \n lines\x1b[1m", TEXT_LENGTH_MAX) == "two lines?[1m"


def test_all_that_may_be_issued_can_be_and_no_more() -> None:
    with patch("simulation.market.book.ISSUER", replace(ISSUER, credit_limit=100)):
        book = Book()
    book.open_account("alice", AccountKind.USER, at=1)
    assert refusal_code(lambda: book.deposit("d-1", "alice", 101, at=2)) == RefusalCode.INSUFFICIENT_FUNDS
    assert book.deposit("d-2", "alice", 100, at=2).amount == 100


@pytest.mark.parametrize("limit", [0, AMOUNT_MAX])
def test_credit_limits_that_are_taken(limit: int) -> None:
    assert Book().open_account("alice", AccountKind.USER, at=1, credit_limit=limit).credit_limit == limit


@pytest.mark.parametrize("limit", [-1, AMOUNT_MAX + 1, 1.5, True])
def test_credit_limits_that_are_refused(limit: int) -> None:
    code = refusal_code(lambda: Book().open_account("alice", AccountKind.USER, at=1, credit_limit=limit))
    assert code == RefusalCode.MALFORMED_VALUE


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
    assert len(book.deposit("d-10", "alice", 1, at=41, memo="x" * 1_001).memo) == 1_000
