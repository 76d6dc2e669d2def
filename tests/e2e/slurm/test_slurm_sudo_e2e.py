"""The wrapper through the real sudo, by the line of docs/slurm.md: an account that may sell slots and nothing else.

Files of the system are made and removed again, and an account; so it runs as root only, and not where a wrapper is
installed already.
"""

from __future__ import annotations

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
from ramp.batch.machine import BatchMachine
from ramp.batch.slurm.emulated import EmulatedCluster
from ramp.batch.slurm.inspection import WRAPPER, WRAPPER_SETTINGS, wrapper_remarks
from ramp.batch.slurm.system import SlurmSystem
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from tests.e2e.slurm.cluster_fixture import CORES, reservation_names, running_cluster

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
    (line,) = re.findall(r"echo '(ramp ALL=.*)' > /etc/sudoers.d", PAGE)
    SUDOERS.write_text(re.sub("^ramp ", f"{ACCOUNT} ", line) + "\n")
    SUDOERS.chmod(0o440)
    subprocess.run(["visudo", "-c", "-f", str(SUDOERS)], check=True, capture_output=True)


def _as_account(cluster: EmulatedCluster, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "SLURM_CONF": str(cluster.conf), "TZ": "UTC", "LC_ALL": "C"}
    return subprocess.run(
        argv, user=ACCOUNT, group=ACCOUNT, extra_groups=[], env=environment, cwd="/", capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip


def _wrapped(cluster: EmulatedCluster, *words: str) -> subprocess.CompletedProcess[str]:
    return _as_account(cluster, "sudo", "-n", str(INSTALLED), *words)


def test_an_account_without_privileges_sells_through_the_wrapper(cluster: EmulatedCluster) -> None:
    def run(argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        done = _as_account(cluster, *argv)
        return Completed(argv, done.returncode, done.stdout, done.stderr)

    system = SlurmSystem(run, "debug", ACCOUNT, ("sudo", "-n", str(INSTALLED)))
    machine = BatchMachine(system, "slurm1", NODES * CORES, ForSale(), None)
    now = int(time.time()) * SECOND
    unit = RequestUnit(1, 70, now + 9 * HOUR, TotalCores(12), not_before=now + HOUR, wall_time=HOUR)
    slot = machine.quote(unit, now)
    assert isinstance(slot, Slot)
    assert isinstance(machine.hold("offer-1", unit, slot, now + 10 * MINUTE, now), Reservation)
    assert isinstance(machine.confirm("offer-1", now), Reservation)
    assert machine.tend({"offer-1": "nobody"}, now) == {}
    assert " Users=nobody " in cluster.run("scontrol", "-o", "show", "reservation", "ramp_slurm1.offer-1")
    machine.release("offer-1", now)
    assert reservation_names(cluster) == []
    assert not any(each.is_finding for each in wrapper_remarks("slurm1", ["sudo", "-n", str(INSTALLED)]))


def test_without_the_wrapper_the_account_may_nothing(cluster: EmulatedCluster) -> None:
    start = f"StartTime=uts{int(time.time()) + 3600}"
    made = ("ReservationName=ramp_slurm1.x", "Users=nobody", start, "Duration=60", "Nodes=cs1", "CoreCnt=1")
    direct = _as_account(cluster, "scontrol", "create", "reservation", *made)
    assert direct.returncode != 0
    assert _as_account(cluster, "sudo", "-n", "scontrol", "show", "config").returncode != 0
    assert _as_account(cluster, "sudo", "-n", "/bin/sh", "-c", "id").returncode != 0
    assert reservation_names(cluster) == []


def test_what_goes_round_a_wildcard_of_sudoers_does_not_go_round_the_wrapper(cluster: EmulatedCluster) -> None:
    start = int(time.time()) + 3600
    cluster.run(
        *("scontrol", "create", "reservation", "ReservationName=theirs", f"StartTime=uts{start}"),
        *("Duration=60", "Users=root", "Nodes=cs1", "CoreCnt=8"),
    )
    try:
        second_name = ("ReservationName=ramp_slurm1.x", "ReservationName=theirs", f"Users={ACCOUNT}")
        swapped = ("ReservationName=theirs", f"Users={ACCOUNT}")
        made = (
            *("scontrol", "create", "reservation", "ReservationName=ramp_slurm1.x", "PartitionName=debug"),
            *(f"StartTime=uts{start}", f"EndTime=uts{start + 600}", "Nodes=cs1", "CoreCnt=8", f"Users={ACCOUNT}"),
        )
        for words in (
            ("scontrol", "update", *second_name),
            ("scontrol", "update", *swapped),
            ("scontrol", "delete", "ReservationName=theirs"),
            (*made, "Flags=OVERLAP,IGNORE_JOBS"),
            tuple(word.replace("CoreCnt=8", "CoreCnt=8 Flags=OVERLAP") for word in made),
            ("scancel", "--quiet", "--user=root"),
            ("scontrol", "shutdown"),
        ):
            refused = _wrapped(cluster, *words)
            assert refused.returncode == 2, f"{words}: {refused.stdout}{refused.stderr}"
        # in the one form that it takes Slurm itself looks whether the cores are free
        assert _wrapped(cluster, *made).returncode == 1
        assert reservation_names(cluster) == ["theirs"]
        assert " Users=root " in cluster.run("scontrol", "-o", "show", "reservation", "theirs")
    finally:
        cluster.run("scontrol", "delete", "ReservationName=theirs")


def test_the_callers_environment_chooses_no_other_cluster(cluster: EmulatedCluster, tmp_path: Path) -> None:
    other = tmp_path / "slurm.conf"
    other.write_text("ClusterName=trap\nSlurmctldHost=nowhere\n")
    words = ("sudo", "-n", str(INSTALLED), "scontrol", "delete", "ReservationName=ramp_slurm1.none")
    environment = {"PATH": "/tmp:/usr/bin:/bin", "SLURM_CONF": str(other)}
    done = subprocess.run(
        words, user=ACCOUNT, group=ACCOUNT, extra_groups=[], env=environment, cwd="/", capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert "Requested reservation is invalid" in done.stderr, "the cluster of the settings has answered"
