"""Two Banking Agents at a ledger on PostgreSQL: the one that speaks dies or stands still, the other takes over."""

import os
import signal

import psutil
import pytest

from tests.contract.conftest import own_schema, postgresql_server
from tests.e2e.swarm.swarm_books import Books
from tests.e2e.swarm.swarm_market import Machine, in_hours, unit, until

pytestmark = [pytest.mark.e2e, pytest.mark.postgresql]
__all__ = ["postgresql_server"]  # a fixture

LEASE_S = 10
"""So long the bank that speaks may stand still, on however busy a computer, before the other takes over."""


@pytest.fixture(scope="module")
def ledger(postgresql_server):
    """A schema on PostgreSQL for the tests of the module."""
    with own_schema(postgresql_server) as url:
        yield url


@pytest.fixture(scope="module")
def market(module_market, ledger):
    market = module_market(
        armed=True,
        users={"alice": 1_000_000},
        machines=(Machine("small1", 64, 20), Machine("big1", 256, 35)),
        ledger=ledger,
        standby_lease_s=LEASE_S,
    )
    market.up()
    market.wait_ready()
    return market


def banks(market):
    """The bank that speaks, and the one that stands by."""

    def found():
        state = {name: market.agent(name)["state"] for name in ("bank", "bank-2")}
        names = sorted(state, key=lambda name: state[name] != "ready")
        return names if sorted(state.values()) == ["ready", "standby"] else None

    return until(found, lambda: f"one bank speaks and one stands by: {market.status()}")


def test_a_bank_that_stood_still_while_another_took_over_answers_nothing(market):
    """It has the order already, unread, when it goes on; what it would answer was decided by the other one."""
    active, standby = banks(market)
    begin = in_hours(1)
    pid = market.agent(active)["pid"]
    os.kill(pid, signal.SIGSTOP)
    until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, "it stands still")
    outcome = market.buy("alice", "request-stopped", [unit(1, 8, begin), unit(2, 100, begin)])
    assert outcome["status"] == "committed", outcome
    assert market.agent(standby)["state"] == "ready"
    restarts = market.agent(active)["restarts"]
    os.kill(pid, signal.SIGCONT)
    until(lambda: market.agent(active)["state"] == "standby", lambda: f"it stands by: {market.status()}")
    assert market.agent(active)["pid"] == pid
    assert market.agent(active)["restarts"] == restarts + 1
    # It may end what it was saying when it was stopped, such as the time of day, but not answer what came since.
    (order,) = {each["agreement"]["order_id"] for each in market.agreements("alice")}
    assert market.steps(standby, {"request-stopped", order})
    assert not market.steps(active, {"request-stopped", order})
    assert f"{standby} has taken over" in market.logs()
    Books(market).come_right()


@pytest.mark.full
def test_a_bank_that_is_lost_for_good_in_mid_purchase_is_relieved(market):
    """By the one that was relieved before, which is well again."""
    active, standby = banks(market)
    begin = in_hours(3)
    market.arm("bank", "agree FundsReserved", "before", 1, signal.SIGSTOP)
    with market.submitted("alice", "request-lost", [unit(1, 8, begin), unit(2, 100, begin)]) as events:
        assert until(market.victim, "the bank stands still with its vote") == active
        market.lose(active)
        *_, last = events
    assert last["outcome"]["status"] == "committed", last["outcome"]
    assert market.agent(standby)["state"] == "ready"
    assert market.account("alice")["event"] == "account_statement"
    Books(market).come_right()
