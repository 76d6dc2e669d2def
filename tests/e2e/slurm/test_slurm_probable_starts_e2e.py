"""Starts on a real Slurm that nobody reserves: a held job is let go when it is bought, and its start is told."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramp.batch.book import book_path, read_book
from ramp.batch.inspecting import Promise, inspection
from ramp.batch.slurm.emulated import EmulatedCluster
from ramp.batch.waiting.machine import QueueBoundMachine
from ramp.batch.waiting.plugin import open_plugin
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import Nodes, RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from tests.e2e.slurm.cluster_fixture import CORES, cleared, running_cluster, saved, wait_for

pytestmark = pytest.mark.e2e

SOME = 4


@pytest.fixture(scope="module")
def one_cluster() -> Iterator[EmulatedCluster]:
    with running_cluster("cq", SOME) as started:
        yield started


@pytest.fixture
def cluster(one_cluster: EmulatedCluster) -> EmulatedCluster:
    return cleared(one_cluster)


def settings(cluster: EmulatedCluster, folder: Path) -> PluginSettings:
    options = {
        "system": "slurm",
        "queue": {"partition": "debug", "conf": str(cluster.conf)},
        "snapshot_age_s": 0.0,
    }
    return PluginSettings("queue1", SOME * CORES, CORES, now(), options, folder)


def opened(cluster: EmulatedCluster, folder: Path) -> QueueBoundMachine:
    return open_plugin(settings(cluster, folder))


def now() -> int:
    return time.time_ns() // 1000


def unit(cores: TotalCores | Nodes) -> RequestUnit:
    return RequestUnit(1, 70, now() + 4 * HOUR, cores, wall_time=90 * SECOND)


def held(machine: QueueBoundMachine, key: str, wanted: RequestUnit) -> Reservation:
    slot = machine.quote(wanted, now())
    assert isinstance(slot, Slot), slot
    found = machine.hold(key, wanted, slot, now() + 10 * MINUTE, now())
    assert isinstance(found, Reservation), found
    return found


def jobs(cluster: EmulatedCluster) -> list[list[str]]:
    """Name, state and cores of every job that runs or waits, as the real command prints them."""
    return [line.split() for line in cluster.run("squeue", "-h", "-a", "-o", "%j %T %C").splitlines()]


def started(machine: QueueBoundMachine, key: str) -> int | None:
    found = machine.reservation(key, now())
    assert found is not None
    return found.started_at


def test_a_held_job_is_let_go_starts_and_is_released(cluster: EmulatedCluster, tmp_path: Path) -> None:
    machine = opened(cluster, tmp_path)
    wanted = unit(Nodes(2, 3))
    reservation = held(machine, "offer-1", wanted)
    assert reservation.slot.start_probability == 1.0  # an idle queue
    name = "ramp_queue1.offer-1"
    assert jobs(cluster) == [[name, "PENDING", "6"]]
    assert cluster.run("squeue", "-h", "-o", "%A %r").split() == [reservation.reservation_id, "JobHeldUser"] or (
        "JobHeld" in cluster.run("squeue", "-h", "-o", "%r")
    )
    firm = machine.confirm("offer-1", now())
    assert isinstance(firm, Reservation)
    assert firm.firm
    wait_for(lambda: started(machine, "offer-1") is not None, "the job starts")
    assert jobs(cluster) == [[name, "RUNNING", "6"]]
    assert abs((started(machine, "offer-1") or 0) - now()) < 200 * SECOND
    machine.release("offer-1", now())
    wait_for(lambda: not jobs(cluster), "the job is gone")
    assert machine.reservation("offer-1", now()) is None


def test_what_waits_is_refused_until_enough_is_known_and_a_deleted_job_is_gone(
    cluster: EmulatedCluster, tmp_path: Path
) -> None:
    machine = opened(cluster, tmp_path)
    wanted = unit(TotalCores(SOME * CORES))
    held(machine, "offer-2", wanted)
    cluster.run("sbatch", f"-n{SOME * CORES}", "-t20", "-o/dev/null", "--wrap", "sleep 600")
    wait_for(lambda: "R" in cluster.run("squeue", "-h", "-o", "%t").split(), "the local job runs")
    refused = opened(cluster, tmp_path / "other").quote(wanted, now())
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.START_PROBABILITY
    machine.confirm("offer-2", now())
    assert started(machine, "offer-2") is None
    cluster.run("scancel", "--name", "ramp_queue1.offer-2")
    wait_for(lambda: machine.reservation("offer-2", now()) is None, "the job is said to be gone")


def test_a_killed_controller_and_a_new_agent_find_the_job_again(cluster: EmulatedCluster, tmp_path: Path) -> None:
    machine = opened(cluster, tmp_path)
    reservation = held(machine, "offer-3", unit(TotalCores(3)))
    saved(cluster)
    cluster.signal_controller(signal.SIGKILL)
    cluster.start_controller()
    wait_for(lambda: "cq" in cluster.run("sinfo", "-h", "-o", "%N"), "the controller answers")
    again = opened(cluster, tmp_path)
    found = again.reservation("offer-3", now())
    assert found is not None
    assert found.reservation_id == reservation.reservation_id
    again.confirm("offer-3", now())
    wait_for(lambda: started(again, "offer-3") is not None, "the job starts")


def test_the_doctor_compares_held_and_released_jobs_with_book_and_agreements(
    cluster: EmulatedCluster, tmp_path: Path
) -> None:
    machine = opened(cluster, tmp_path)
    one, two = (held(machine, key, unit(TotalCores(3))) for key in ("offer-8", "offer-9"))
    look = inspection("queue-bound")
    assert look is not None

    def says(*promised: Reservation) -> set[str]:
        compare = look.read(settings(cluster, tmp_path))
        assert compare is not None
        promises = [Promise(each.key, "", False, each.slot.end, each.held_until) for each in promised]
        entries = read_book(book_path(tmp_path, "queue1"))
        return {each.says.split(", and ")[-1] for each in compare(entries if promised else (), promises, now())}

    assert says(one, two) == set()
    assert says() == {"no agreement covers it"}
    cluster.run("scontrol", "release", one.reservation_id)
    cluster.run("scancel", two.reservation_id)
    found = {f"slurm has let its job {one.reservation_id} go", f"slurm does not have its job {two.reservation_id}"}
    wait_for(lambda: says(one, two) == found, f"it finds {found}")
