"""The printed form of the ledger, and of a statement: written out here by hand."""

from __future__ import annotations

import pytest

from ramp.errors import DocumentError
from ramp.ledger.account import AccountKind
from ramp.ledger.book import Book
from ramp.ledger.entry import Refusal
from ramp.ledger.orders.order import OrderLine
from ramp.ledger.statement import statement_text
from ramp.ledger.text import ledger_text, parse_ledger
from ramp.model.instant import SECOND, from_iso

NOON = from_iso("2026-03-01T12:00:00Z")

LEDGER = """\
; ramp ledger 2
1970-01-01T00:00:00Z open market market credit_limit 10 000 000 000 000 000.00
2026-03-01T12:00:00Z open user alice@market.example credit_limit 5.00
2026-03-01T12:00:00Z open resource hector credit_limit 0.00
2026-03-01T12:00:01Z * deposit d-1 "start"
  market -12 345.67
  alice@market.example 12 345.67
2026-03-01T12:00:02Z order o-1 of alice@market.example valid_until 2026-03-01T12:05:00Z reserved
  a-1 hector 1 020.00
2026-03-01T12:00:02Z ! payment a-1 order o-1 ""
  alice@market.example -1 020.00
  hector 1 020.00
2026-03-01T12:00:02.500000Z countersign a-1 starts 2026-03-01T14:00:00Z
2026-03-01T12:00:02.500000Z post order o-1
2026-03-01T12:00:02.500000Z post payment a-1
2026-03-01T12:00:03Z order o-2 of alice@market.example valid_until 2026-03-01T12:05:00Z reserved
  a-2 hector 1.00
2026-03-01T12:00:03Z ! payment a-2 order o-2 ""
  alice@market.example -1.00
  hector 1.00
2026-03-01T12:00:04Z void order o-2 unwanted "say \\"ünit 2\\""
2026-03-01T12:00:04Z void payment a-2
2026-03-01T12:00:05Z * refund a-1 reverses payment:a-1 order o-1 "machine down"
  hector -1 020.00
  alice@market.example 1 020.00
2026-03-01T12:00:06Z order o-3 of alice@market.example valid_until 2026-03-01T12:05:00Z refused unknown_account \
"there is no account nobody"
  a-3 hector 1.00
  a-4 nobody 2.00
2026-03-01T12:00:07Z close hector
2026-03-01T12:00:08Z open resource kelvin credit_limit 0.00
2026-03-01T12:00:09Z order o-4 of alice@market.example valid_until 2026-03-01T12:05:00Z reserved
  a-3 kelvin 0.05
  a-4 kelvin 0.10
2026-03-01T12:00:09Z ! payment a-3 order o-4 ""
  alice@market.example -0.05
  kelvin 0.05
2026-03-01T12:00:09Z ! payment a-4 order o-4 ""
  alice@market.example -0.10
  kelvin 0.10
2026-03-01T12:00:10Z countersign a-4 starts 2026-03-01T14:00:00Z
2026-03-01T12:00:11Z order o-5 of alice@market.example valid_until 2026-03-01T12:05:00Z voided unwanted "too dear"
  a-5 kelvin 0.05
balance alice@market.example posted 12 345.67 reserved 0.15
balance hector posted 0.00 reserved 0.00
balance kelvin posted 0.00 reserved 0.00
balance market posted -12 345.67 reserved 0.00
"""

OLD_LEDGER = """\
; ramp ledger 1
1970-01-01T00:00:00Z open market market credit_limit 10 000 000 000 000 000.00
2026-03-01T12:00:00Z open user alice credit_limit 5.00
2026-03-01T12:00:00Z open resource hector credit_limit 0.00
2026-03-01T12:00:02Z * payment a-1 ""
  alice -4.00
  hector 4.00
2026-03-01T12:00:03Z ! payment a-2 ""
  alice -1.00
  hector 1.00
2026-03-01T12:00:04Z void payment a-2
2026-03-01T12:00:06Z refuse a-3 bad_signature "broken"
balance alice posted -4.00 reserved 0.00
"""

STATEMENT = """\
Statement of alice@market.example (user), in credits

time                         what             agreement  counterparty     amount    balance
                             opening balance                                      12 345.67
2026-03-01T12:00:02.500000Z  payment          a-1        hector        -1 020.00  11 325.67
2026-03-01T12:00:05Z         refund           a-1        hector         1 020.00  12 345.67
                             closing balance                                      12 345.67
2026-03-01T12:00:09Z         pending payment  a-3        kelvin            -0.05
2026-03-01T12:00:09Z         pending payment  a-4        kelvin            -0.10
"""


@pytest.fixture
def book() -> Book:
    made = Book()
    alice = "alice@market.example"
    made.open_account(alice, AccountKind.USER, credit_limit=500, at=NOON)
    made.open_account("hector", AccountKind.RESOURCE, at=NOON)
    made.deposit("d-1", alice, 1_234_567, at=NOON + 1 * SECOND, memo="start")
    until, start = NOON + 300 * SECOND, NOON + 7200 * SECOND
    made.reserve_order("o-1", alice, [OrderLine("a-1", "hector", 102_000)], until, at=NOON + 2 * SECOND)
    made.countersign("a-1", at=NOON + 2 * SECOND + SECOND // 2, starts_at=start)
    made.reserve_order("o-2", alice, [OrderLine("a-2", "hector", 100)], until, at=NOON + 3 * SECOND)
    made.void_order("o-2", alice, until, at=NOON + 4 * SECOND, code="unwanted", reason='say "ünit 2"')
    made.fail_agreement("a-1", "hector", at=NOON + 5 * SECOND, reason="machine down")
    lines = [OrderLine("a-3", "hector", 100), OrderLine("a-4", "nobody", 200)]
    made.reserve_order("o-3", alice, lines, until, at=NOON + 6 * SECOND)
    made.close_account("hector", at=NOON + 7 * SECOND)
    made.open_account("kelvin", AccountKind.RESOURCE, at=NOON + 8 * SECOND)
    lines = [OrderLine("a-3", "kelvin", 5), OrderLine("a-4", "kelvin", 10)]
    made.reserve_order("o-4", alice, lines, until, at=NOON + 9 * SECOND)
    made.countersign("a-4", at=NOON + 10 * SECOND, starts_at=start)
    made.void_order("o-5", alice, until, at=NOON + 10 * SECOND, code="unwanted", reason="too dear")
    made.reserve_order("o-5", alice, [OrderLine("a-5", "kelvin", 5)], until, at=NOON + 11 * SECOND)
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


SELLER_STATEMENT = """\
Statement of kelvin (resource), in credits

time                  what             agreement  counterparty          amount  balance
                      opening balance                                              0.00
                      closing balance                                              0.00
2026-03-01T12:00:09Z  pending payment  a-3        alice@market.example    0.05
2026-03-01T12:00:09Z  pending payment  a-4        alice@market.example    0.10
"""


def test_what_a_seller_waits_for_comes_from_its_buyer(book: Book) -> None:
    assert statement_text(book.statement("kelvin")) == SELLER_STATEMENT


def test_the_offer_of_a_line_is_printed_and_read_back(book: Book) -> None:
    line = OrderLine("a-6", "kelvin", 5, "offer-6")
    book.reserve_order("o-6", "alice@market.example", [line], NOON + 300 * SECOND, at=NOON + 12 * SECOND)
    text = ledger_text(book.entries())
    assert "\n  a-6 kelvin 0.05 ; offer-6\n" in text
    order = parse_ledger(text).order("o-6")
    assert order is not None
    assert order.lines == (line,)


def test_comments_and_empty_lines_are_skipped() -> None:
    text = LEDGER.replace("  hector 1 020.00\n", "; a comment\n\n  hector 1 020.00   \n", 1)
    text = text.replace("  a-4 kelvin 0.10\n", "; a comment\n\n  a-4 kelvin 0.10 \n", 1)
    assert parse_ledger(text).entries() == parse_ledger(LEDGER).entries()


def test_a_text_from_before_there_were_orders_reads_too() -> None:
    book = parse_ledger(OLD_LEDGER)
    assert book.validate() == []
    assert book.balance("hector").posted == 400
    assert book.refusal("a-3") == Refusal("a-3", "bad_signature", "broken", NOON + 6 * SECOND)
    assert ledger_text(book.entries()).splitlines()[1:] == OLD_LEDGER.splitlines()[1:-1]


def test_a_text_may_hold_what_no_ledger_accepts_and_validation_says_so() -> None:
    text = LEDGER.replace("credit_limit 5.00", "credit_limit 0.00").replace("12 345.67", "0.03")
    text = text[: text.index("2026-03-01T12:00:02.5")]
    assert parse_ledger(text).validate() == [
        "payment:a-1 brings alice@market.example 101997 minor units below its limit"
    ]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("; ramp ledger 2", "; ramp ledger 3", r"books\.txt: line 1: .*ramp ledger 2"),
        ("balance hector posted 0.00", "balance hector posted 0.01", r"line 44: hector has 0\.00 posted, not 0\.01"),
        ("posted 12 345.67 reserved 0.15", "posted 12 345.67 reserved 0.00", "line 43: .* has 0.15 reserved, not 0.00"),
        ("balance kelvin", "balance kevin", "line 45: account kevin was never opened"),
        ("  kelvin 0.05", "  kelvin 0.06", r"line 36: -0\.05 and 0\.06: .* sum to zero"),
        (
            "  market -12 345.67\n  alice@market.example 12 345.67",
            "  market 0.00\n  alice@market.example 0.00",
            r"line 7: 0\.00 and 0\.00: the first must be negative",
        ),
        ("  hector 1 020.00", "  nobody 1 020.00", "line 12: account nobody was never opened"),
        ("  hector 1 020.00", "hector 1 020.00", "line 12: 'hector 1 020.00' is no line of a transfer"),
        ("post payment a-1", "post payment a-9", "line 15: post of payment:a-9, which was never entered"),
        ("post order o-1", "post order o-9", "line 14: end of order o-9, which was never entered"),
        ("void order o-2", "void order o-9", "line 21: end of order o-9, which was never entered"),
        ("countersign a-1", "countersign a-9", "line 13: countersign of a-9, which no order has"),
        ("  a-1 hector 1 020.00", "  a-1 hector much", "line 9: 'much' is no amount"),
        ("valid_until 2026-03-01T12:05:00Z", "valid_until soon", "line 9: 'soon' is no time"),
        ("refused unknown_account", "rejected unknown_account", "is no entry"),
        ("close hector", "close victor", "account victor was never opened"),
        (
            "open user alice",
            "open person alice",
            "'person' is no kind of account; right would be user, resource, market",
        ),
        ("* deposit d-1", "* gift d-1", "'gift' is no kind of transfer"),
        ("credit_limit 5.00", "credit_limit 5.001", "5.001"),
        ("2026-03-01T12:00:07Z", "yesterday", "'yesterday' is no time"),
        ("close hector", "accept hector", "is no entry"),
    ],
)
def test_a_line_that_is_not_right_is_named(right: str, wrong: str, message: str) -> None:
    assert right in LEDGER
    with pytest.raises(DocumentError, match=message):
        parse_ledger(LEDGER.replace(right, wrong, 1), "books.txt")


def test_an_empty_text_is_no_ledger() -> None:
    with pytest.raises(DocumentError, match=r"^ledger: line 1"):
        parse_ledger("")


def test_a_text_that_ends_within_a_transfer_is_no_ledger() -> None:
    text = LEDGER[: LEDGER.index("  alice@market.example 12 345.67")]
    with pytest.raises(DocumentError, match="line 6: '' is no line of a transfer"):
        parse_ledger(text)
