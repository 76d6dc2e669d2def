"""What there is several of: one is killed for good in mid-purchase, and the purchase ends as if nothing had been."""

from __future__ import annotations

import signal

import pytest
from swarm_books import Books
from swarm_market import SHORT_TIMING, in_hours, unit, until

from ramp.runtime.ledger.store import LedgerStore

pytestmark = [pytest.mark.e2e, pytest.mark.full]


@pytest.fixture(scope="module")
def market(module_market):
    market = module_market(
        armed=True, users={"alice": 1_000_000}, redundancy={"directories": 3}, timing={**SHORT_TIMING, "lease_s": 3600}
    )
    market.up()
    return market


def test_the_loss_of_directories_for_good_in_mid_auction_is_not_noticed(market):
    """One after the other until the last of three is left, each in the middle of an auction; whichever alice asks."""
    market.wait_ready()
    names = ("directory", "directory-2", "directory-3")
    until(
        lambda: all(market.written_down(name) == market.listed() for name in names),
        "every directory knows every resource",
    )
    begin = in_hours(1)
    for number, lost in enumerate(names[:2]):
        with market.submitted("alice", f"request-{number}", [unit(1, 8, begin), unit(2, 100, begin)]) as events:
            until(lambda: next(events)["event"] == "round_opened", "the first round is open")
            market.lose(lost)
            *_, last = events
        assert last["outcome"]["status"] == "committed", last["outcome"]
        assert [each["offer"]["resource"].partition("@")[0] for each in last["outcome"]["units"]] == ["small1", "big1"]
    outcome = market.buy("alice", "request-afterwards", [unit(1, 8, begin)])
    assert outcome["status"] == "committed", outcome
    assert market.listed() == ["big1", "big2", "small1", "small2"]
    Books(market).come_right()


def test_a_user_lost_for_good_between_decision_and_payment_costs_nobody_anything(market):
    """One resource has its signature, the other has not: the order is void at its deadline, and so is every hold."""
    books = Books(market)
    paid, balances = books.paid(), books.balances()
    begin = in_hours(5)
    market.arm("user", "confirm Commitment", "after", 1, signal.SIGSTOP)
    with market.submitted("alice", "request-lost", [unit(1, 8, begin), unit(2, 100, begin)]):
        assert until(market.victim, "the user stands still with its decision made") == "alice"
        market.lose("alice")
    assert (market.state.path / "steps" / "alice.txt").read_text().endswith("confirm Commitment\n")

    def over():
        with LedgerStore.open(market.state.ledger) as ledger:
            return not ledger.open_orders() and not ledger.pending() and not books.holds()

    until(over, lambda: f"nothing is set aside any more: {books.holds()}")
    assert (books.paid(), books.balances()) == (paid, balances)
