"""The wrapper through the real sudo, by the line of docs/slurm.md: an account that may sell slots and nothing else.

Files of the system are made and removed again, and an account; so it runs as root only, and not where a wrapper is
installed already.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramp.batch.commands import Completed
from ramp.batch.for_sale import ForSale
from ramp.batch.resizable_machine import ResizableBatchMachine
from ramp.batch.slurm.conditions import WRAPPER, WRAPPER_SETTINGS, wrapper_remarks
from ramp.batch.slurm.system import SlurmSystem
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation
from ramp.plugins.interface import PluginSettings
from simulation.emulated_slurm import EmulatedCluster
from tests.e2e.slurm.cluster_fixture import CORES, reservation_names, running_cluster, wait_for
from tests.slots import quoted
from tests.waiting import LIMIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

INSTALLED = Path("/usr/local/sbin/ramp-slurm-reservations")
SUDOERS = Path("/etc/sudoers.d/ramp-slurm-test")
ACCOUNT = "ramptestseller"
NODES = 4
PAGE = (Path(__file__).parents[3] / "docs" / "slurm.md").read_text()


def _why_not() -> str:
    if os.geteuid() != 0:
        return "only root can install a wrapper and a line of sudoers"
    for program in ("sudo", "visudo", "useradd", "userdel"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            return f"{program} is not installed"
    taken = [str(path) for path in (INSTALLED, WRAPPER_SETTINGS, SUDOERS) if path.exists()]
    return f"{', '.join(taken)} is somebody's" if taken else ""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmulatedCluster]:
    reason = _why_not()
    if reason:
        pytest.skip(reason)
    with running_cluster("cs", nodes=NODES) as started:
        started.folder.parent.chmod(0o755)  # the account reads slurm.conf there
        subprocess.run(["useradd", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT], check=True)
        made_folder = not WRAPPER_SETTINGS.parent.exists()
        try:
            _install(started)
            yield started
        finally:
            for path in (INSTALLED, WRAPPER_SETTINGS, SUDOERS):
                path.unlink(missing_ok=True)
            if made_folder and WRAPPER_SETTINGS.parent.exists():
                WRAPPER_SETTINGS.parent.rmdir()
            subprocess.run(["userdel", ACCOUNT], check=False)


def _install(cluster: EmulatedCluster) -> None:
    """Do what the page says, with this cluster and this account."""
    subprocess.run(["install", "-o", "root", "-m", "755", str(WRAPPER), str(INSTALLED)], check=True)
    subprocess.run(["install", "-d", "-m", "755", str(WRAPPER_SETTINGS.parent)], check=True)
    WRAPPER_SETTINGS.write_text(
        f"slurm_conf = {cluster.conf}\nprefix = ramp_slurm1.\npartition = debug\naccounts = {ACCOUNT} nobody\n"
    )
    WRAPPER_SETTINGS.chmod(0o644)
    (line,) = re.findall(r"^\$ (echo 'ramp ALL=.*sudoers.d/ramp-slurm)$", PAGE, re.MULTILINE)
    line = line.replace("'ramp ", f"'{ACCOUNT} ").replace("/etc/sudoers.d/ramp-slurm", str(SUDOERS))
    subprocess.run(["sh", "-c", line], check=True)
    subprocess.run(["visudo", "-c", "-f", str(SUDOERS)], check=True, capture_output=True)


def _as_account(cluster: EmulatedCluster, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "SLURM_CONF": str(cluster.conf), "TZ": "UTC", "LC_ALL": "C"}
    return subprocess.run(
        argv, user=ACCOUNT, group=ACCOUNT, extra_groups=[], env=environment, cwd="/", capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip


def _wrapped(cluster: EmulatedCluster, *words: str) -> subprocess.CompletedProcess[str]:
    return _as_account(cluster, "sudo", "-n", str(INSTALLED), *words)


def _machine(cluster: EmulatedCluster) -> ResizableBatchMachine:
    """The plug-in over commands of the account, which reads itself and changes through the wrapper."""

    def run(argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        done = _as_account(cluster, *argv)
        return Completed(argv, done.returncode, done.stdout, done.stderr)

    system = SlurmSystem(run, "debug", ACCOUNT, ("sudo", "-n", str(INSTALLED)))
    settings = PluginSettings("slurm1", NODES * CORES, CORES, time.time_ns() // 1000)
    return ResizableBatchMachine(system, settings, ForSale())


def test_an_account_without_privileges_sells_through_the_wrapper(cluster: EmulatedCluster) -> None:
    machine = _machine(cluster)
    now = int(time.time()) * SECOND
    unit = RequestUnit(1, 70, now + 9 * HOUR, TotalCores(12), not_before=now + HOUR, wall_time=HOUR)
    slot = quoted(machine, unit, now)
    assert isinstance(machine.hold("offer-1", unit, slot, now + 10 * MINUTE, now), Reservation)
    assert isinstance(machine.confirm("offer-1", now), Reservation)
    assert machine.tend({"offer-1": "nobody"}, now) == {}
    assert " Users=nobody " in cluster.run("scontrol", "-o", "show", "reservation", "ramp_slurm1.offer-1")
    machine.release("offer-1", now)
    assert reservation_names(cluster) == []
    assert not any(each.is_finding for each in wrapper_remarks("slurm1", ["sudo", "-n", str(INSTALLED)]))


def _made(name: str, partition: str, nodes: str, counts: str) -> tuple[str, ...]:
    start = int(time.time()) + 3600
    named = ("scontrol", "create", "reservation", f"ReservationName=ramp_slurm1.{name}", f"PartitionName={partition}")
    return (
        *named,
        f"StartTime=uts{start}",
        f"EndTime=uts{start + 600}",
        f"Nodes={nodes}",
        f"CoreCnt={counts}",
        "Users=nobody",
    )


def test_the_wrapper_hands_over_beside_local_jobs_and_leaves_jobs_of_others_alone(cluster: EmulatedCluster) -> None:
    local = cluster.run("sbatch", "--parsable", "-wcs1", "-n1", "-t120", "-o/dev/null", "--wrap", "sleep 600").strip()
    wait_for(lambda: cluster.run("squeue", "-h", "-j", local, "-o", "%T") == "RUNNING\n", "the local job runs")
    theirs = (
        "ReservationName=root_maint",
        f"StartTime=uts{int(time.time()) + 3600}",
        "Duration=10",
        "Users=root,nobody",
    )
    cluster.run("scontrol", "create", "reservation", *theirs, "Nodes=cs2")
    try:
        assert _wrapped(cluster, *_made("beside", "debug", "cs1", "4")).returncode == 0
        handed = ("ReservationName=ramp_slurm1.beside", "Users=nobody", "Flags=IGNORE_JOBS")
        done = _wrapped(cluster, "scontrol", "update", *handed)
        assert done.returncode == 0, done.stderr
        words = ("--reservation=ramp_slurm1.beside,root_maint", "-n1", "-t5", "-o/dev/null", "--wrap", "true")
        job = cluster.run("sbatch", "--parsable", *words, user="nobody").strip()
        for words in (("scancel", "--quiet", job), ("scancel", "--quiet", local)):
            refused = _wrapped(cluster, *words)
            assert refused.returncode == 2, f"{words}: {refused.stdout}{refused.stderr}"
        cluster.run("scancel", job)
        cluster.run("scancel", local)
        assert _wrapped(cluster, "scontrol", "delete", "ReservationName=ramp_slurm1.beside").returncode == 0
    finally:
        cluster.run("scontrol", "delete", "ReservationName=root_maint")


@pytest.mark.full
def test_what_it_has_sold_changes_its_size_through_the_wrapper(cluster: EmulatedCluster) -> None:
    machine = _machine(cluster)
    now = int(time.time()) * SECOND
    unit = RequestUnit(1, 70, now + 9 * HOUR, TotalCores(2 * CORES), not_before=now, wall_time=HOUR)
    slot = quoted(machine, unit, now)
    assert isinstance(machine.hold("offer-2", unit, slot, now + 10 * MINUTE, now), Reservation)
    assert isinstance(machine.confirm("offer-2", now), Reservation)
    assert machine.tend({"offer-2": "nobody"}, now) == {}
    name = "ramp_slurm1.offer-2"
    words = ("sbatch", "--parsable", f"--reservation={name}", "-N2", f"--ntasks-per-node={CORES}", "-t20")
    job = cluster.run(*words, "-o/dev/null", "--wrap", "sleep 600", user="nobody").strip()
    wait_for(lambda: cluster.run("squeue", "-h", "-t", "R", "-o", "%N") == "cs[1-2]\n", "the buyer's job runs")
    larger = machine.resize("offer-2", 3, 4 * CORES, slot.end + 10 * MINUTE, now)
    assert isinstance(larger, Reservation), larger
    assert "Nodes=cs[1-4]" in cluster.run("scontrol", "-o", "show", "reservation", name)
    smaller = machine.resize("offer-2", 6, CORES, slot.end - 10 * MINUTE, now)
    assert isinstance(smaller, Reservation), smaller
    assert cluster.run("squeue", "-h", "-j", job, "-o", "%N") == "cs1\n"
    assert "Nodes=cs1 " in cluster.run("scontrol", "-o", "show", "reservation", name)
    for wider in (
        ("scontrol", "update", f"ReservationName={name}", f"EndTime=uts{slot.end // SECOND}", "Nodes=cs1,cs2"),
        ("scontrol", "update", f"ReservationName={name}", f"EndTime=uts{slot.end // SECOND}"),
    ):
        refused = _wrapped(cluster, *wider)
        assert (refused.returncode, "no reservation of the market covers" in refused.stderr) == (2, True)
    machine.release("offer-2", now)
    assert reservation_names(cluster) == []
    local = cluster.run("sbatch", "--parsable", "-o/dev/null", "-t5", "--wrap", "sleep 60", user="nobody").strip()
    assert _wrapped(cluster, "scontrol", "update", f"JobId={local}", "NumNodes=1").returncode == 2
    cluster.run("scancel", local)


@pytest.mark.full
def test_without_the_wrapper_the_account_may_nothing(cluster: EmulatedCluster) -> None:
    start = f"StartTime=uts{int(time.time()) + 3600}"
    made = ("ReservationName=ramp_slurm1.x", "Users=nobody", start, "Duration=60", "Nodes=cs1", "CoreCnt=1")
    direct = _as_account(cluster, "scontrol", "create", "reservation", *made)
    assert direct.returncode != 0
    assert _as_account(cluster, "sudo", "-n", "scontrol", "show", "config").returncode != 0
    assert _as_account(cluster, "sudo", "-n", "/bin/sh", "-c", "id").returncode != 0
    assert reservation_names(cluster) == []


@pytest.mark.full
def test_the_callers_environment_chooses_no_other_cluster(cluster: EmulatedCluster, tmp_path: Path) -> None:
    other = tmp_path / "slurm.conf"
    other.write_text("ClusterName=trap\nSlurmctldHost=nowhere\n")
    words = ("sudo", "-n", str(INSTALLED), "scontrol", "delete", "ReservationName=ramp_slurm1.none")
    environment = {"PATH": "/tmp:/usr/bin:/bin", "SLURM_CONF": str(other)}
    done = subprocess.run(
        words, user=ACCOUNT, group=ACCOUNT, extra_groups=[], env=environment, cwd="/", capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    assert "Requested reservation is invalid" in done.stderr, "the cluster of the settings has answered"
