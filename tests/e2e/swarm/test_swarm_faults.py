"""Servers that die, agents that hang, and a supervisor that is killed, in the middle of a purchase."""

import os
import signal

import psutil
import pytest

from tests.e2e.swarm.swarm_books import Books
from tests.e2e.swarm.swarm_market import in_hours, own_id, unit, until
from tests.waiting import is_alive

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(armed=True, kind=kind, users={"alice": 1_000_000})
    market.up()
    return market


def stopped(market):
    """The process id of the agent that the trap has stopped."""
    name = until(market.victim, "somebody walks into the trap")
    pid = market.agent(name)["pid"]
    until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, f"{name} stands still")
    return pid


@pytest.mark.parametrize(
    ("role", "act", "nth"),
    [
        ("bank", "agree PaymentMade", 1),
        *(
            pytest.param(*moment, marks=pytest.mark.full)
            for moment in (
                ("user", "cfp CallForProposals", 6),
                ("user", "accept-proposal Acceptance", 2),
                ("user", "request PaymentOrder", 1),
                ("bank", "agree FundsReserved", 1),
                ("user", "confirm Commitment", 2),
                ("resource", "propose Proposal", 1),
                ("resource", "request Agreement", 1),
            )
        ),
    ],
)
def test_a_server_that_is_killed_in_mid_purchase_costs_only_time(market, role, act, nth):
    market.wait_ready()
    server = market.status()["server"]["pid"]
    begin = in_hours(1)
    # the sender is held just before the message leaves, so the server is certainly dead when it does
    market.arm(role, act, "before", nth, signal.SIGSTOP)
    units = [unit(1, 1, begin), unit(2, 52, begin)]  # the big machines have room for four of the second each
    with market.submitted("alice", own_id("server", role, act, nth), units) as events:
        pid = stopped(market)
        os.kill(server, signal.SIGKILL)
        until(lambda: not psutil.pid_exists(server) or market.status()["server"]["pid"] != server, "the server is dead")
        os.kill(pid, signal.SIGCONT)
        *_, last = events
    assert last["outcome"]["status"] == "committed", last["outcome"]
    assert market.status()["server"]["pid"] != server
    Books(market).come_right()


def test_nothing_outlives_a_supervisor_that_is_killed(new_market):
    market = new_market(users={"alice": 100_000})
    market.up()
    market.wait_ready()
    begin = in_hours(1)
    bought = market.buy("alice", "request-before", [unit(1, 8, begin), unit(2, 100, begin)])
    assert bought["status"] == "committed", bought
    books = Books(market)
    before = books.balances()
    pids = market.pids()
    os.kill(pids[0], signal.SIGKILL)
    until(lambda: not any(map(is_alive, pids)), lambda: f"all end, left are {[*filter(is_alive, pids)]}")
    assert market.status() is None
    market.up()
    market.wait_ready()
    assert books.balances() == before
    again = market.buy("alice", "request-after", [unit(1, 8, begin), unit(2, 100, begin)])
    assert again["status"] == "committed", again
    books.come_right()
