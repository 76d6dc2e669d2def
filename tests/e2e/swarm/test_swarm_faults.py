"""Servers that die, agents that hang, and a supervisor that is killed, in the middle of a purchase."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from swarm_books import Books
from swarm_market import SHORT_TIMING, in_hours, own_id, unit, until

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


HASTY_TIMING = {**SHORT_TIMING, "vote_limit_s": 3, "agreement_validity_s": 45, "confirm_limit_s": 10, "lease_s": 3600}
"""Orders are soon void; holds outlast the restart of a bank that was killed, also where the processor is starved."""


@pytest.fixture(scope="module")
def hasty_market(module_market):
    market = module_market(armed=True, timing=HASTY_TIMING, users={"alice": 1_000_000})
    market.up()
    return market


def sellers(outcome):
    return [each["offer"]["resource"].partition("@")[0] for each in outcome["units"]]


@pytest.mark.full
def test_holds_run_out_while_the_user_hangs_and_it_buys_from_the_next_best(hasty_market):
    market = hasty_market
    market.wait_ready()
    books = Books(market)
    market.arm("user", "confirm Commitment", "before", 1, signal.SIGSTOP)
    begin = in_hours(1)
    with market.submitted("alice", own_id("hang"), [unit(1, 8, begin), unit(2, 100, begin)]) as events:
        pid = stopped(market)
        try:
            assert len(books.holds()) == 2
            until(lambda: not books.holds(), "the holds run out")
            assert not books.firm()
        finally:
            os.kill(pid, signal.SIGCONT)  # it had decided, and now confirms what is held no longer
        *_, last = events
    assert last["outcome"]["status"] == "committed", last["outcome"]
    assert sellers(last["outcome"]) == ["small2", "big2"]
    books.come_right()


HITS = {
    "nobody": None,
    "bank-telling": ("bank", "inform PaymentRefused", "before"),
    "bank-having-told": ("bank", "inform PaymentRefused", "after"),
    "other-before": ("resource", "failure ContractChange", "before"),
    "other-after": ("resource", "failure ContractChange", "after"),
}


@pytest.mark.full
@pytest.mark.parametrize("hit", HITS)
def test_an_order_is_void_when_a_resource_hangs(hasty_market, hit):
    """And bought from the next best. What others are told of it are messages too: kill -9 there."""
    market = hasty_market
    market.wait_ready()
    books = Books(market)
    paid = books.paid()
    market.arm("resource", "request Agreement", "before", 1, signal.SIGSTOP)
    begin = in_hours(3 + 2 * list(HITS).index(hit))
    request_id = own_id("void", hit)
    with market.submitted("alice", request_id, [unit(1, 8, begin), unit(2, 100, begin)]):
        pid, name = stopped(market), market.victim()
        try:
            if HITS[hit] is not None:
                market.arm(*HITS[hit])
                until(market.victim, lambda: f"somebody is killed\n{market.logs()}")
            until(lambda: "alice inform OrderVoided" in market.steps("bank", {request_id}), "it is void")
        finally:
            os.kill(pid, signal.SIGCONT)  # its agreement now comes after the order is void
    outcome = market.outcome("alice", request_id)
    assert outcome["status"] == "committed", outcome
    assert name not in sellers(outcome)
    books.come_right()
    assert len(books.paid()) == len(paid) + len(outcome["units"])


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
    until(lambda: not [pid for pid in pids if _runs(pid)], lambda: f"all end, left are {_left(pids)}")
    assert market.status() is None
    market.up()
    market.wait_ready()
    assert books.balances() == before
    again = market.buy("alice", "request-after", [unit(1, 8, begin), unit(2, 100, begin)])
    assert again["status"] == "committed", again
    books.come_right()


def _left(pids):
    return [psutil.Process(pid).as_dict(["pid", "ppid", "status", "cmdline"]) for pid in pids if _runs(pid)]


def _runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
