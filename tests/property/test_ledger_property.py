"""Any sequence of operations leaves `Book` (and SQLite) where a model of a few dictionaries is.

The model knows nothing of entries, indexes or incremental balances: it keeps the list of transfers and adds up.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ramp.errors import LedgerRefusal
from ramp.ledger.account import AccountKind
from ramp.ledger.book import Book
from ramp.ledger.interface import Ledger
from ramp.ledger.text import ledger_text, parse_ledger
from ramp.ledger.transfer import TransferKind
from ramp.runtime.ledger_store import LedgerStore

LIMITS = {"ann": 0, "ben": 50, "hector": 0, "kelvin": 0}
ACCOUNTS = st.sampled_from([*LIMITS, "nobody"])
PAYERS = st.sampled_from(["ann", "ann", "ben", "hector", "nobody"])  # mostly who has money, so that most steps succeed
PAYEES = st.sampled_from(["hector", "hector", "kelvin", "ann", "nobody"])
AGREEMENTS = st.sampled_from(["a-0", "a-1", "a-2"])  # few, so that repeats and later steps meet the same ones again
AMOUNTS = st.integers(1, 60)


@dataclass
class Move:
    """The model's transfer."""

    kind: str
    debit: str
    credit: str
    amount: int
    state: str


class LedgerMachine(RuleBasedStateMachine):
    """Drives a ledger and the model alike; every answer and every balance must agree."""

    make: Callable[[], Ledger] = staticmethod(Book)

    @initialize()
    def begin(self) -> None:
        self.ledger = type(self).make()
        self.now = 10
        self.moves: dict[tuple[str, str], Move] = {}
        self.refused: set[str] = set()
        self.closed: set[str] = set()
        for account_id, limit in LIMITS.items():
            kind = AccountKind.USER if account_id in {"ann", "ben"} else AccountKind.RESOURCE
            self.ledger.open_account(account_id, kind, credit_limit=limit, at=1)
        self.deposit("start", "ann", 150)

    def posted(self, account_id: str) -> int:
        moves = [move for move in self.moves.values() if move.state == "posted"]
        return sum(move.amount * ((move.credit == account_id) - (move.debit == account_id)) for move in moves)

    def reserved(self, account_id: str) -> int:
        moves = self.moves.values()
        return sum(move.amount for move in moves if move.state == "pending" and move.debit == account_id)

    def blocked(self, move: Move) -> str | None:
        for account_id in (move.debit, move.credit):
            if account_id == "nobody":
                return "unknown_account"
            if account_id in self.closed:
                return "account_closed"
        if move.debit == "market":
            return None
        spendable = self.posted(move.debit) - self.reserved(move.debit) + LIMITS[move.debit]
        return "insufficient_funds" if move.amount > spendable else None

    def expect(self, code: str | None, call: Callable[[], object]) -> None:
        self.now += 1
        if code is None:
            call()
            return
        with pytest.raises(LedgerRefusal) as caught:
            call()
        assert caught.value.code == code

    @rule(reference=AGREEMENTS, account_id=ACCOUNTS, amount=st.integers(1, 200))
    def deposit(self, reference: str, account_id: str, amount: int) -> None:
        move = Move("deposit", "market", account_id, amount, "posted")
        there = self.moves.get((reference, "deposit"))
        code = self.blocked(move) if there is None else (None if there == move else "duplicate_differs")
        if there is None and code is None:
            self.moves[reference, "deposit"] = move
        self.expect(code, lambda: self.ledger.deposit(reference, account_id, amount, at=self.now))

    @rule(agreement=AGREEMENTS, debit=PAYERS, credit=PAYEES, amount=AMOUNTS, escrow=st.booleans())
    def pay_or_reserve(self, agreement: str, debit: str, credit: str, amount: int, escrow: bool) -> None:
        move = Move("payment", debit, credit, amount, "pending" if escrow else "posted")
        there = self.moves.get((agreement, "payment"))
        if debit == credit:
            code: str | None = "same_account"
        elif there is not None and (there.debit, there.credit, there.amount) != (debit, credit, amount):
            code = "duplicate_differs"
        elif there is not None:
            code = {"voided": "already_voided", "posted": None, "pending": None if escrow else "already_pending"}[
                there.state
            ]
        else:
            code = "agreement_refused" if agreement in self.refused else self.blocked(move)
        if there is None and code is None:
            self.moves[agreement, "payment"] = move
        operation = self.ledger.set_pending if escrow else self.ledger.pay
        self.expect(code, lambda: operation(agreement, debit, credit, amount, at=self.now))

    @rule(agreement=AGREEMENTS, escrow=st.booleans())
    def repeat(self, agreement: str, escrow: bool) -> None:
        there = self.moves.get((agreement, "payment"))
        if there is not None:
            self.pay_or_reserve(agreement, there.debit, there.credit, there.amount, escrow)

    @rule(agreement=AGREEMENTS, outcome=st.sampled_from(["posted", "voided"]))
    def settle(self, agreement: str, outcome: str) -> None:
        there = self.moves.get((agreement, "payment"))
        code = None
        if there is None:
            code = "unknown_transfer"
        elif there.state == "pending":
            there.state = outcome
        elif there.state != outcome:
            code = f"already_{there.state}"
        operation = self.ledger.post if outcome == "posted" else self.ledger.void
        self.expect(code, lambda: operation(agreement, at=self.now))

    @rule(agreement=AGREEMENTS, amount=st.none() | AMOUNTS)
    def refund(self, agreement: str, amount: int | None) -> None:
        charge = self.moves.get((agreement, "payment"))
        there = self.moves.get((agreement, "refund"))
        if charge is None or charge.state != "posted":
            code: str | None = "unknown_transfer" if charge is None else "not_posted"
        else:
            move = Move("refund", charge.credit, charge.debit, amount or charge.amount, "posted")
            if move.amount > charge.amount:
                code = "refund_exceeds_charge"
            elif there is not None:
                code = None if there == move else "already_refunded"
            else:
                code = self.blocked(move)
                if code is None:
                    self.moves[agreement, "refund"] = move
        self.expect(code, lambda: self.ledger.refund(agreement, amount, at=self.now))

    @rule(agreement=AGREEMENTS)
    def refuse(self, agreement: str) -> None:
        there = self.moves.get((agreement, "payment"))
        code = None
        if agreement not in self.refused and there is not None and there.state != "voided":
            code = f"already_{there.state}"
        if code is None:
            self.refused.add(agreement)
        self.expect(code, lambda: self.ledger.record_refusal(agreement, "expired", "too late", at=self.now))

    @precondition(lambda self: len(self.closed) < 2)
    @rule(account_id=ACCOUNTS)
    def close(self, account_id: str) -> None:
        waiting = any(
            move.state == "pending" and account_id in {move.debit, move.credit} for move in self.moves.values()
        )
        if account_id == "nobody":
            code: str | None = "unknown_account"
        else:
            code = (
                "account_not_empty" if account_id not in self.closed and (self.posted(account_id) or waiting) else None
            )
        if code is None:
            self.closed.add(account_id)
        self.expect(code, lambda: self.ledger.close_account(account_id, at=self.now))

    @invariant()
    def balances_agree(self) -> None:
        found = {balance.account.account_id: (balance.posted, balance.reserved) for balance in self.ledger.balances()}
        assert found == {name: (self.posted(name), self.reserved(name)) for name in ("market", *LIMITS)}
        assert sum(posted for posted, _ in found.values()) == 0
        assert all(posted - reserved + LIMITS.get(name, 10**18) >= 0 for name, (posted, reserved) in found.items())

    @invariant()
    def transfers_agree(self) -> None:
        for (agreement, kind), move in self.moves.items():
            transfer = self.ledger.transfer(agreement, TransferKind(kind))
            assert transfer is not None
            assert Move(kind, transfer.debit_account, transfer.credit_account, transfer.amount, transfer.state) == move

    @invariant()
    def statements_end_at_the_balance(self) -> None:
        for account_id in LIMITS:
            statement = self.ledger.statement(account_id)
            assert sum(line.amount for line in statement.lines) == statement.closing_balance == self.posted(account_id)

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            assert self.ledger.audit() == []
            copy = parse_ledger(ledger_text(self.ledger.entries(), self.ledger.balances()))
            assert copy.entries() == self.ledger.entries()
            if isinstance(self.ledger, LedgerStore):
                self.ledger.close()


def test_a_book_agrees_with_the_model() -> None:
    run_state_machine_as_test(
        LedgerMachine, settings=settings(max_examples=150, stateful_step_count=40, deadline=None, derandomize=True)
    )


def test_a_store_agrees_with_the_model() -> None:
    with tempfile.TemporaryDirectory() as directory:

        class StoreMachine(LedgerMachine):
            opened = 0

            @staticmethod
            def make() -> Ledger:
                StoreMachine.opened += 1
                return LedgerStore.open(Path(directory) / f"ledger-{StoreMachine.opened}.sqlite")

        checks = [HealthCheck.too_slow]
        run_state_machine_as_test(
            StoreMachine,
            settings=settings(
                max_examples=10, stateful_step_count=25, deadline=None, derandomize=True, suppress_health_check=checks
            ),
        )
