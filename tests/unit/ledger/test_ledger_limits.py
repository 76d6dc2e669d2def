"""What the ledger takes and what it refuses, at the very edge of each limit."""

from dataclasses import replace
from unittest.mock import patch

import pytest

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
from ramp.model.money import AMOUNT_MAX
from ramp.text import one_line
from simulation.market.book import Book


@pytest.mark.parametrize("name", ["a", "a" * IDENTIFIER_LENGTH_MAX, "alice@grid.example"])
def test_names_that_are_taken(name: str) -> None:
    check_identifier("account id", name)


@pytest.mark.parametrize("name", ["", "a" * (IDENTIFIER_LENGTH_MAX + 1), 'a"b', "a b", "a\tb"])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(LedgerRefusal) as refused:
        check_identifier("account id", name)
    assert refused.value.code == RefusalCode.MALFORMED_VALUE


@pytest.mark.parametrize(
    ("signer", "nonce", "expires_at", "now", "wrong"),
    [
        ("a b", "n", 2, 1, "signer"),
        ("alice", "", 2, 1, "nonce"),
        ("alice", "n", -1, 1, "expiry"),
        ("alice", "n", 2, -1, "time"),
    ],
)
def test_a_nonce_that_is_refused_is_told_by_what_is_wrong(
    signer: str, nonce: str, expires_at: int, now: int, wrong: str
) -> None:
    with pytest.raises(LedgerRefusal, match=f": {wrong} "):
        Book().use_nonce(signer, nonce, expires_at, now=now)


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
    with pytest.raises(LedgerRefusal) as refused:
        check_evidence(text)
    assert refused.value.code == RefusalCode.MALFORMED_VALUE


def test_what_cannot_be_printed_becomes_one_question_mark() -> None:
    assert one_line("two \n lines\x1b[1m", TEXT_LENGTH_MAX) == "two lines?[1m"


def test_all_that_may_be_issued_can_be_and_no_more() -> None:
    with patch("simulation.market.book.ISSUER", replace(ISSUER, credit_limit=100)):
        book = Book()
    book.open_account("alice", AccountKind.USER, at=1)
    with pytest.raises(LedgerRefusal) as refused:
        book.deposit("d-1", "alice", 101, at=2)
    assert refused.value.code == RefusalCode.INSUFFICIENT_FUNDS
    assert book.deposit("d-2", "alice", 100, at=2).amount == 100


@pytest.mark.parametrize("limit", [0, AMOUNT_MAX])
def test_credit_limits_that_are_taken(limit: int) -> None:
    assert Book().open_account("alice", AccountKind.USER, at=1, credit_limit=limit).credit_limit == limit


@pytest.mark.parametrize("limit", [-1, AMOUNT_MAX + 1, 1.5, True])
def test_credit_limits_that_are_refused(limit: int) -> None:
    with pytest.raises(LedgerRefusal) as refused:
        Book().open_account("alice", AccountKind.USER, at=1, credit_limit=limit)
    assert refused.value.code == RefusalCode.MALFORMED_VALUE
