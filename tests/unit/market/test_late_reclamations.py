"""The checker of what is set aside finds a reclamation that its bank lets stand after its time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ramp.errors import InvariantViolated
from ramp.ledger.account import AccountKind
from ramp.ledger.book import Book
from ramp.ledger.orders.order import OrderLine
from ramp.ledger.reclamations.reclamation import ReclamationTerms
from simulation.checkers.orders_settle import OrdersSettle

ENDS = 90


@pytest.fixture
def noticed() -> Book:
    """Hector takes back of what alice has paid for, until the instant 90 at the latest."""
    book = Book()
    book.open_account("alice", AccountKind.USER, at=1)
    book.open_account("hector", AccountKind.RESOURCE, at=1)
    book.deposit("d-1", "alice", 2_500, at=2)
    book.reserve_order("o-1", "alice", [OrderLine("a-1", "hector", 2_500)], 100, at=10)
    book.countersign("a-1", at=20, starts_at=5_000)
    terms = ReclamationTerms("a-1", 1, "bought", True, "less", "alice", "hector", 1_000, 300, 5, 50, ENDS)
    book.note_reclamation(terms, at=30)
    return book


def seen(ledger: Book, now: int, *, bank_is_up: bool = True) -> Any:
    return SimpleNamespace(ledger=ledger, bank_is_up=bank_is_up, time_of=lambda _: now)


def test_one_that_stands_after_its_time_is_found_while_the_bank_is_up(noticed: Book) -> None:
    checker = OrdersSettle()
    checker.on_step(seen(noticed, ENDS))
    checker.on_step(seen(noticed, ENDS + 1, bank_is_up=False))
    with pytest.raises(InvariantViolated, match="reclamation 1 of a-1 is open after its deadline"):
        checker.on_step(seen(noticed, ENDS + 1))
    noticed.expire_orders(ENDS)
    checker.on_step(seen(noticed, ENDS + 1))


def test_what_is_still_set_aside_in_the_end_is_found(noticed: Book) -> None:
    checker = OrdersSettle()
    checker.at_end(seen(noticed, ENDS))
    with pytest.raises(InvariantViolated, match=r"transfers .*compensation:a-1#r1"):
        checker.at_end(seen(noticed, ENDS + 1))
