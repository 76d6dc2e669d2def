"""The printed form of the ledger, and of a statement: written out here by hand."""

from __future__ import annotations

import pytest

from ramp.errors import DocumentError
from ramp.ledger.account import AccountKind
from ramp.ledger.book import Book
from ramp.ledger.statement import statement_text
from ramp.ledger.text import ledger_text, parse_ledger
from ramp.model.instant import SECOND, from_iso

NOON = from_iso("2026-03-01T12:00:00Z")

LEDGER = """\
; ramp ledger 1
1970-01-01T00:00:00Z open market market credit_limit 10 000 000 000 000 000.00
2026-03-01T12:00:00Z open user alice@market.example credit_limit 5.00
2026-03-01T12:00:00Z open resource hector credit_limit 0.00
2026-03-01T12:00:01Z * deposit d-1 "start"
  market -12 345.67
  alice@market.example 12 345.67
2026-03-01T12:00:02Z ! payment a-1 ""
  alice@market.example -20.00
  hector 20.00
2026-03-01T12:00:02.500000Z post payment a-1
2026-03-01T12:00:03Z ! payment a-2 "say \\"ünit 2\\""
  alice@market.example -1.00
  hector 1.00
2026-03-01T12:00:04Z void payment a-2
2026-03-01T12:00:05Z * refund a-1 reverses payment:a-1 "cancelled"
  hector -20.00
  alice@market.example 20.00
2026-03-01T12:00:06Z refuse a-3 bad_signature "broken"
2026-03-01T12:00:07Z close hector
2026-03-01T12:00:08Z open resource kelvin credit_limit 0.00
2026-03-01T12:00:09Z ! payment a-4 ""
  alice@market.example -0.05
  kelvin 0.05
balance alice@market.example posted 12 345.67 reserved 0.05
balance hector posted 0.00 reserved 0.00
balance kelvin posted 0.00 reserved 0.00
balance market posted -12 345.67 reserved 0.00
"""

STATEMENT = """\
Statement of alice@market.example (user), in credits

time                         what             agreement  counterparty  amount    balance
                             opening balance                                   12 345.67
2026-03-01T12:00:02.500000Z  payment          a-1        hector        -20.00  12 325.67
2026-03-01T12:00:05Z         refund           a-1        hector         20.00  12 345.67
                             closing balance                                   12 345.67
2026-03-01T12:00:09Z         pending payment  a-4        kelvin         -0.05
"""


@pytest.fixture
def book() -> Book:
    made = Book()
    alice = "alice@market.example"
    made.open_account(alice, AccountKind.USER, credit_limit=500, at=NOON)
    made.open_account("hector", AccountKind.RESOURCE, at=NOON)
    made.deposit("d-1", alice, 1_234_567, at=NOON + 1 * SECOND, memo="start")
    made.set_pending("a-1", alice, "hector", 2_000, at=NOON + 2 * SECOND)
    made.post("a-1", at=NOON + 2 * SECOND + SECOND // 2)
    made.set_pending("a-2", alice, "hector", 100, at=NOON + 3 * SECOND, memo='say "ünit 2"')
    made.void("a-2", at=NOON + 4 * SECOND)
    made.refund("a-1", at=NOON + 5 * SECOND, memo="cancelled")
    made.record_refusal("a-3", "bad_signature", "broken", at=NOON + 6 * SECOND)
    made.close_account("hector", at=NOON + 7 * SECOND)
    made.open_account("kelvin", AccountKind.RESOURCE, at=NOON + 8 * SECOND)
    made.set_pending("a-4", alice, "kelvin", 5, at=NOON + 9 * SECOND)
    return made


def test_a_ledger_prints_as_written_here(book: Book) -> None:
    assert ledger_text(book.entries(), book.balances()) == LEDGER


def test_the_text_reads_back_to_the_same_entries(book: Book) -> None:
    copy = parse_ledger(LEDGER)
    assert copy.entries() == book.entries()
    assert copy.validate() == []


def test_a_statement_prints_as_written_here(book: Book) -> None:
    statement = book.statement("alice@market.example", since=NOON + 2 * SECOND, until=NOON + 5 * SECOND)
    assert statement_text(statement) == STATEMENT


def test_comments_and_empty_lines_are_skipped() -> None:
    text = LEDGER.replace("  hector 20.00\n", "; a comment\n\n  hector 20.00   \n", 1)
    assert parse_ledger(text).entries() == parse_ledger(LEDGER).entries()


def test_a_text_may_hold_what_no_ledger_accepts_and_validation_says_so() -> None:
    text = LEDGER.replace("credit_limit 5.00", "credit_limit 0.00").replace("12 345.67", "0.03")
    text = text[: text.index("2026-03-01T12:00:02.5")]
    assert parse_ledger(text).validate() == ["payment:a-1 brings alice@market.example 1997 minor units below its limit"]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("; ramp ledger 1", "; ramp ledger 2", r"books\.txt: line 1: .*ramp ledger 1"),
        ("balance hector posted 0.00", "balance hector posted 0.01", r"line 26: hector has 0\.00 posted, not 0\.01"),
        ("posted 12 345.67 reserved 0.05", "posted 12 345.67 reserved 0.00", "line 25: .* has 0.05 reserved, not 0.00"),
        ("balance kelvin", "balance kevin", "line 27: account kevin was never opened"),
        ("  kelvin 0.05", "  kelvin 0.06", r"line 24: -0\.05 and 0\.06: .* sum to zero"),
        ("  hector 20.00", "  nobody 20.00", "line 10: account nobody was never opened"),
        ("  hector 20.00", "hector 20.00", "line 10: 'hector 20.00' is no line of a transfer"),
        ("post payment a-1", "post payment a-9", "line 11: post of payment:a-9, which was never entered"),
        ("close hector", "close victor", "account victor was never opened"),
        (
            "open user alice",
            "open person alice",
            "'person' is no kind of account; right would be user, resource, market",
        ),
        ("* deposit d-1", "* gift d-1", "'gift' is no kind of transfer"),
        ("credit_limit 5.00", "credit_limit 5.001", "5.001"),
        ("2026-03-01T12:00:06Z", "yesterday", "'yesterday' is no time"),
        ("refuse a-3", "accept a-3", "is no entry"),
    ],
)
def test_a_line_that_is_not_right_is_named(right: str, wrong: str, message: str) -> None:
    assert right in LEDGER
    with pytest.raises(DocumentError, match=message):
        parse_ledger(LEDGER.replace(right, wrong, 1), "books.txt")


def test_an_empty_text_is_no_ledger() -> None:
    with pytest.raises(DocumentError, match="line 1"):
        parse_ledger("")
