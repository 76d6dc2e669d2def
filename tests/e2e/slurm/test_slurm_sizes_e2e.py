"""Sold slots that change their size on a real cluster, also while their buyer's jobs run in them."""

from dataclasses import replace
from pathlib import Path

import pytest

from ramp.batch.reconciling import wanted_of
from ramp.batch.resizable_machine import ResizableBatchMachine
from ramp.batch.slurm.plugin import open_plugin
from ramp.errors import SystemRefused
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from simulation.emulated_slurm import EmulatedCluster
from tests.e2e.slurm.cluster_fixture import CORES, now_in_seconds, reservation_names, settings_of, wait_for
from tests.slots import sold

pytestmark = [pytest.mark.e2e, pytest.mark.full]
NODES = 8
NAME = "ramp_slurm1.offer-1"
CLUSTER = ("cz", NODES)


@pytest.fixture
def machine(cluster: EmulatedCluster, tmp_path: Path) -> ResizableBatchMachine:
    return open_plugin(settings_of(cluster, tmp_path))


def _sold(machine: ResizableBatchMachine, cores: int, after: int = 0, key: str = "offer-1") -> Slot:
    """A slot of half an hour, for this account, which has begun or begins so much later."""
    now = now_in_seconds()
    unit = RequestUnit(1, 70, now + after + 2 * HOUR, TotalCores(cores), not_before=now + after, wall_time=30 * MINUTE)
    return sold(machine, key, unit, now).slot


def _run(cluster: EmulatedCluster, nodes: int, *more: str) -> str:
    """A job that takes whole nodes of the slot, once it runs; its id."""
    words = (f"--reservation={NAME}", f"-N{nodes}", f"--ntasks-per-node={CORES}", "-t20", "-o/dev/null", *more)
    job = cluster.run("sbatch", "--parsable", *words, "--wrap", "sleep 600").strip()
    wait_for(lambda: _where(cluster, job)[0] == "RUNNING", "the job runs in the slot")
    return job


def _where(cluster: EmulatedCluster, job: str) -> tuple[str, str]:
    state, nodes = cluster.run("squeue", "-h", "-a", "-j", job, "-o", "%T|%N").strip().split("|")
    return state, nodes


def _shown(cluster: EmulatedCluster) -> str:
    return cluster.run("scontrol", "-o", "show", "reservation", NAME)


def _reason(answer: Reservation | Refusal, code: RefusalCode = RefusalCode.SLOT_TAKEN) -> str:
    assert answer.code is code
    return answer.detail


def test_a_slot_that_has_begun_gives_up_nodes_beside_the_buyers_job_and_others_run_there(
    cluster: EmulatedCluster, machine: ResizableBatchMachine
) -> None:
    slot = _sold(machine, NODES * CORES)
    job = _run(cluster, 2, "-w", "cz3,cz6")
    smaller = machine.resize("offer-1", 3, 4 * CORES, slot.end - 5 * MINUTE, now_in_seconds())
    assert smaller.slot.placement == "cz[1-3,6]"
    (found,) = machine.system.reservations()
    assert (found.end, [name for name, _ in found.parts]) == (smaller.slot.end, ["cz1", "cz2", "cz3", "cz6"])
    assert _where(cluster, job) == ("RUNNING", "cz[3,6]")
    theirs = cluster.run("sbatch", "--parsable", "-N4", "-n4", "--exclusive", "-t5", "-o/dev/null", "--wrap", "sleep 9")
    wait_for(lambda: _where(cluster, theirs.strip()) == ("RUNNING", "cz[4-5,7-8]"), "a local job runs on the rest")


def test_the_buyers_job_is_narrowed_once_and_then_it_is_in_the_way(
    cluster: EmulatedCluster, machine: ResizableBatchMachine
) -> None:
    slot = _sold(machine, 4 * CORES)
    job = _run(cluster, 4)
    smaller = machine.resize("offer-1", 3, 3 * CORES, slot.end, now_in_seconds())
    assert isinstance(smaller, Reservation), smaller
    assert _where(cluster, job) == ("RUNNING", "cz[1-3]")
    assert "NodeCnt=3" in _shown(cluster)
    before = _shown(cluster)
    refused = machine.resize("offer-1", 6, 2 * CORES, slot.end, now_in_seconds())
    reason = _reason(refused, RefusalCode.SLOT_TAKEN)
    assert reason.startswith(f"job {job} cannot be narrowed to 2 nodes"), reason
    assert _shown(cluster) == before
    kept = machine.reservation("offer-1", now_in_seconds())
    assert kept.slot == smaller.slot


def test_a_slot_that_has_begun_grows_by_nodes_and_time_under_its_job(
    cluster: EmulatedCluster, machine: ResizableBatchMachine
) -> None:
    slot = _sold(machine, 2 * CORES)
    job = _run(cluster, 2)
    larger = machine.resize("offer-1", 3, 4 * CORES, slot.end + 10 * MINUTE, now_in_seconds())
    assert isinstance(larger, Reservation), larger
    (found,) = machine.system.reservations()
    assert (found.name, found.end, len(found.parts)) == (NAME, larger.slot.end, 4)
    assert _where(cluster, job) == ("RUNNING", "cz[1-2]")
    second = _run(cluster, 2)
    assert _where(cluster, second) == ("RUNNING", larger.slot.placement.replace("1-4", "3-4"))
    assert reservation_names(cluster) == [NAME], "no guard is left"


def test_nothing_grows_over_reservations_of_cores_that_slurm_itself_would_not_see(
    cluster: EmulatedCluster, machine: ResizableBatchMachine
) -> None:
    slot = _sold(machine, 2 * CORES, after=HOUR)
    others = "cz3,cz4,cz5,cz6,cz7,cz8"
    cluster.run(
        *("scontrol", "create", "reservation", "ReservationName=theirs", f"StartTime=uts{slot.start // SECOND}"),
        *("Duration=30", "Users=root", f"Nodes={others}", "CoreCnt=1,1,1,1,1,1"),
    )
    cluster.run(
        *("scontrol", "create", "reservation", "ReservationName=later", f"StartTime=uts{slot.end // SECOND}"),
        *("Duration=30", "Users=root", "Nodes=cz1", "CoreCnt=1"),
    )
    before = _shown(cluster)
    assert "cz1 has" in _reason(machine.resize("offer-1", 1, 2 * CORES, slot.end + MINUTE, now_in_seconds()))
    entry = machine.book.entry("offer-1")
    assert entry is not None
    wanted = wanted_of(entry, now_in_seconds())
    (found,) = [each for each in machine.system.reservations() if each.name == NAME]
    for larger in (replace(wanted, parts=(*entry.parts, ("cz3", CORES))), replace(wanted, end=wanted.end + MINUTE)):
        with pytest.raises(SystemRefused) as refused:  # nor if the picture had not shown them
            machine.system.change(found, larger)
        assert refused.value.busy
    assert _shown(cluster) == before
    assert sorted(reservation_names(cluster)) == ["later", NAME, "theirs"]


def test_a_slot_with_part_of_a_node_changes_its_end_in_place_and_its_cores_only_without_jobs(
    cluster: EmulatedCluster, machine: ResizableBatchMachine
) -> None:
    slot = _sold(machine, CORES + 3)
    job = _run(cluster, 1)
    shorter = machine.resize("offer-1", 1, CORES + 3, slot.end - MINUTE, now_in_seconds())
    assert isinstance(shorter, Reservation), shorter
    longer = machine.resize("offer-1", 2, CORES + 3, slot.end + MINUTE, now_in_seconds())
    assert isinstance(longer, Reservation), longer
    assert machine.system.reservations()[0].end == slot.end + MINUTE
    assert f"jobs {job} are in it" in _reason(machine.resize("offer-1", 3, CORES, slot.end, now_in_seconds()))
    cluster.run("scancel", job)
    wait_for(lambda: not cluster.run("squeue", "-h", "-a", "-j", job).strip(), "the job has ended")
    smaller = machine.resize("offer-1", 6, CORES, slot.end, now_in_seconds())
    assert (len(smaller.slot.placement), reservation_names(cluster)) == (3, [NAME])
    again = machine.resize("offer-1", 9, CORES + 2, slot.end, now_in_seconds())
    assert isinstance(again, Reservation), again
    assert sum(count for _, count in machine.system.reservations()[0].parts) in {CORES + 2, 2 * CORES}
