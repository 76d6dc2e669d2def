"""One purchase across a real Grid Engine, two real Slurm clusters and a simulated machine, and jobs on what was bought.

Agents, and the systems' own daemons, die at some steps of it; `test_deaths_at_each_step.py` has all of them.

Grid Engine is the cheapest and has 64 slots, a Slurm of 128 cores is next, a like one is dearer, the simulated machine
dearest; so of a request of 8 and of 100 cores Grid Engine and the first Slurm sell one unit each. Whatever dies, what
is paid is reserved there, and nothing else is.
"""

import os
import signal

import pytest

from tests.e2e.real_machines.real_jobs import launched, purchase, run_once_in_both, sellers
from tests.e2e.swarm.swarm_market import in_hours, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


def bought(outcome, *names):
    """See that a purchase has succeeded, at those sellers."""
    assert outcome["status"] == "committed", outcome["reason"]
    assert sellers(outcome) == list(names)


def test_two_units_are_bought_on_two_real_systems(market, gridengine, books, hours):
    market.wait_ready()
    outcome = purchase(market, "request-across", in_hours(next(hours)))
    bought(outcome, "site1", "site2")
    books.come_right()
    # and one of them is given back
    agreement = next(each for each in outcome["units"] if each["offer"]["resource"].startswith("site1@"))
    market.ask("alice", {"verb": "agreement_cancelled", "agreement_id": agreement["agreement_id"], "reason": ""})
    until(lambda: gridengine("qrstat", "-u", "*") == "", "what was given back is free on Grid Engine")
    books.come_right()


@pytest.mark.full
def test_a_system_that_hangs_costs_its_site_the_sale_and_nobody_else(market, gridengine, books, hours):
    market.wait_ready()
    os.kill(gridengine.master_pid, signal.SIGSTOP)
    try:
        outcome = purchase(market, "request-hangs", in_hours(next(hours)))
    finally:
        os.kill(gridengine.master_pid, signal.SIGCONT)
    bought(outcome, "site2", "site3")
    books.come_right()
    # and it sells again
    until(lambda: "resource" in market.agent("site1")["role"] and market.agent("site1")["state"] == "ready", "it is up")


# -- jobs on what was bought -------------------------------------------------------------------------------------------


def test_units_run_in_both_reservations_and_know_of_each_other(market, slots, gridengine, tmp_path):
    run_once_in_both(market, slots, launched(market, slots, tmp_path), gridengine)
