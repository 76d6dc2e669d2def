"""A cluster whose nodes are shared with local jobs: cores and memory are allotted, nodes have GPUs.

What is sold there is handed over, and a job of the buyer's starts in it; or it is not sold.
"""

import time
from dataclasses import replace

import pytest

from ramp.batch.commands import CommandRunner
from ramp.batch.inspecting import harms
from ramp.batch.machine import BatchMachine
from ramp.batch.slurm.partition import CONF_VARIABLE, static_terms
from ramp.batch.slurm.plugin import open_plugin
from ramp.errors import PluginError
from ramp.launching.worker import slurm_memory
from ramp.model.instant import HOUR, MINUTE, SECOND, Instant, from_iso
from ramp.model.machine_terms import with_whole_nodes
from ramp.model.offer import Refusal
from ramp.model.request import Nodes, RequestUnit, TotalCores
from ramp.model.slot import Slot, StaticTerms
from simulation.emulated_slurm import EmulatedCluster
from tests.e2e.slurm.cluster_fixture import CORES, settings_of, wait_for
from tests.slots import sold

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

NODES = 4
MEMORY = 1000
"""MB of a node."""

CONFIGURATION = """\
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
NodeName=DEFAULT Gres=gpu:t4:2
"""
CLUSTER = (
    "sh",
    NODES,
    CONFIGURATION,
    {"gres.conf": "Name=gpu Type=t4 File=/dev/null\nName=gpu Type=t4 File=/dev/zero\n"},
)


@pytest.fixture(autouse=True)
def _commands_find_it(cluster: EmulatedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))


def _now() -> Instant:
    return time.time_ns() // 1000


def _open(cluster: EmulatedCluster) -> BatchMachine:
    return open_plugin(settings_of(cluster, gpus=True))


def _local(cluster: EmulatedCluster, node: int, *words: str) -> str:
    """Start a local job on a node and return its id."""
    words = ("-w", f"sh{node}", *words, "-o/dev/null", "--wrap", "sleep 600")
    job = cluster.run("sbatch", "--parsable", *words).strip()
    wait_for(lambda: cluster.run("squeue", "-h", "-j", job, "-o", "%T").strip() == "RUNNING", "a local job runs")
    return job


def _unit(cores: int, after: int, length: int = 10 * MINUTE) -> RequestUnit:
    now = _now()
    return RequestUnit(1, 70, now + after + length + HOUR, TotalCores(cores), not_before=now + after, wall_time=length)


def _sold(machine: BatchMachine, key: str, unit: RequestUnit) -> Slot:
    return sold(machine, key, unit, _now()).slot


def _runs_in(cluster: EmulatedCluster, key: str, cores: int) -> None:
    """See that a job of the buyer's starts in a slot, with the memory that launched jobs ask for."""
    memory = slurm_memory(f"ramp_slurm1.{key}")
    assert memory == MEMORY // CORES
    words = (f"--reservation=ramp_slurm1.{key}", f"-n{cores}", f"--mem-per-cpu={memory}", "-t5")
    job = cluster.run("sbatch", "--parsable", *words, "-o/dev/null", "--wrap", "sleep 600", user="nobody").strip()
    shown = ("squeue", "-h", "-j", job, "-o", "%T %r")
    wait_for(lambda: cluster.run(*shown).startswith("RUNNING"), lambda: f"the buyer's job runs: {cluster.run(*shown)}")


def test_a_slot_beside_a_local_job_that_outlasts_its_beginning_is_delivered(cluster: EmulatedCluster) -> None:
    for node in range(1, NODES + 1):
        _local(cluster, node, "-n1", "--mem=100", "-t30")
    machine = _open(cluster)
    slot = _sold(machine, "s0", _unit(4, 20 * SECOND))
    assert machine.tend({"s0": "nobody"}, _now()) == {}
    shown = cluster.run("scontrol", "-o", "show", "reservation", "ramp_slurm1.s0")
    assert " Users=nobody " in shown
    wait_for(lambda: _now() >= slot.start, "the slot begins")
    _runs_in(cluster, "s0", 4)
    assert machine.tend({"s0": "nobody"}, _now()) == {}
    machine.release("s0", _now())


def test_the_first_slot_of_a_full_cluster_begins_a_second_after_the_job_that_ends_first(
    cluster: EmulatedCluster,
) -> None:
    jobs = [_local(cluster, node, "-n8", f"--mem={MEMORY}", f"-t{4 + node}") for node in range(1, NODES + 1)]
    end, next_end = (from_iso(cluster.run("squeue", "-h", "-j", job, "-o", "%e").strip() + "Z") for job in jobs[:2])
    machine = _open(cluster)
    slot = _sold(machine, "s1", _unit(CORES, 0))
    assert (slot.start, slot.placement) == (end + SECOND, "sh1")
    machine.release("s1", _now())
    wide = _sold(machine, "s1-wide", _unit(2 * CORES, 0))
    assert (wide.start, wide.placement) == (next_end + SECOND, "sh[1-2]")
    machine.release("s1-wide", _now())


def test_cores_whose_memory_local_jobs_have_are_not_sold_and_those_sold_are_watched(cluster: EmulatedCluster) -> None:
    with pytest.raises(PluginError, match="for sale; see the options nodes, features and gpus"):
        open_plugin(settings_of(cluster, gpus=False))
    for node in range(1, NODES):
        _local(cluster, node, "-n1", "--mem=0", "-t600")
    machine = _open(cluster)
    shown = machine.snapshot(_now(), HOUR)
    assert shown["cores"] - shown["cores_busy"] == CORES
    assert isinstance(machine.quote(_unit(CORES + 1, 5 * MINUTE), _now()), Refusal)
    slot = _sold(machine, "s2", _unit(4, 5 * MINUTE))
    assert slot.placement == "sh4"
    greedy = _local(cluster, NODES, "-n1", "--mem=0", "-t600")
    book = tuple(machine.book.live(_now()))
    (found,) = harms("slurm1", book, machine.picture(_now()), _now())
    assert f"job {greedy} of root has the memory of sh4" in found.says
    cluster.run("scancel", cluster.run("squeue", "-h", "-w", "sh2", "-o", "%A").strip())
    wait_for(lambda: not cluster.run("squeue", "-h", "-w", "sh2"), "the local job has ended")
    move = machine.tend({"s2": "nobody"}, slot.start - 10 * SECOND)["s2"]
    assert move.placement == "sh2"
    machine.release("s2", _now())
    _sold(machine, "s2-now", _unit(CORES, 0))
    assert machine.tend({"s2-now": "nobody"}, _now()) == {}
    _runs_in(cluster, "s2-now", CORES)
    machine.release("s2-now", _now())


def test_gpus_are_sold_with_whole_nodes_that_no_local_job_uses(cluster: EmulatedCluster) -> None:
    """What `sinfo` says of GPUs are terms; a node with a local job on one core keeps its GPUs to itself."""
    run = CommandRunner({CONF_VARIABLE: str(cluster.conf)}, 15)
    found = static_terms(run, "debug")
    assert (found["gpus_per_node"], found["gpu_model"]) == (2, "t4")
    _local(cluster, 1, "-n1", "--mem=100", "--gres=gpu:1", "-t600")
    terms = StaticTerms(NODES * CORES, CORES, gpus_per_node=2, gpu_model="t4")
    asked = replace(_unit(1, 0), cores=Nodes(2, 4), gpus_per_node=2, gpu_model="t4")
    machine = _open(cluster)
    slot = _sold(machine, "s3", with_whole_nodes(asked, terms))
    assert (slot.cores, slot.placement) == (2 * CORES, "sh[2-3]")
    assert machine.tend({"s3": "nobody"}, _now()) == {}
    words = ("--reservation=ramp_slurm1.s3", "-N2", "--ntasks-per-node=4", f"--gres={asked.gres}", "-t5")
    job = cluster.run("sbatch", "--parsable", *words, "-o/dev/null", "--wrap", "sleep 600", user="nobody").strip()
    shown = ("scontrol", "-d", "-o", "show", "job", job)
    wait_for(lambda: "JobState=RUNNING" in cluster.run(*shown), lambda: f"it runs: {cluster.run(*shown)}")
    assert "Nodes=sh[2-3]" in cluster.run(*shown)
    assert "GRES=gpu:t4:2(" in cluster.run(*shown)
    machine.release("s3", _now())
