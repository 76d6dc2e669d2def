"""A real cluster behind agents on a real XMPP server: bought, kept through a crash, paid back when lost."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

import ramp
from ramp.batch.slurm.emulated import EmulatedCluster
from ramp.cli.demo_slurm import MARKET
from tests.e2e.batch_jobs.psij_environment import public_python
from tests.e2e.slurm.cluster_fixture import CORES, NODES, reservation_names, running_cluster, wait_for

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmulatedCluster]:
    with running_cluster("cm") as started:
        yield started


@pytest.fixture(scope="module")
def market(cluster: EmulatedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ramp.Market]:
    folder = tmp_path_factory.mktemp("m")
    config = folder / "market.toml"
    fields = {"cores": NODES * CORES, "cores_per_node": CORES, "conf": cluster.conf, "account": "nobody"}
    config.write_text(MARKET.format(**fields, executor="handover", psij_python="/", jobs=folder / "jobs"))
    with ramp.launch(config, state_dir=folder / "state") as launched:
        yield launched


def _bought(market: ramp.Market, cores: int) -> str:
    wanted = ramp.request(cores=cores, wall_time="30min", start="+1h", end="+3h", price=70)
    bought = market.submit(wanted, rounds=2)
    assert bought.committed, f"{bought.status}: {bought.reason}"
    name = bought.units[0].reservation_id
    assert name is not None
    return name


def test_what_is_cancelled_is_gone_and_what_loses_a_node_is_paid_back(
    cluster: EmulatedCluster, market: ramp.Market
) -> None:
    before = market.balance().available
    given_back = _bought(market, 8)
    market.cancel(given_back)
    wait_for(lambda: given_back not in reservation_names(cluster), "the reservation is deleted")
    lost = _bought(market, 24)
    shown = cluster.run("scontrol", "-o", "show", "reservation", lost)
    node = shown.split(" Nodes=")[1].split()[0].replace("[", "").split("-")[0].split(",")[0]
    cluster.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=fan")
    wait_for(lambda: lost not in reservation_names(cluster), "the lost slot is released")
    wait_for(lambda: market.balance().available == before, "its price is paid back")


def test_what_a_killed_controller_forgets_comes_back_for_a_paid_slot(
    cluster: EmulatedCluster, market: ramp.Market
) -> None:
    name = _bought(market, 16)  # before the crash: for some seconds after it Slurm says that its nodes are busy
    assert name in reservation_names(cluster)
    cluster.signal_controller(signal.SIGKILL)
    cluster.start_controller()
    wait_for(lambda: name in reservation_names(cluster), "the paid slot has its reservation again")


@pytest.mark.parametrize("by", ["ramp launch", "sbatch"])
def test_the_demonstration(by: str) -> None:
    command = [sys.executable, "-m", "ramp.cli.main", "demo-slurm", "--json"]
    with contextlib.ExitStack() as stack:
        if by == "ramp launch":
            command += ["--psij-python", str(stack.enter_context(public_python()))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["launched_by"] == by
    assert [len(units) for units in shown["bought"].values()] == [1, 1]
    assert len(shown["output"].splitlines()) == 4
