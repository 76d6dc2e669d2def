"""Everything that decides whether a job in a sold slot will start: read, kept out of sales, watched and reported."""

from dataclasses import replace

import pytest

from ramp.batch.availability import Availability
from ramp.batch.commands import Completed
from ramp.batch.for_sale import ForSale
from ramp.batch.inspecting import harms
from ramp.batch.machine import BatchMachine
from ramp.batch.slurm.partition import Choice, both, parse_nodes, parse_partition, parse_qos
from ramp.batch.slurm.queue import parse_memories, parse_queue, running_jobs
from ramp.batch.slurm.system import SlurmSystem
from ramp.batch.system import Limits, Node, Parts, RunningJob, SystemReservation
from ramp.errors import PluginError
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.request import Nodes, RequestUnit, TotalCores
from ramp.model.slot import Slot
from tests.slots import quoted, refused, sold
from tests.unit.batch.fake_system import NOW, FakeSystem, machine_on

# recorded from Slurm 22.05.8 with CR_Core_Memory; GPUs on two of the nodes by hand
SINFO = """\
x1|mixed|1|8|1|8|1000|(null)|(null)|none
x2|mixed|1|8|1|8|1000|(null)|big,ib|none
x3|mixed|1|8|1|8|1000|gpu:2|(null)|none
x4|mixed|1|8|1|8|1000|fpga:1,gpu:a100:2(S:0)|big|none
"""
SQUEUE = """\
1|RUNNING|root|debug|30:00|2026-11-28T13:21:37|2026-11-28T13:51:37|2026-11-28T13:21:37|1|1|x1|(null)|4294901759|(null)|None
2|RUNNING|root|debug|5:00|2026-11-28T13:21:40|2026-11-28T13:26:40|2026-11-28T13:21:39|1|1|x2|(null)|4294901758|(null)|None
13_1|RUNNING|root|debug|5:00|2026-11-28T13:21:40|2026-11-28T13:26:40|2026-11-28T13:21:39|3|2|x[3-4]|(null)|4294901756|(null)|None
"""
MEMORY = """\
1                                       cpu=1,mem=100M,node=1,billing=1
2                                       cpu=1,mem=1000M,node=1,billing=1
13_1                                    cpu=3,mem=150M,node=2,billing=3
"""
LIMITED = (
    "PartitionName=limited AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=NO QoS=N/A "
    "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=1 MaxTime=12:00:00 MinNodes=0 "
    "LLN=NO MaxCPUsPerNode=6 Nodes=x[1-2] PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO "
    "OverTimeLimit=5 PreemptMode=OFF State=DRAIN TotalCPUs=16 TotalNodes=2 SelectTypeParameters=NONE "
    "JobDefaults=(null) DefMemPerCPU=100 MaxMemPerNode=UNLIMITED TRES=cpu=16,mem=2000M,node=2,billing=16\n"
)
UNIT = RequestUnit(1, 70, NOW + 40 * HOUR, TotalCores(8), not_before=NOW + HOUR, wall_time=HOUR)


def test_a_job_takes_the_cores_whose_memory_it_has() -> None:
    memories = parse_memories(MEMORY)
    assert memories == {"1": 100, "2": 1000, "13_1": 150}
    found = running_jobs(parse_queue(SQUEUE), parse_nodes(SINFO).nodes, {}, 1, memories)
    assert {job.job_id: job.taken for job in found} == {
        "1": (("x1", 1),),  # 100 of 1000 MB are the share of a core of eight
        "2": (("x2", 8),),
        "13_1": (("x3", 2), ("x4", 2)),
    }
    assert {job.job_id: job.parts for job in found}["2"] == (("x2", 1),)


@pytest.mark.parametrize(
    ("said", "megabytes"),
    [("mem=62.50G", 64000), ("cpu=1,mem=1.50T,node=1", 1572864), ("mem=100K", 1), ("cpu=1,node=1", None)],
)
def test_memory_in_every_unit(said: str, megabytes: int | None) -> None:
    assert parse_memories(f"7 {said}\n").get("7") == megabytes


def test_the_nodes_for_sale_are_chosen_by_name_feature_and_gpus() -> None:
    def chosen(choice: Choice) -> list[str]:
        return [node.name for node in parse_nodes(SINFO, choice).nodes]

    assert chosen(Choice()) == ["x1", "x2", "x3", "x4"]
    assert chosen(Choice(gpus=False)) == ["x1", "x2"]
    assert chosen(Choice(features=frozenset({"big"}))) == ["x2", "x4"]
    assert [node.gpus for node in parse_nodes(SINFO).nodes] == [(), (), (("", 2),), (("a100", 2),)]
    assert chosen(Choice(frozenset({"x1", "x4"}), frozenset({"big"}))) == ["x4"]


def test_the_limits_of_a_partition_and_of_its_qos() -> None:
    limits, qos = parse_partition(LIMITED, 2)
    assert (limits, qos) == (Limits("partition limited is DRAIN", 12 * HOUR, None, 1, 3), "")
    free = LIMITED.replace("DRAIN", "UP").replace("MaxNodes=1", "MaxNodes=UNLIMITED").replace("=N/A", "=short")
    free = free.replace("MaxTime=12:00:00", "MaxTime=UNLIMITED").replace("PerNode=6", "PerNode=UNLIMITED")
    assert parse_partition(free, 2) == (Limits(), "short")
    # sacctmgr(1): MaxWall|MaxTRES|GrpTRES
    assert parse_qos("1-00:00:00|cpu=64,node=4|cpu=32,gres/gpu=2\n", 2) == Limits("", 24 * HOUR, 16, 4)
    assert parse_qos("||\n", 2) == Limits()
    assert both(limits, parse_qos("08:00:00|node=4|", 2)) == replace(limits, longest=8 * HOUR)
    with pytest.raises(ValueError, match="1 of 3 fields"):
        parse_qos("", 1)


def test_cores_without_memory_are_neither_free_nor_for_sale() -> None:
    job = RunningJob("1", "u", NOW, NOW + 9 * HOUR, (("n1", 1),), takes=(("n1", 8),))
    system = FakeSystem(nodes=[Node("n1", 8), Node("n2", 8)], running=[job])
    machine = machine_on(system)
    slot = quoted(machine, UNIT, NOW)
    assert slot.placement == "n2"
    assert machine.snapshot(NOW, HOUR)["cores_busy"] == 8
    wide = quoted(machine, replace(UNIT, cores=TotalCores(9)), NOW)
    assert wide.start == NOW + 9 * HOUR + SECOND


def test_memory_beyond_a_reservation_is_not_sold_again() -> None:
    """A buyer's job in a slot of four cores may have the memory of the whole node."""
    theirs = SystemReservation("theirs", "theirs", NOW, NOW + 9 * HOUR, (("n1", 4),), active=True)
    job = RunningJob("1", "u", NOW, NOW + 9 * HOUR, (("n1", 4),), "theirs", takes=(("n1", 8),))
    system = FakeSystem(nodes=[Node("n1", 8)], running=[job], there={"theirs": theirs})
    machine = machine_on(system)
    slot = quoted(machine, replace(UNIT, cores=TotalCores(4)), NOW)
    assert slot.start == NOW + 9 * HOUR


@pytest.mark.parametrize(
    ("limits", "unit", "nearest"),
    [
        (Limits(longest=12 * HOUR), replace(UNIT, wall_time=13 * HOUR), "43200 s"),
        (Limits(cores=4), UNIT, "4 cores"),
        (Limits(nodes=2), replace(UNIT, cores=Nodes(3, 2)), "2 nodes"),
    ],
)
def test_what_no_job_could_use_is_refused_with_the_limit(limits: Limits, unit: RequestUnit, nearest: str) -> None:
    refusal = refused(machine_on(FakeSystem(limits=limits)), unit, NOW)
    assert (refusal.code, refusal.nearest) == (RefusalCode.MACHINE_TOO_SMALL, nearest)
    assert isinstance(machine_on(FakeSystem()).quote(unit, NOW), Slot)


def test_a_request_for_cores_is_not_spread_over_more_nodes_than_a_job_may_have() -> None:
    busy = [RunningJob("1", "u", NOW, NOW + 9 * HOUR, tuple((f"n{number}", 5) for number in range(1, 9)))]
    slot = quoted(machine_on(FakeSystem(running=busy, limits=Limits(nodes=2))), UNIT, NOW)
    assert slot.start == NOW + 9 * HOUR + SECOND
    unlimited = quoted(machine_on(FakeSystem(running=busy)), UNIT, NOW)
    assert unlimited.placement == "n[1-3]"
    capped = quoted(machine_on(FakeSystem(limits=Limits(cores_per_node=6))), UNIT, NOW)
    assert capped.token == "6:n1;2:n2"


def test_a_partition_that_is_down_sells_nothing_and_has_nothing_free() -> None:
    system = FakeSystem(limits=Limits(closed="partition debug is DOWN"))
    machine = machine_on(system)
    with pytest.raises(PluginError, match="partition debug is DOWN"):
        machine.quote(UNIT, NOW)
    assert machine.snapshot(NOW, HOUR)["cores_busy"] == 64


def _harms(machine: BatchMachine, now: int) -> list[str]:
    found = harms("big1", tuple(machine.book.live(now)), machine.picture(now), now)
    assert all(each.is_finding and each.check == "slots" for each in found)
    return [each.says.partition(", and ")[2] for each in found]


WORKS = NOW + 90 * MINUTE
MAINTENANCE = SystemReservation("maintenance", "maintenance", WORKS, NOW + 3 * HOUR, (("n1", 8),), ("root",))


def test_a_reservation_over_a_sold_slot_is_a_finding_and_moves_it() -> None:
    system = FakeSystem()
    machine = machine_on(system)
    assert sold(machine, "offer-1", UNIT, NOW).slot.placement == "n1"
    assert _harms(machine, NOW) == []
    system.there["maintenance"] = MAINTENANCE
    assert _harms(machine, NOW) == ["reservation maintenance has n1 from 2026-11-21T09:30:00Z"]
    at_last_look = NOW + HOUR - 10 * SECOND
    found = machine.tend({"offer-1": "alice1"}, at_last_look)["offer-1"]
    assert found.placement == "n2"
    assert _harms(machine, NOW) == []
    system.there["others"] = replace(MAINTENANCE, name="ramp_big1.other", parts=(("n2", 8),))
    assert _harms(machine, NOW) == [], "the market's own keep out of each other's way"


def test_memory_that_a_local_job_took_after_the_sale_is_a_finding_and_moves_the_slot() -> None:
    system = FakeSystem()
    machine = machine_on(system)
    sold(machine, "offer-1", replace(UNIT, cores=TotalCores(4)), NOW)
    job = RunningJob("7", "u", NOW, NOW + 9 * HOUR, (("n1", 1),), takes=(("n1", 8),))
    system.running = [job]
    assert _harms(machine, NOW) == ["job 7 of u has the memory of n1"]
    half = replace(job, takes=(("n1", 3),))
    system.running = [half]
    assert _harms(machine, NOW) == []
    system.running = [half, replace(half, job_id="9")]
    both = "job 7 of u has the memory of n1; job 9 of u has the memory of n1"
    assert _harms(machine, NOW) == [both], "each alone would leave enough"
    system.running = [replace(job, end=NOW + HOUR)]
    assert _harms(machine, NOW) == [], "it ends before the slot begins"
    system.running = [job, RunningJob("8", "alice1", NOW, None, (("n1", 4),), "ramp_big1.offer-1")]
    assert _harms(machine, NOW + HOUR) == [], "a job of the buyer's has started"
    system.running = [job]
    found = machine.tend({"offer-1": "alice1"}, NOW + HOUR - 10 * SECOND)["offer-1"]
    assert found.placement == "n2"


def test_a_closed_partition_harms_a_slot_only_once_it_has_begun() -> None:
    system = FakeSystem()
    clock = [0.0]
    machine = machine_on(system, clock=clock)
    sold(machine, "offer-1", UNIT, NOW)
    system.limits = Limits(closed="partition debug is DOWN")
    for now in (NOW, NOW + 59 * MINUTE):
        clock[0] += 100
        assert machine.tend({"offer-1": "alice1"}, now) == {}
        assert _harms(machine, now) == []
    begun = NOW + HOUR
    assert _harms(machine, begun) == ["partition debug is DOWN"]
    assert machine.tend({"offer-1": "alice1"}, begun) == {}
    clock[0] += 100
    lost = machine.tend({"offer-1": "alice1"}, begun + 100 * SECOND)
    assert lost == {"offer-1": "partition debug is DOWN; the slot has begun, so it is not moved"}


def test_what_the_system_reserved_instead_is_said_in_words() -> None:
    class Fewer(FakeSystem):
        def make(self, wanted: object) -> None:
            super().make(wanted)  # type: ignore[arg-type]
            parts: Parts = (("n1", 2),)
            self.there = {name: replace(each, parts=parts) for name, each in self.there.items()}

    machine = machine_on(Fewer())
    slot = quoted(machine, replace(UNIT, cores=TotalCores(16)), NOW)
    refusal = machine.hold("offer-1", UNIT, slot, NOW + MINUTE, NOW)
    assert refusal.detail == "fake reserved 2 cores on n1 for ramp_big1.offer-1, not 16 cores on n[1-2]"


@pytest.mark.parametrize(
    ("of_qos", "longest"),
    [
        (Completed((), 0, "08:00:00|cpu=6|\n", ""), 8 * HOUR),
        (Completed((), 1, "", "You are not running a supported accounting_storage plugin"), 12 * HOUR),
    ],
)
def test_one_picture_of_slurm_has_all_that_decides_whether_a_job_starts(of_qos: Completed, longest: int) -> None:
    said = {
        "ping": "Slurmctld(primary) at node is UP\n",
        "sinfo": SINFO,
        "config": "SelectTypeParameters    = CR_CORE_MEMORY\n",
        "partition": LIMITED.replace("QoS=N/A", "QoS=short"),
        "reservation": "No reservations in the system\n",
        "-O": MEMORY,
        "-o": SQUEUE,
        "--json": '{"jobs": []}',
    }
    asked = []

    def run(argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        asked.append(argv[0])
        if argv[0] == "sacctmgr":
            return of_qos
        return Completed(argv, 0, next(said[word] for word in said if word in argv), "")

    system = SlurmSystem(run, "limited", "market", choice=Choice(gpus=False))
    for _ in range(2):
        picture = system.snapshot(NOW)
    assert [node.name for node in picture.nodes] == ["x1", "x2"]
    assert {job.job_id: job.taken for job in picture.running} == {"1": (("x1", 1),), "2": (("x2", 8),)}
    assert (picture.limits.closed, picture.limits.longest) == ("partition limited is DRAIN", longest)
    assert asked.count("sacctmgr") == 1, "accounting is asked when the partition has another QOS"


def test_gpus_are_sold_on_whole_free_nodes_that_have_them() -> None:
    """One core of g1 is taken, n1 has none, g3 another model, and Slurm names no model of g4's."""
    gpus = {
        "g1": (("a100", 2),),
        "n1": (),
        "g2": (("a100", 2),),
        "g3": (("v100", 4),),
        "g4": (("", 2),),
        "g5": (("a100", 4),),
    }
    nodes = [Node(name, 8, gpus=has) for name, has in gpus.items()]
    local = RunningJob("7", "root", NOW - HOUR, NOW + 9 * HOUR, (("g1", 1),))
    machine = machine_on(FakeSystem(nodes, [local]))
    unit = replace(UNIT, cores=Nodes(2, 8), gpus_per_node=2, gpu_model="a100")
    slot = quoted(machine, unit, NOW)
    assert (slot.placement, slot.cores, slot.start) == ("g[2,5]", 16, NOW + HOUR)
    later = quoted(machine, replace(unit, cores=Nodes(3, 8)), NOW)
    assert later.start == NOW + 9 * HOUR + SECOND, "when all of g1 is free"
    for wanted, nearest in (
        (replace(unit, gpus_per_node=4), "1 node with gpu:a100:4"),
        (replace(unit, gpu_model="h100"), "0 nodes with gpu:h100:2"),
    ):
        refusal = refused(machine, wanted, NOW)
        assert (refusal.code, refusal.nearest) == (RefusalCode.GPUS, nearest)
    any_model = quoted(machine, replace(unit, cores=Nodes(4, 8), gpu_model=None), NOW)
    assert any_model.placement == "g[2-5]"
    broken = Availability([replace(nodes[0], usable=False), *nodes[1:]], [], NOW, ForSale())
    assert broken.like((("g1", 8),), NOW, NOW + HOUR) == (("g2", 8),), "another node with the same GPUs"
