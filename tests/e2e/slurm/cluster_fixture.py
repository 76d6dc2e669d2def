"""A real Slurm cluster of emulated nodes for the tests of one file; they are skipped where Slurm is not installed."""

import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ramp.model.instant import SECOND, Instant
from ramp.plugins.interface import PluginSettings
from simulation.cli.demo_slurm import MARKET
from simulation.emulated_slurm import PACKAGES, EmulatedCluster, missing_programs
from tests.waiting import until as wait_for

NODES, CORES = 16, 8


@contextlib.contextmanager
def running_cluster(
    name: str, nodes: int = NODES, more: str = "", files: Mapping[str, str] | None = None
) -> Iterator[EmulatedCluster]:
    """A cluster in a folder with a short path; skips where it cannot be."""
    missing = missing_programs()
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed ({PACKAGES})")
    folder = Path(tempfile.mkdtemp(prefix="rs-", dir="/tmp"))
    folder.chmod(0o755)  # buyers' accounts read slurm.conf there
    try:
        with EmulatedCluster(folder / name, name, nodes, CORES, more, files) as cluster:
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def settings_of(
    cluster: EmulatedCluster, folder: Path | None = None, resource: str = "slurm1", **options: object
) -> PluginSettings:
    """Settings of the plug-in over all nodes of a cluster, with a picture of it for each call."""
    table = {"partition": "debug", "conf": str(cluster.conf), "snapshot_age_s": 0, **options}
    return PluginSettings(resource, cluster.nodes * CORES, CORES, 0, table, folder)


def now_in_seconds() -> Instant:
    """The time now, a whole second."""
    return int(time.time()) * SECOND


def market_of(cluster: EmulatedCluster, folder: Path) -> Path:
    """The configuration of a market that sells half of a cluster, and hands its slots over to the account nobody.

    Args:
        cluster: what is sold.
        folder: where the configuration is written.
    """
    path = folder / "market.toml"
    text = MARKET.format(
        cores=cluster.nodes * CORES,
        cores_per_node=CORES,
        conf=cluster.conf,
        account="nobody",
    )
    path.write_text(text, encoding="utf-8")
    return path


def cleared(cluster: EmulatedCluster) -> EmulatedCluster:
    """The cluster as at its start: no jobs, no reservations, all nodes idle."""
    if cluster.processes["slurmctld"].poll() is not None:  # the test that killed it has failed
        cluster.start_controller()
    cluster.processes["slurmctld"].send_signal(signal.SIGCONT)

    def idle() -> bool:
        with contextlib.suppress(subprocess.CalledProcessError):
            for job in cluster.run("squeue", "-h", "-a", "-o", "%A").split():
                cluster.run("scancel", "--quiet", job)
            for name in reservation_names(cluster):
                cluster.run("scontrol", "delete", f"ReservationName={name}")
            nodes = f"{cluster.name}[1-{cluster.nodes}]"
            states = set(cluster.run("sinfo", "-h", "-N", "-o", "%t").split())
            if states & {"down", "drain", "drng", "down*"}:
                cluster.run("scontrol", "update", f"NodeName={nodes}", "State=RESUME")
            return states == {"idle"} and not cluster.run("squeue", "-h", "-a").strip()
        return False

    wait_for(idle, "the cluster is not idle")
    return cluster


def in_service(cluster: EmulatedCluster) -> EmulatedCluster:
    """The cluster with all nodes in service, whatever an earlier test did to them; what is reserved stays.

    A controller that is killed later does not forget it: Slurm writes its nodes down some seconds after a change.
    """
    resumed_at = 0.0

    def well() -> bool:
        nonlocal resumed_at
        with contextlib.suppress(subprocess.CalledProcessError):
            listed = (line.split() for line in cluster.run("sinfo", "-h", "-N", "-o", "%N %t").splitlines())
            away = [name for name, state in listed if state.startswith(("down", "drain", "drng"))]
            if away:
                resumed_at = time.time()
                cluster.run("scontrol", "update", f"NodeName={','.join(away)}", "State=RESUME")
            return not away
        return False

    wait_for(well, "all nodes are in service")
    written = cluster.folder / "state" / "node_state"
    wait_for(
        lambda: not resumed_at or (written.exists() and written.stat().st_mtime > resumed_at),
        "the controller has written its nodes down",
    )
    return cluster


def reservation_names(cluster: EmulatedCluster) -> list[str]:
    """What reservations the cluster has."""
    lines = cluster.run("scontrol", "-o", "show", "reservation").splitlines()
    return [line.split()[0].removeprefix("ReservationName=") for line in lines if line.startswith("ReservationName=")]


def saved(cluster: EmulatedCluster) -> EmulatedCluster:
    """The cluster once its controller has written down what was done so far, from which it goes on after a kill.

    A job and a reservation are made and taken away again, for Slurm writes its jobs, and apart from them its
    reservations, only when some of them have changed, some seconds later. Without it what an earlier test has removed
    may come back. They are made again as long as it may have written before it could be seen that it would.
    """
    in_a_year = ("StartTime=now+365days", "Duration=1", "Users=root", "NodeCnt=1")
    written = [cluster.folder / "state" / name for name in ("job_state", "resv_state")]

    def written_after_a_change() -> bool:
        job = cluster.run("sbatch", "--parsable", "--hold", "-n1", "-t1", "-o/dev/null", "--wrap", "true").strip()
        cluster.run("scancel", job)
        cluster.run("scontrol", "create", "reservation", "ReservationName=written-down", *in_a_year)
        cluster.run("scontrol", "delete", "ReservationName=written-down")
        since = time.time()
        for _ in range(100):
            if all(path.exists() and path.stat().st_mtime > since for path in written):
                return True
            time.sleep(0.1)
        return False

    wait_for(written_after_a_change, "the controller has written its jobs and reservations down")
    return cluster
