"""One purchase across a real Grid Engine, a real Slurm cluster and a simulated machine, and jobs on what was bought.

Agents, and Slurm's controller, die at each step of it.

Grid Engine is the cheapest and has 64 slots, Slurm is next and has 128 cores, the simulated machine is dear; so of a
request of 8 and of 100 cores each real system sells one unit. Whatever dies, what is paid is reserved there, and
nothing else is.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

E2E = Path(__file__).parents[1]
sys.path[:0] = [str(E2E / "swarm"), str(E2E / "gridengine")]

from gridengine_cell import Cluster, why_not  # noqa: E402 (in the folders of their own tests)
from gridengine_selling import options_of  # noqa: E402
from swarm_market import SHORT_TIMING, Market, in_hours, unit, until  # noqa: E402

import ramp  # noqa: E402
from tests.e2e.batch_jobs.psij_environment import ACCOUNT, public_python  # noqa: E402

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

JOB = """\
#!/bin/sh
echo run >> runs
echo "$RAMP_UNIT of $RAMP_UNITS: $RAMP_PEERS"
echo "${SLURM_JOB_RESERVATION:-$JOB_ID}"
cat runs words
sleep 3
"""


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
def python():
    """An interpreter that has PSI/J; None where there is none, and nothing is launched."""
    with contextlib.ExitStack() as stack:
        found = None
        with contextlib.suppress(pytest.skip.Exception):
            found = stack.enter_context(public_python())
        yield found


@pytest.fixture(scope="module")
def market(gridengine, slurm, python):
    """A market with a seller on each of them, and one on a simulated machine."""
    sellers = [
        ("site1", 64, 20, "gridengine", options_of(gridengine)),
        ("site2", 128, 35, "slurm", {"partition": "debug", "conf": str(slurm.conf)}),
        ("plain", 512, 60, "steady", {"load": 0.0}),
    ]
    with tempfile.TemporaryDirectory(prefix="ramp-real-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # job folders are the buyer's account's
        lines = ["[market]", "resources_per_process = 1", "[timing]", *(f"{key} = {TIMING[key]}" for key in TIMING)]
        lines += ["[[users]]", 'name = "alice"', "deposit = 1000000", "[accounts]", f'alice = "{ACCOUNT}"']
        lines += ["[launching]", f'folder = "{folder}/jobs"', f'psij_python = "{python or "/none"}"']
        for name, cores, price, plugin, options in sellers:
            lines += [f"[machines.{name}]", f'plugin = "{plugin}"', f"cores = {cores}", f"options = {_table(options)}"]
            lines += ["[[resources]]", f'name = "{name}"', f'machine = "{name}"']
            lines += [f"start_price = {price + 10_000}", f"minimum_price = {price}"]
            if plugin != "steady":
                lines.append(f'executor = "{plugin if python else "handover"}"')
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


# -- jobs on what was bought -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slots(market, gridengine, python, bought):
    """Eight cores of Grid Engine and seventy of Slurm, from now on, and that jobs can be launched there."""
    if python is None:
        pytest.skip("PSI/J is not installed, or its accounts cannot run it (make psij)")
    market.wait_ready()
    gridengine.wait_for_host()  # it sells nothing where the host has not reported
    asked = [ramp.request(cores=cores, wall_time="40min", end="+2h", price=70) for cores in (8, 70)]
    with ramp.connect(market.state.path, user="alice") as client:
        # a site whose system has just died, or whose answer comes late, is passed over for the next dearer one
        until(lambda: _sites(client.quote(*asked, rounds=2)) == ["site1", "site2"], "both systems quote again")
        found = client.submit(*asked, rounds=2)
    assert found.committed, f"{found.reason}\n{market.logs()}"
    assert _sites(found) == ["site1", "site2"]
    for each in found.units:
        bought[each.resource].add(each.reservation_id)
    return found


def _sites(purchase):
    return [each.resource for each in purchase.units]


def launched(market, slots, folder):
    """The jobs that were launched, one on each slot."""
    (folder / "job.sh").write_text(JOB)
    (folder / "words").write_text("staged\n")
    with ramp.connect(market.state.path, user="alice") as client:
        return client.launch(slots.request_id, script=folder / "job.sh", inputs=[folder / "words"])


def run_once_in_both(market, slots, jobs):
    """See that the jobs end well, that each ran once, in its reservation, and knew of the other."""
    peers = " ".join(f"{each.number}={each.resource}@localhost/{each.reservation_id}" for each in slots.units)
    for number, (job, slot) in enumerate(zip(jobs, slots.units, strict=True), 1):
        found, said = until(lambda job=job: ended(market, job), lambda job=job: f"{job} ends\n{market.logs()}")
        assert (found.state, found.exit_code, found.cores) == ("done", 0, slot.cores), found.detail
        here = slot.reservation_id
        if slot.resource == "site1":  # Grid Engine does not tell a job its reservation
            here = found.standing.status.native_id
            (asked,) = market.state.path.parent.glob(f"jobs/*/site1*/{job.job_id}/psij/gridengine/*.job")
            assert f"#$ -ar {slot.reservation_id}\n" in asked.read_text()
        assert said == f"{number} of 2: {peers}\n{here}\nrun\nstaged\n"


def ended(market, job):
    """A job and what it has printed once it has ended; None before, and while its agent is away."""
    with contextlib.suppress(ramp.RampError), ramp.connect(market.state.path, user="alice") as client:
        found = client.job(job.job_id)
        return (found, client.job_output(job.job_id).decode()) if found.has_ended else None
    return None


def test_units_run_in_both_reservations_and_know_of_each_other(market, slots, tmp_path):
    run_once_in_both(market, slots, launched(market, slots, tmp_path))


def test_agents_die_while_their_jobs_run_and_none_runs_twice(market, slots, tmp_path):
    market.wait_ready()
    jobs = launched(market, slots, tmp_path)
    for name in ("site1", "site2", "alice"):
        market.kill(name)
    run_once_in_both(market, slots, jobs)


@pytest.mark.long
def test_slurms_controller_dies_while_a_job_starts_and_it_runs_once(market, slurm, slots, tmp_path):
    market.wait_ready()
    _slurm.saved(slurm)
    jobs = launched(market, slots, tmp_path)
    slurm.signal_controller(signal.SIGKILL)
    slurm.start_controller()
    run_once_in_both(market, slots, jobs)


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("act", ["agree HoldGranted", "confirm Confirmed"], ids=["hold", "confirm"])
def test_slurms_controller_dies_and_what_is_paid_is_reserved(market, slurm, bought, hours, act, when):
    market.wait_ready()
    _slurm.saved(slurm)
    market.arm("resource", act, when, pid=slurm.controller_pid)

    def started_again():
        until(market.victim, "somebody walks into the trap")
        slurm.start_controller()

    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        again = beside.submit(started_again)
        name = f"request-controller-{act}-{when}".replace(" ", "-")
        outcome = purchase(market, name, in_hours(next(hours)))
        again.result()
    for each in outcome["units"] if outcome["status"] == "committed" else ():
        bought.get(each["offer"]["resource"].partition("@")[0], set()).add(each["reservation_id"])

    def there():
        with contextlib.suppress(subprocess.CalledProcessError):
            return set(_slurm.reservation_names(slurm))
        return None

    until(lambda: there() == bought["site2"], lambda: f"paid is {bought['site2']}, reserved is {there()}")
