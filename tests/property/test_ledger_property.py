"""Any sequence of operations leaves `Book` (and SQLite) where a model of a few dictionaries is.

The model knows nothing of entries, transfers, indexes or incremental balances: it keeps the orders and adds up.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from ledger_answers import end, fail

from ramp.errors import LedgerRefusal
from ramp.ledger.entry import AccountKind, Order
from ramp.ledger.interface import Ledger
from ramp.model.contents import OrderLine, TransferKind
from ramp.runtime.ledger.store import LedgerStore
from simulation.market.book import Book

T = TypeVar("T")

LIMITS = {"ann": 0, "ben": 50, "hector": 0, "kelvin": 0}
USERS = {"ann", "ben"}
ACCOUNTS = st.sampled_from([*LIMITS, "nobody"])


def mostly(usual: st.SearchStrategy[T], rare: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """One of many is rare, so that most steps of a history succeed."""
    return st.tuples(usual, rare, st.integers(0, 19)).map(lambda drawn: drawn[1] if drawn[2] == 19 else drawn[0])


PAYERS = mostly(st.sampled_from(["ann", "ann", "ben"]), st.sampled_from(["hector", "nobody"]))
PAYEES = mostly(st.sampled_from(["hector", "kelvin"]), st.sampled_from(["ben", "nobody"]))
ORDERS = st.sampled_from([f"o-{number}" for number in range(8)])  # few, so that later steps meet the same ones again
AGREEMENTS = st.sampled_from([f"a-{number}" for number in range(12)])
SOME_LINES = st.lists(st.builds(OrderLine, AGREEMENTS, PAYEES, st.integers(1, 30)), min_size=1, max_size=3)
LINES = mostly(SOME_LINES, st.just([]))
LASTING = mostly(st.integers(1, 60), st.integers(-1, 0))  # of an order, in ticks; most steps take one
PICK = st.integers(0, 99)


@dataclass
class Deal:
    """The model's order."""

    user: str
    lines: list[OrderLine]
    until: int
    state: str
    code: str = ""
    starts: dict[str, int] = field(default_factory=dict)  # by countersigned agreement


class LedgerMachine(RuleBasedStateMachine):
    """Drives a ledger and the model alike; every answer and every balance must agree."""

    make: Callable[[], Ledger] = staticmethod(Book)

    @initialize()
    def begin(self) -> None:
        self.ledger = type(self).make()
        self.now = 10
        self.deals: dict[str, Deal] = {}
        self.held: dict[str, str] = {}  # the order that an agreement belongs to
        self.refunded: set[str] = set()
        self.early: set[tuple[str, str]] = set()  # orders and users of voids that came first
        self.deposits: dict[str, tuple[str, int]] = {}
        self.evidence: dict[str, list[str]] = {}  # kinds by reference
        for account_id, limit in LIMITS.items():
            kind = AccountKind.USER if account_id in USERS else AccountKind.RESOURCE
            self.ledger.open_account(account_id, kind, credit_limit=limit, at=1)
        self.deposit("start", "ann", 150)

    # -- the model: adds up what there is, whenever it is asked ----------------------------------------------------

    def posted(self, account_id: str) -> int:
        total = sum(amount for to, amount in self.deposits.values() if to == account_id)
        if account_id == "market":
            total -= sum(amount for _, amount in self.deposits.values())
        for deal in self.deals.values():
            for line in deal.lines if deal.state == "posted" else ():
                if line.agreement_id not in self.refunded:
                    total += line.cost * ((line.resource == account_id) - (deal.user == account_id))
        return total

    def reserved(self, account_id: str) -> int:
        deals = [one for one in self.deals.values() if one.state == "reserved" and one.user == account_id]
        return sum(line.cost for deal in deals for line in deal.lines)

    def lapse(self, deal: Deal) -> None:
        """Whoever meets an order after its deadline finds it void."""
        if deal.state == "reserved" and self.now >= deal.until:
            deal.state, deal.code = "voided", "expired"

    def refused_for(self, user: str, lines: list[OrderLine], until: int) -> str:
        """Why an order cannot be reserved, or nothing."""
        if not lines:
            return "no_lines"
        if self.now >= until:
            return "expired"
        for account_id, is_user in ((user, True), *((line.resource, False) for line in lines)):
            if account_id == "nobody":
                return "unknown_account"
            if (account_id in USERS) is not is_user:
                return "wrong_account"
        agreements = [line.agreement_id for line in lines]
        if len(set(agreements)) < len(agreements) or any(one in self.held for one in agreements):
            return "agreement_in_use"
        spendable = self.posted(user) - self.reserved(user) + LIMITS[user]
        return "insufficient_funds" if sum(line.cost for line in lines) > spendable else ""

    # -- steps -----------------------------------------------------------------------------------------------------

    def refused(self, code: str | None, call: Callable[[], T]) -> T | None:
        """The answer of the ledger, or None if it must refuse with a code, and does."""
        if code is None:
            return call()
        with pytest.raises(LedgerRefusal) as caught:
            call()
        assert caught.value.code == code
        return None

    def keep(self, reference: str, kind: str) -> None:
        self.evidence.setdefault(reference, []).append(kind)

    def same(self, order: Order | None, deal: Deal) -> None:
        assert order is not None
        assert (order.user, list(order.lines), order.valid_until) == (deal.user, deal.lines, deal.until)
        assert (order.state, order.code) == (deal.state, deal.code)
        assert list(order.countersigned) == [one.agreement_id for one in deal.lines if one.agreement_id in deal.starts]
        assert (order.settled_at is None) == (deal.state == "reserved")

    @rule(reference=AGREEMENTS, account_id=ACCOUNTS, amount=st.integers(1, 200))
    def deposit(self, reference: str, account_id: str, amount: int) -> None:
        self.now += 1
        there = self.deposits.get(reference)
        code = None
        if there is not None:
            code = None if there == (account_id, amount) else "duplicate_differs"
        elif account_id == "nobody":
            code = "unknown_account"
        elif account_id not in USERS:
            code = "wrong_account"
        else:
            self.deposits[reference] = (account_id, amount)
            self.keep(reference, "deposit")
        self.refused(code, lambda: self.ledger.deposit(reference, account_id, amount, at=self.now, evidence="<1/>"))

    @rule(order_id=ORDERS, user=PAYERS, lines=LINES, lasting=LASTING)
    def reserve(self, order_id: str, user: str, lines: list[OrderLine], lasting: int) -> None:
        self.now += 1
        self.order(order_id, user, lines, self.now + lasting)

    @rule(order_id=ORDERS)
    def reserve_again(self, order_id: str) -> None:
        self.now += 1
        if order_id in self.deals:
            deal = self.deals[order_id]
            self.order(order_id, deal.user, deal.lines, deal.until)

    def order(self, order_id: str, user: str, lines: list[OrderLine], until: int) -> None:
        deal = self.deals.get(order_id)
        differs = None
        if deal is not None:
            if (deal.user, deal.lines, deal.until) == (user, lines, until):
                self.lapse(deal)
            else:
                differs = "duplicate_differs"
        else:
            for other in self.deals.values():
                if other.user == user:
                    self.lapse(other)
            deal = Deal(user, lines, until, "reserved")
            if (order_id, user) in self.early:
                deal.state, deal.code = "voided", "unwanted"
            elif code := self.refused_for(user, lines, until):
                deal.state, deal.code = "refused", code
            self.keep(order_id, "order")
            self.deals[order_id] = deal
            if deal.state == "reserved":
                self.held.update((line.agreement_id, order_id) for line in lines)
        answer = self.refused(
            differs, lambda: self.ledger.reserve_order(order_id, user, lines, until, at=self.now, evidence="<2/>")
        )
        if differs is None:
            self.same(answer, deal)

    @rule(agreement=AGREEMENTS, ahead=st.integers(0, 20))
    def countersign(self, agreement: str, ahead: int) -> None:
        self.now += 1
        code, deal = None, None
        if agreement not in self.held:
            code = "unknown_transfer"
        else:
            deal = self.deals[self.held[agreement]]
            self.lapse(deal)
            if deal.state == "reserved" and agreement not in deal.starts:
                deal.starts[agreement] = self.now + ahead
                self.keep(agreement, "agreement")
                if len(deal.starts) == len(deal.lines):
                    deal.state = "posted"
        starts_at = self.now + ahead
        answer = self.refused(
            code, lambda: self.ledger.countersign(agreement, at=self.now, starts_at=starts_at, evidence="<3/>")
        )
        if deal is not None:
            self.same(answer, deal)

    def in_state(self, state: str) -> list[str]:
        return [order_id for order_id, deal in self.deals.items() if deal.state == state]

    # Steps that mean an order which is there, as most of a market's do.

    @precondition(lambda self: self.in_state("reserved"))
    @rule(pick=PICK, ahead=st.integers(0, 20), every=st.booleans())
    def countersign_a_reserved_one(self, pick: int, ahead: int, every: bool) -> None:
        reserved = self.in_state("reserved")
        deal = self.deals[reserved[pick % len(reserved)]]
        unsigned = [line.agreement_id for line in deal.lines if line.agreement_id not in deal.starts]
        for agreement in unsigned if every else unsigned[:1]:
            self.countersign(agreement, ahead)

    @precondition(lambda self: self.deals)
    @rule(pick=PICK)
    def void_its_users(self, pick: int) -> None:
        order_id = list(self.deals)[pick % len(self.deals)]
        self.void(order_id, self.deals[order_id].user, 5)

    @precondition(lambda self: self.held)
    @rule(pick=PICK)
    def fail_its_resources(self, pick: int) -> None:
        agreement = list(self.held)[pick % len(self.held)]
        (line,) = (one for one in self.deals[self.held[agreement]].lines if one.agreement_id == agreement)
        self.fail(agreement, line.resource)

    @precondition(lambda self: self.in_state("posted"))
    @rule(pick=PICK, before_start=st.booleans())
    def refund_a_posted_one(self, pick: int, before_start: bool) -> None:
        posted = [one for one, order_id in self.held.items() if self.deals[order_id].state == "posted"]
        self.refund(posted[pick % len(posted)], before_start)

    @rule(order_id=ORDERS, user=PAYERS, lasting=LASTING)
    def void(self, order_id: str, user: str, lasting: int) -> None:
        self.now += 1
        deal = self.deals.get(order_id)
        code, until = None, self.now + lasting
        if deal is not None and deal.user != user:
            code = "unknown_order"
        elif deal is not None:
            self.lapse(deal)
            if deal.state == "reserved":
                deal.state, deal.code = "voided", "unwanted"
                self.keep(order_id, "void")
        elif user in USERS and self.now < until and (order_id, user) not in self.early:
            self.early.add((order_id, user))
            self.keep(order_id, "void")
        answer = self.refused(
            code,
            lambda: self.ledger.void_order(
                order_id, user, until, at=self.now, code="unwanted", reason="", evidence="<4/>"
            ),
        )
        if code is None:
            assert answer is not None
            if deal is not None:
                self.same(answer, deal)
            else:
                assert (answer.state, answer.lines, answer.code) == ("voided", (), "unwanted")

    @rule(agreement=AGREEMENTS, resource=PAYEES)
    def fail(self, agreement: str, resource: str) -> None:
        self.now += 1
        code, deal = None, None
        if agreement in self.held:
            deal = self.deals[self.held[agreement]]
        named = [one.resource for one in deal.lines if one.agreement_id == agreement] if deal else []
        if deal is None or named != [resource]:
            code = "unknown_transfer"
        else:
            self.lapse(deal)
            if deal.state == "reserved":
                deal.state, deal.code = "voided", "resource_failed"
                self.keep(agreement, "change")
            elif deal.state == "posted":
                self.give_back(agreement)
        answer = self.refused(code, lambda: fail(self.ledger, agreement, resource, at=self.now, evidence="<5/>"))
        if code is None and deal is not None:
            self.same(answer, deal)

    def give_back(self, agreement: str) -> None:
        """Refund in the model."""
        if agreement not in self.refunded:
            self.refunded.add(agreement)
            self.keep(agreement, "change")

    @rule(agreement=AGREEMENTS, before_start=st.booleans())
    def refund(self, agreement: str, before_start: bool) -> None:
        self.now += 1
        deal = self.deals.get(self.held.get(agreement, ""))
        code = None
        if deal is None or deal.state != "posted":
            code = "unknown_transfer" if deal is None else "not_posted"
        elif before_start and agreement not in self.refunded and self.now >= deal.starts[agreement]:
            code = "started"
        else:
            self.give_back(agreement)
        self.refused(code, lambda: end(self.ledger, agreement, at=self.now, evidence="<6/>", alone=before_start))

    @rule(ticks=st.integers(0, 15))
    def expire(self, ticks: int) -> None:
        self.now += ticks
        due = [one for one, deal in self.deals.items() if deal.state == "reserved" and self.now >= deal.until]
        for order_id in due:
            self.lapse(self.deals[order_id])
        swept = self.ledger.expire_orders(self.now)
        assert [one.order_id for one in swept] == due  # a dictionary keeps the order of entry
        for order in swept:
            self.same(order, self.deals[order.order_id])

    # -- what must agree after every step ----------------------------------------------------------------------------

    @invariant()
    def balances_agree(self) -> None:
        found = {balance.account.account_id: (balance.posted, balance.reserved) for balance in self.ledger.balances()}
        assert found == {name: (self.posted(name), self.reserved(name)) for name in ("market", *LIMITS)}
        assert sum(posted for posted, _ in found.values()) == 0
        assert all(posted - reserved + LIMITS.get(name, 10**18) >= 0 for name, (posted, reserved) in found.items())

    @invariant()
    def orders_agree(self) -> None:
        for order_id, deal in self.deals.items():
            self.same(self.ledger.order(order_id), deal)
        reserved = [order_id for order_id, deal in self.deals.items() if deal.state == "reserved"]
        assert [order.order_id for order in self.ledger.open_orders()] == reserved

    @invariant()
    def transfers_agree(self) -> None:
        for agreement, order_id in self.held.items():
            transfer = self.ledger.transfer(agreement)
            state = self.deals[order_id].state
            assert transfer is not None
            assert transfer.state == {"reserved": "pending"}.get(state, state)
            assert transfer.order_id == order_id
            assert (self.ledger.transfer(agreement, TransferKind.REFUND) is not None) == (agreement in self.refunded)

    @invariant()
    def statements_end_at_the_balance(self) -> None:
        for account_id in LIMITS:
            lines = self.ledger.statement(account_id)
            balance = lines[-1].balance if lines else 0
            assert sum(line.amount for line in lines) == balance == self.posted(account_id)

    @invariant()
    def every_change_has_its_evidence(self) -> None:
        for reference in {*self.deals, *self.held, *self.deposits, *(order_id for order_id, _ in self.early)}:
            kinds = [str(one.kind) for one in self.ledger.evidence(reference)]
            assert kinds == self.evidence.get(reference, [])

    @invariant()
    def the_overview_adds_up(self) -> None:
        overview = self.ledger.overview(None, None, limit=1_000)
        posted = [line.cost for deal in self.deals.values() if deal.state == "posted" for line in deal.lines]
        back = [
            line.cost
            for deal in self.deals.values()
            for line in deal.lines
            if deal.state == "posted" and line.agreement_id in self.refunded
        ]
        for kind, amounts in ((TransferKind.PAYMENT, posted), (TransferKind.REFUND, back)):
            assert sorted(each.amount for each in overview.trades if each.kind == kind) == sorted(amounts)
        assert len(overview.trades) == len(posted) + len(back) + len(self.deposits)

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            assert self.ledger.audit() == []
            if isinstance(self.ledger, LedgerStore):
                self.ledger.close()


@pytest.mark.parametrize("histories", [16, pytest.param(400, marks=pytest.mark.slow)])
def test_a_book_agrees_with_the_model(histories: int) -> None:
    run_state_machine_as_test(
        LedgerMachine, settings=settings(max_examples=histories, stateful_step_count=40, derandomize=True)
    )


@pytest.mark.parametrize("histories", [2, pytest.param(15, marks=pytest.mark.slow)])
def test_a_store_agrees_with_the_model(histories: int) -> None:
    with tempfile.TemporaryDirectory() as directory:

        class StoreMachine(LedgerMachine):
            opened = 0

            @staticmethod
            def make() -> Ledger:
                StoreMachine.opened += 1
                return LedgerStore.open(Path(directory) / f"ledger-{StoreMachine.opened}.sqlite")

        run_state_machine_as_test(
            StoreMachine, settings=settings(max_examples=histories, stateful_step_count=30, derandomize=True)
        )
