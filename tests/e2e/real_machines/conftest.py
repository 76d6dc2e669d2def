"""A market across a real Grid Engine, two real Slurm clusters and a simulated machine, for the tests of a file."""

import itertools
import json
import tempfile
from pathlib import Path

import pytest

import ramp
from tests.e2e.batch_jobs.psij_environment import ACCOUNT
from tests.e2e.gridengine.gridengine_cell import Cluster
from tests.e2e.gridengine.gridengine_selling import options_of
from tests.e2e.real_machines.real_books import RealBooks
from tests.e2e.real_machines.real_jobs import both_sell
from tests.e2e.slurm.cluster_fixture import running_cluster
from tests.e2e.swarm.swarm_market import PATIENT_TIMING, Market


@pytest.fixture(scope="module")
def gridengine():
    """A running Grid Engine of 64 slots."""
    with Cluster(64) as cell:
        yield cell


@pytest.fixture(scope="module")
def slurm():
    """A running Slurm cluster of 128 cores."""
    with running_cluster("cb") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def dearer_slurm():
    """Another one, with a controller of its own, of which the same job ids and node counts are told."""
    with running_cluster("cc") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def market(gridengine, slurm, dearer_slurm):
    """A market with a seller on each of them, and one on a simulated machine."""
    sellers = [
        ("site1", 64, 20, "gridengine", options_of(gridengine)),
        ("site2", 128, 35, "slurm", {"partition": "debug", "conf": str(slurm.conf)}),
        ("site3", 128, 45, "slurm", {"partition": "debug", "conf": str(dearer_slurm.conf)}),
        ("plain", 512, 60, "steady", {"load": 0.0}),
    ]
    with tempfile.TemporaryDirectory(prefix="ramp-real-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # job folders are the buyer's account's
        lines = ["[market]", "resources_per_process = 1", "[guests]", "quote_s = 200", "snapshot_s = 200"]
        lines += ["[timing]", *(f"{key} = {value}" for key, value in PATIENT_TIMING.items())]
        lines += ["[[users]]", 'name = "alice"', "deposit = 1000000", "[accounts]", f'alice = "{ACCOUNT}"']
        lines += ["[launching]", f'folder = "{folder}/jobs"']
        for name, cores, price, plugin, options in sellers:
            lines += [f"[machines.{name}]", f'plugin = "{plugin}"', f"cores = {cores}", f"options = {_table(options)}"]
            lines += ["[[resources]]", f'name = "{name}"', f'machine = "{name}"']
            lines += [f"start_price = {price + 10_000}", f"minimum_price = {price}"]
            if plugin != "steady":
                lines.append(f'executor = "{plugin}"')
        config = Path(folder) / "real.toml"
        config.write_text("\n".join(lines) + "\n", "utf-8")
        made = Market(config, Path(folder) / "state", armed=True)
        try:
            made.up()
            yield made
        finally:
            made.end()


@pytest.fixture(scope="module")
def books(market, gridengine, slurm, dearer_slurm):
    """What is paid, agreed and reserved there."""
    return RealBooks(market, gridengine, {"site2": slurm, "site3": dearer_slurm})


@pytest.fixture(scope="module")
def hours():
    """Windows of their own, in hours from now, after those in which jobs are launched."""
    return itertools.count(5, 2)


@pytest.fixture(scope="module")
def slots(market, gridengine):
    """Eight cores of Grid Engine and seventy of Slurm, from now on."""
    market.wait_ready()
    gridengine.wait_for_host()  # it sells nothing where the host has not reported
    asked = [ramp.request(cores=cores, wall_time="2h", end="+4h", price=70) for cores in (8, 70)]
    both_sell(market, *asked)
    with ramp.connect(market.state.path, user="alice") as client:
        found = client.submit(*asked, rounds=2)
    assert found.committed, f"{found.reason}\n{market.logs()}"
    assert [each.resource for each in found.units] == ["site1", "site2"]
    return found


def _table(options):
    """An inline table of TOML."""
    written = (_table(value) if isinstance(value, dict) else json.dumps(value) for value in options.values())
    return "{ " + ", ".join(f"{key} = {value}" for key, value in zip(options, written, strict=True)) + " }"
