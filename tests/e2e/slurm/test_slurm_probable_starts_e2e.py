"""Starts on a real Slurm that nobody reserves: a held job is let go when it is bought, and its start is told."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from ramp.batch.waiting.machine import QueueBoundMachine
from ramp.batch.waiting.plugin import open_plugin
from ramp.launching.acting import Acting, system_python
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.request import Nodes, RequestUnit, TotalCores
from ramp.plugins.interface import PluginSettings
from simulation.emulated_slurm import EmulatedCluster
from tests.e2e.batch_jobs.job_at_site import JobAtSite
from tests.e2e.batch_jobs.psij_environment import ACCOUNT
from tests.e2e.slurm.cluster_fixture import CORES, saved, wait_for
from tests.slots import held, quoted, refused

pytestmark = [pytest.mark.e2e, pytest.mark.full]
SOME = 4
CLUSTER = ("cq", SOME)


def settings(cluster: EmulatedCluster, folder: Path) -> PluginSettings:
    options = {"system": "slurm", "queue": {"partition": "debug", "conf": str(cluster.conf)}, "snapshot_age_s": 0.0}
    return PluginSettings("queue1", SOME * CORES, CORES, now(), options, folder)


@contextmanager
def folder_of_accounts() -> Iterator[Path]:
    """Where job folders are, one folder an account, which root makes; skips where this account is not root."""
    if os.geteuid() != 0:
        pytest.skip("jobs run as other accounts, which needs root")
    with tempfile.TemporaryDirectory(prefix="ramp-jobs-", dir="/tmp") as folder:
        yield Path(folder)


def opened(cluster: EmulatedCluster, folder: Path) -> QueueBoundMachine:
    return open_plugin(settings(cluster, folder))


def now() -> int:
    return time.time_ns() // 1000


def unit(cores: TotalCores | Nodes) -> RequestUnit:
    return RequestUnit(1, 70, now() + 4 * HOUR, cores, wall_time=90 * SECOND)


def jobs(cluster: EmulatedCluster) -> list[list[str]]:
    """Name, state and cores of every job that runs or waits, as the real command prints them."""
    return [line.split() for line in cluster.run("squeue", "-h", "-a", "-o", "%j %T %C").splitlines()]


def started(machine: QueueBoundMachine, key: str) -> int | None:
    found = machine.reservation(key, now())
    return found.started_at


def test_a_held_job_is_let_go_starts_and_is_released(cluster: EmulatedCluster, tmp_path: Path) -> None:
    machine = opened(cluster, tmp_path)
    wanted = unit(Nodes(2, 3))
    reservation = held(machine, "offer-1", wanted, now())
    assert reservation.slot.start_probability == 1.0  # an idle queue
    name = "ramp_queue1.offer-1"
    assert jobs(cluster) == [[name, "PENDING", "6"]]
    assert cluster.run("squeue", "-h", "-o", "%A %r").split() == [reservation.reservation_id, "JobHeldUser"] or (
        "JobHeld" in cluster.run("squeue", "-h", "-o", "%r")
    )
    begun = now()
    firm = machine.confirm("offer-1", begun)
    assert firm.firm
    wait_for(lambda: started(machine, "offer-1") is not None, "the job starts")
    assert jobs(cluster) == [[name, "RUNNING", "6"]]
    assert begun - SECOND <= (started(machine, "offer-1") or 0) <= now()
    machine.release("offer-1", now())
    wait_for(lambda: not jobs(cluster), "the job is gone")
    assert machine.reservation("offer-1", now()) is None


def test_what_waits_is_refused_until_enough_is_known_and_a_deleted_job_is_gone(
    cluster: EmulatedCluster, tmp_path: Path
) -> None:
    machine = opened(cluster, tmp_path)
    wanted = unit(TotalCores(SOME * CORES))
    held(machine, "offer-2", wanted, now())
    cluster.run("sbatch", f"-n{SOME * CORES}", "-t20", "-o/dev/null", "--wrap", "sleep 600")
    wait_for(lambda: "R" in cluster.run("squeue", "-h", "-o", "%t").split(), "the local job runs")
    refusal = refused(opened(cluster, tmp_path / "other"), wanted, now())
    assert refusal.code is RefusalCode.START_PROBABILITY
    machine.confirm("offer-2", now())
    assert started(machine, "offer-2") is None
    cluster.run("scancel", "--name", "ramp_queue1.offer-2")
    wait_for(lambda: machine.reservation("offer-2", now()) is None, "the job is said to be gone")


def test_a_killed_controller_and_a_new_agent_find_the_job_again(cluster: EmulatedCluster, tmp_path: Path) -> None:
    machine = opened(cluster, tmp_path)
    reservation = held(machine, "offer-3", unit(TotalCores(3)), now())
    saved(cluster)
    cluster.processes["slurmctld"].kill()
    cluster.processes["slurmctld"].wait()
    cluster.start_controller()
    wait_for(lambda: "cq" in cluster.run("sinfo", "-h", "-o", "%N"), "the controller answers")
    again = opened(cluster, tmp_path)
    found = again.reservation("offer-3", now())
    assert found.reservation_id == reservation.reservation_id
    again.confirm("offer-3", now())
    wait_for(lambda: started(again, "offer-3") is not None, "the job starts")


def test_what_the_buyer_orders_runs_in_that_very_job_as_the_buyers_account(
    cluster: EmulatedCluster, tmp_path: Path
) -> None:
    """Ordered while it runs, one ends by itself, one is cancelled, and what is left ends with the job in the queue."""
    with folder_of_accounts() as folder:
        acting = asdict(Acting("", system_python(), str(folder)))
        machine = open_plugin(replace(settings(cluster, tmp_path), acting=acting))
        wanted = unit(Nodes(2, 3))
        slot = quoted(machine, wanted, now())
        bought = machine.hold_for(ACCOUNT, "offer-5", wanted, slot, now() + 10 * MINUTE, now())
        assert cluster.run("squeue", "-h", "-a", "-o", "%A %u %T").split() == [
            *(bought.reservation_id, ACCOUNT, "PENDING")
        ]
        machine.confirm("offer-5", now())
        wait_for(lambda: started(machine, "offer-5") is not None, "the job starts")

        def ordered(job_id: str, command: str) -> JobAtSite:
            where = {"SLURM_CONF": str(cluster.conf)}
            own, number = folder / ACCOUNT, bought.reservation_id
            job = JobAtSite("slurm", where, own, job_id, number, 6, command, queue_key="offer-5")
            assert job.seen("submit")["native_id"] == number  # it may have ended already
            return job

        one = ordered("job-1", 'echo "$(id -un) $SLURM_JOB_ID $(srun hostname | wc -l)"; exit 3')
        two = ordered("job-2", "sleep 400 & wait")
        three = ordered("job-3", "exec sleep 400")  # one process: Slurm ends a job's in no order
        seen = one.until("failed")
        assert (seen["exit_code"], seen["cores"], seen["native_id"]) == (3, 6, bought.reservation_id)
        assert one.output() == f"{ACCOUNT} {bought.reservation_id} 6\n", one.output("stderr")
        two.until("running")
        two.ask("cancel")
        assert two.until("cancelled")["exit_code"] == -15
        three.until("running")
        machine.release("offer-5", now())
        wait_for(lambda: not jobs(cluster), "the job in the queue is gone")
        assert three.until("failed")["started_at"] is not None
        assert [job.seen("submit")["state"] for job in (one, two)] == ["failed", "cancelled"]  # none runs again
