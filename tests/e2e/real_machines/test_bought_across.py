"""One purchase across a real Grid Engine, a real Slurm cluster and a simulated machine; agents die at each step of it.

Grid Engine is the cheapest and has 64 slots, Slurm is next and has 128 cores, the simulated machine is dear; so of a
request of 8 and of 100 cores each real system sells one unit. Whatever dies, what is paid is reserved there, and
nothing else is.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

E2E = Path(__file__).parents[1]
sys.path[:0] = [str(E2E / "swarm"), str(E2E / "gridengine")]

from gridengine_cell import Cluster, why_not  # noqa: E402 (in the folders of their own tests)
from gridengine_selling import options_of  # noqa: E402
from swarm_market import SHORT_TIMING, Market, in_hours, unit, until  # noqa: E402

_spec = importlib.util.spec_from_file_location("slurm_cluster", E2E / "slurm" / "cluster_fixture.py")
assert _spec is not None
_slurm = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_slurm)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

TIMING = {**SHORT_TIMING, "vote_limit_s": 60, "hold_time_s": 120, "agreement_validity_s": 240, "confirm_limit_s": 120}
"""Commands of real systems take their time on a busy computer."""

STEPS = [
    ("agree HoldGranted", "before"),
    ("agree HoldGranted", "after"),
    ("confirm Confirmed", "before"),
    ("confirm Confirmed", "after"),
    ("request Agreement", "before"),
    ("request Agreement", "after"),
    ("inform Settled", "before"),
]
AT_EACH_LANDING = {("agree HoldGranted", "before"), ("confirm Confirmed", "before")}


@pytest.fixture(scope="module")
def gridengine():
    """A running Grid Engine of 64 slots."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Cluster(64) as cell:
        yield cell


@pytest.fixture(scope="module")
def slurm():
    """A running Slurm cluster of 128 cores."""
    with _slurm.running_cluster("cb") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def market(gridengine, slurm):
    """A market with a seller on each of them, and one on a simulated machine."""
    sellers = [
        ("site1", 64, 20, "gridengine", options_of(gridengine)),
        ("site2", 128, 35, "slurm", {"partition": "debug", "conf": str(slurm.conf)}),
        ("plain", 512, 60, "steady", {"load": 0.0}),
    ]
    with tempfile.TemporaryDirectory(prefix="ramp-real-") as folder:
        lines = ["[market]", "resources_per_process = 1", "[timing]", *(f"{key} = {TIMING[key]}" for key in TIMING)]
        lines += ["[[users]]", 'name = "alice"', "deposit = 1000000"]
        for name, cores, price, plugin, options in sellers:
            lines += [f"[machines.{name}]", f'plugin = "{plugin}"', f"cores = {cores}", f"options = {_table(options)}"]
            lines += ["[[resources]]", f'name = "{name}"', f'machine = "{name}"']
            lines += [f"start_price = {price + 10_000}", f"minimum_price = {price}"]
        config = Path(folder) / "real.toml"
        config.write_text("\n".join(lines) + "\n", "utf-8")
        made = Market(config, Path(folder) / "state", armed=True)
        try:
            made.up()
            yield made
        finally:
            made.end()


@pytest.fixture(scope="module")
def bought():
    """Reservations that were paid for so far, by the sellers with real systems."""
    return {"site1": set(), "site2": set()}


@pytest.fixture(scope="module")
def hours():
    return itertools.count(2, 2)


def _table(options):
    """An inline table of TOML."""
    written = (_table(value) if isinstance(value, dict) else json.dumps(value) for value in options.values())
    return "{ " + ", ".join(f"{key} = {value}" for key, value in zip(options, written, strict=True)) + " }"


def purchase(market, request_id, begin):
    """Buy 8 and 100 cores; the outcome."""
    return market.buy("alice", request_id, [unit(1, 8, begin), unit(2, 100, begin)])


def agree(market, gridengine, slurm, bought, outcome, sellers=("site1", "site2")):
    """Each system has what was paid for, and nothing else; the units' sellers are those."""
    assert outcome["status"] == "committed", f"{outcome['reason']}\n{market.logs()}"
    sold = {}
    for each in outcome["units"]:
        seller = each["offer"]["resource"].partition("@")[0]
        sold[each["offer"]["unit"]] = seller
        if seller in bought:
            bought[seller].add(each["reservation_id"])
    assert sold == dict(enumerate(sellers, 1))

    def there():
        advance = {line.split()[0] for line in gridengine("qrstat", "-u", "*").splitlines()[2:]}
        return {"site1": advance, "site2": set(_slurm.reservation_names(slurm))}

    until(lambda: there() == bought, lambda: f"paid is {bought}, reserved is {there()}")


def test_two_units_are_bought_on_two_real_systems(market, gridengine, slurm, bought, hours):
    market.wait_ready()
    outcome = purchase(market, "request-across", in_hours(next(hours)))
    agree(market, gridengine, slurm, bought, outcome)
    # and one of them is given back
    agreement = next(each for each in outcome["units"] if each["reservation_id"] in bought["site1"])
    market.ask("alice", {"verb": "cancel", "agreement_id": agreement["agreement_id"]})
    until(lambda: gridengine("qrstat", "-u", "*") == "", "what was given back is free on Grid Engine")
    bought["site1"].clear()


@pytest.mark.parametrize(
    ("act", "when"),
    [pytest.param(*step, marks=() if step in AT_EACH_LANDING else pytest.mark.long) for step in STEPS],
    ids=lambda text: text.replace(" ", "-"),
)
def test_an_agent_dies_and_what_is_paid_is_reserved(market, gridengine, slurm, bought, hours, act, when):
    market.wait_ready()
    market.arm("resource", act, when)
    outcome = purchase(market, f"request-{act}-{when}".replace(" ", "-"), in_hours(next(hours)))
    name = until(market.victim, lambda: f"somebody walks into the trap\n{market.logs()}")
    until(lambda: market.agent(name)["state"] == "ready", f"{name} is up again")
    agree(market, gridengine, slurm, bought, outcome)


@pytest.mark.long
def test_a_system_that_hangs_costs_its_site_the_sale_and_nobody_else(market, gridengine, slurm, bought, hours):
    market.wait_ready()
    os.kill(gridengine.master_pid, signal.SIGSTOP)
    try:
        outcome = purchase(market, "request-hangs", in_hours(next(hours)))
    finally:
        os.kill(gridengine.master_pid, signal.SIGCONT)
    agree(market, gridengine, slurm, bought, outcome, ("site2", "plain"))
    # and it sells again
    until(lambda: "resource" in market.agent("site1")["role"] and market.agent("site1")["state"] == "ready", "it is up")


def test_what_is_sold_outlives_the_death_of_the_systems_own_daemon(market, gridengine, slurm, bought, hours):
    market.wait_ready()
    gridengine.wait_for_host()
    before = set(gridengine("qrstat", "-u", "*").splitlines()[2:])
    gridengine.kill_master()
    gridengine.start_master()
    assert {line.split()[0] for line in gridengine("qrstat", "-u", "*").splitlines()[2:]} == bought["site1"]
    assert len(before) == len(bought["site1"])
