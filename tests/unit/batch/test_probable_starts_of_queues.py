"""The plug-in `queue-bound`: held jobs that are let go when they are bought, and what a queue teaches of its waits."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ramp.batch.commands import Completed
from ramp.batch.slurm.held_jobs import SlurmQueue, parse_jobs
from ramp.batch.slurm.system import SlurmSystem
from ramp.batch.system import NO_LIMITS, Limits, Node, RunningJob, SystemSnapshot, WaitingJob
from ramp.batch.waiting.job_queue import JobQueue, OwnJob, Standing, WantedJob
from ramp.batch.waiting.learning import QueueLearning
from ramp.batch.waiting.machine import QueueBoundMachine
from ramp.batch.waiting.plugin import open_plugin
from ramp.errors import BatchSystemError, ConfigurationError, PluginError, SystemRefused
from ramp.model.instant import HOUR, MINUTE, SECOND, from_iso
from ramp.model.offer import RefusalCode
from ramp.model.request import Nodes, RequestUnit, TotalCores
from ramp.model.slot import Slot
from ramp.plugins.interface import PluginSettings
from ramp.queue_bound.predictor import PREDICTORS
from tests.slots import held, quoted, refused

pytestmark = pytest.mark.loops

NOW = from_iso("2026-11-21T08:00:00Z")
UNIT = RequestUnit(1, 70, NOW + 4 * HOUR, TotalCores(16), wall_time=HOUR, start_probability=0.5)


@dataclass
class FakeQueue(JobQueue):
    """A queue of 64 cores that does what the test says; `faults` are met one after another, by the name of the call."""

    jobs: dict[str, OwnJob] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    running: list[RunningJob] = field(default_factory=list)
    waiting: list[WaitingJob] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    wanted: list[WantedJob] = field(default_factory=list)
    asked_as: list[str] = field(default_factory=list)
    name: str = "fake"
    source: str = "live"
    limits: Limits = NO_LIMITS
    gpus: tuple[tuple[str, int], ...] = ()

    def _fault(self, call: str) -> str:
        return self.faults.pop(0)[1] if self.faults and self.faults[0][0] == call else ""

    def look(self, now: int) -> SystemSnapshot:
        return SystemSnapshot(
            now, (Node("n1", 64, gpus=self.gpus),), tuple(self.running), tuple(self.waiting), limits=self.limits
        )

    def find(self, name: str, account: str = "", job_id: str = "") -> tuple[OwnJob, ...]:
        self.asked_as.append(account)
        if self._fault("find"):
            raise BatchSystemError("nobody knows")
        return tuple(job for number, job in self.jobs.items() if number == job_id or self.names[number] == name)

    def submit(self, wanted: WantedJob) -> None:
        fault = self._fault("submit")
        if fault == "refuse":
            raise SystemRefused("Invalid partition")
        self.wanted.append(wanted)
        for _ in range(2 if fault == "twice" else 1):
            job_id = str(len(self.names) + 1)
            self.names[job_id], self.jobs[job_id] = wanted.name, OwnJob(job_id, Standing.HELD)
        if fault == "after":
            raise BatchSystemError("it took more than 20 s")

    def let_go(self, job_id: str, account: str = "") -> None:
        self.asked_as.append(account)
        if self._fault("let_go"):
            raise BatchSystemError("nobody knows")
        self.jobs[job_id] = replace(self.jobs[job_id], standing=Standing.WAITING)

    def delete(self, job_id: str, account: str = "") -> None:
        self.asked_as.append(account)
        del self.jobs[job_id]

    def starts(self, job_id: str, at: int) -> None:
        self.jobs[job_id] = OwnJob(job_id, Standing.STARTED, at)


def new_machine(queue: FakeQueue, folder: Path | None = None, **options: Any) -> QueueBoundMachine:
    predictor = PREDICTORS.find("planned").new(options)
    learning = QueueLearning(predictor, None if folder is None else folder / "waits.jsonl")
    settings = PluginSettings("queue1", 64, 8, NOW, state_dir=folder)
    return QueueBoundMachine(queue, settings, 64, learning, snapshot_age_s=0)


def test_a_job_is_held_let_go_when_bought_and_its_start_is_told() -> None:
    queue = FakeQueue()
    machine = new_machine(queue)
    slot = machine.quote(UNIT, NOW)
    assert slot == Slot(NOW + 3 * HOUR, NOW + 4 * HOUR, 16, 0.0, start_probability=1.0)
    reservation = held(machine, "offer-1", UNIT, NOW, MINUTE)
    assert (reservation.reservation_id, reservation.firm, queue.jobs["1"].standing) == ("1", False, Standing.HELD)
    (wanted,) = queue.wanted
    assert (wanted.name, wanted.length, "exec sleep 3600" in wanted.script) == ("ramp_queue1.offer-1", HOUR, True)
    machine.confirm("offer-1", NOW)
    assert queue.jobs["1"].standing is Standing.WAITING
    waits = machine.reservation("offer-1", NOW + MINUTE)
    assert (waits.firm, waits.started_at) == (True, None)
    queue.starts("1", NOW + 90 * SECOND)
    begun = machine.reservation("offer-1", NOW + 2 * MINUTE)
    assert begun.started_at == NOW + 90 * SECOND
    del queue.jobs["1"]  # it ends; what has been seen stays
    assert machine.reservation("offer-1", NOW + 3 * HOUR) == begun


def test_a_queued_job_asks_for_the_gpus_of_its_request_alone() -> None:
    queue = FakeQueue(gpus=(("a100", 2),))
    machine = new_machine(queue)
    held(machine, "offer-1", UNIT, NOW, MINUTE)
    with_gpus = replace(UNIT, cores=Nodes(1, 16), gpus_per_node=2, gpu_model="a100")
    slot = quoted(machine, with_gpus, NOW)
    machine.hold("offer-2", with_gpus, slot, NOW + MINUTE, NOW)
    assert [each.gres for each in queue.wanted] == ["none", "gpu:a100:2"]
    slurm = SlurmQueue(SlurmSystem(lambda *_: Completed((), 0, "", ""), "debug", "market"), None)  # type: ignore[arg-type]
    assert ["--gres=" + each.gres in slurm._submission(each) for each in queue.wanted] == [True, True]
    refusal = refused(new_machine(FakeQueue()), with_gpus, NOW)
    assert (refusal.code, refusal.nearest) == (RefusalCode.GPUS, "0 nodes with gpu:a100:2")


def test_where_the_site_launches_a_job_is_its_buyers_and_runs_what_that_orders(tmp_path: Path) -> None:
    queue, acting = FakeQueue(), {"worker": "/worker", "python": "/python", "folder": "/scratch/jobs"}
    predictor = PREDICTORS.find("planned").new({})
    settings = PluginSettings("queue1", 64, 8, NOW, state_dir=tmp_path, acting=acting)
    machine = QueueBoundMachine(queue, settings, 64, QueueLearning(predictor, None))
    slot = quoted(machine, UNIT, NOW)
    machine.hold_for("alice1", "offer-1", UNIT, slot, NOW + MINUTE, NOW)
    (wanted,) = queue.wanted
    assert (wanted.account, "orders=/scratch/jobs/alice1/queued/offer-1\n" in wanted.script) == ("alice1", True)
    machine.confirm("offer-1", NOW)
    again = QueueBoundMachine(queue, settings, 64, QueueLearning(predictor, None))
    assert again.reservation("offer-1", NOW) is not None
    again.release("offer-1", NOW)
    assert queue.jobs == {}
    assert set(queue.asked_as) == {"alice1"}  # also after a restart


def test_what_is_released_or_runs_out_is_deleted() -> None:
    queue = FakeQueue()
    machine = new_machine(queue)
    held(machine, "offer-1", UNIT, NOW, MINUTE)
    machine.release("offer-1", NOW)
    assert queue.jobs == {}
    held(machine, "offer-2", UNIT, NOW, MINUTE)
    held(machine, "offer-3", UNIT, NOW, MINUTE)
    slot = quoted(machine, UNIT, NOW + 2 * MINUTE)
    machine.hold("offer-4", UNIT, slot, NOW + HOUR, NOW + 2 * MINUTE)  # the others have run out
    assert [queue.names[job_id] for job_id in queue.jobs] == ["ramp_queue1.offer-4"]


def test_a_job_that_cannot_be_deleted_stops_no_other_hold_and_is_tried_again() -> None:
    """Its account may be gone."""
    queue = FakeQueue()
    machine = new_machine(queue)
    held(machine, "offer-1", UNIT, NOW, MINUTE)
    slot = quoted(machine, UNIT, NOW + 2 * MINUTE)
    queue.faults = [("find", "Invalid user")]
    machine.hold("offer-2", UNIT, slot, NOW + HOUR, NOW + 2 * MINUTE)
    assert list(queue.jobs) == ["1", "2"]
    machine.forget((), NOW + 2 * MINUTE)
    assert list(queue.jobs) == ["2"]


def test_a_job_that_its_owner_renames_is_paid_for_and_deleted_all_the_same() -> None:
    """It would run for nothing: without its name it would count as gone, and be left in the queue."""
    queue = FakeQueue()
    machine = new_machine(queue)
    held(machine, "offer-1", UNIT, NOW, MINUTE)
    machine.confirm("offer-1", NOW)
    queue.names["1"] = "mine"
    queue.starts("1", NOW + 90 * SECOND)
    begun = machine.reservation("offer-1", NOW + 2 * MINUTE)
    assert begun.started_at == NOW + 90 * SECOND
    machine.release("offer-1", NOW + 3 * MINUTE)
    assert queue.jobs == {}


@pytest.mark.parametrize("fault", ["after", "twice"])
def test_what_was_submitted_is_found_by_its_name_and_is_one(fault: str, tmp_path: Path) -> None:
    queue = FakeQueue(faults=[("submit", fault)])
    machine = new_machine(queue, tmp_path)
    slot = quoted(machine, UNIT, NOW)
    if fault == "after":
        with pytest.raises(PluginError) as failed:
            machine.hold("offer-1", UNIT, slot, NOW + MINUTE, NOW)
        assert failed.value.transient
    else:
        machine.hold("offer-1", UNIT, slot, NOW + MINUTE, NOW)
    again = new_machine(queue, tmp_path)
    found = again.reservation("offer-1", NOW)
    assert (found.reservation_id, list(queue.jobs)) == ("1", ["1"])


def test_what_the_system_surely_will_not_have_is_refused() -> None:
    machine = new_machine(FakeQueue(faults=[("submit", "refuse")]))
    slot = quoted(machine, UNIT, NOW)
    refused = machine.hold("offer-1", UNIT, slot, NOW + MINUTE, NOW)
    assert (refused.code, machine.reservation("offer-1", NOW)) == (RefusalCode.SLOT_TAKEN, None)


def test_a_job_that_was_bought_and_not_let_go_is_let_go_at_the_next_look(tmp_path: Path) -> None:
    queue = FakeQueue()
    machine = new_machine(queue, tmp_path)
    held(machine, "offer-1", UNIT, NOW, MINUTE)
    queue.faults.append(("let_go", "before"))
    with pytest.raises(PluginError):
        machine.confirm("offer-1", NOW)
    found = new_machine(queue, tmp_path).reservation("offer-1", NOW)
    assert (found.firm, queue.jobs["1"].standing) == (True, Standing.WAITING)


def test_a_job_that_somebody_deletes_is_gone() -> None:
    queue = FakeQueue()
    machine = new_machine(queue)
    held(machine, "offer-1", UNIT, NOW, MINUTE)
    machine.confirm("offer-1", NOW)
    queue.jobs.clear()
    assert machine.reservation("offer-1", NOW) is None


def test_each_job_teaches_once_and_one_that_was_held_nothing() -> None:
    predictor = PREDICTORS.find("planned").new({"same_rule": False})
    learnt: list[tuple[int | None, int]] = []
    predictor.started = lambda job, wait, *_: learnt.append((job.planned, wait))
    queue, learning = FakeQueue(), QueueLearning(predictor, None)
    runs = RunningJob("1", "u", NOW, NOW + HOUR, (("n1", 64),), submitted=NOW)
    waits = WaitingJob("2", "u", NOW, 32, HOUR)
    at_once, later = (replace(runs, job_id=name, start=NOW + 9 * MINUTE) for name in "42")
    for minutes, queue.running, queue.waiting in (
        (1, [runs], [waits, replace(waits, job_id="3", held=True)]),
        (10, [later, replace(later, job_id="3"), replace(at_once, submitted=NOW + 8 * MINUTE)], []),
        (11, [later, at_once], []),
    ):
        learning.look(queue.look(0), NOW + minutes * MINUTE)
    assert learnt == [(59 * MINUTE, 8 * MINUTE), (0, MINUTE)]


def test_of_a_queue_of_which_too_little_is_known_nothing_is_sold() -> None:
    queue = FakeQueue(running=[RunningJob("7", "eve", NOW - HOUR, NOW + HOUR, (("n1", 60),))])
    refusal = refused(new_machine(queue), UNIT, NOW)
    assert (refusal.code, refusal.nearest) == (RefusalCode.START_PROBABILITY, "")
    assert "of the 0 waits" in refusal.detail


def learnt(machine: QueueBoundMachine, queue: FakeQueue, waits: int, *, in_time: int) -> int:
    """Let jobs that are planned to wait an hour do so, or three hours; when all have started."""
    now = NOW
    for number in range(waits):
        queue.running = [RunningJob(f"r{number}", "eve", now, now + HOUR, (("n1", 64),))]
        queue.waiting = [WaitingJob(f"w{number}", "eve", now, 8, HOUR)]
        machine.picture(now)
        now += HOUR if number < in_time else 3 * HOUR
        queue.running, queue.waiting = [RunningJob(f"w{number}", "eve", now, now + HOUR, (("n1", 8),))], []
        machine.picture(now)
    return now


def test_the_probability_is_the_share_of_like_jobs_that_started_in_time(tmp_path: Path) -> None:
    """Eight of ten jobs that were planned to wait an hour did, two waited three: within two hours .8 start."""
    queue = FakeQueue()
    machine = new_machine(queue, tmp_path, enough=10)
    now = learnt(machine, queue, 10, in_time=8)
    queue.running = [RunningJob("r", "eve", now, now + HOUR, (("n1", 64),))]
    unit = replace(UNIT, deadline=now + 3 * HOUR)
    slot = quoted(machine, unit, now)
    assert (slot.start, slot.start_probability) == (now + 2 * HOUR, pytest.approx(0.8))
    again = new_machine(queue, tmp_path, enough=10)  # the waits are kept
    assert again.quote(unit, now) == slot
    (tmp_path / "waits.jsonl").write_text(
        "no wait\n[1, 2]\n[1, 1, 0, Infinity]\n" + (tmp_path / "waits.jsonl").read_text()
    )
    assert new_machine(queue, tmp_path, enough=10).quote(unit, now) == slot


def test_squeue_by_name_as_slurm_prints_it() -> None:
    """States of squeue(1); a job that is cancelled while it waits has its cancellation as its start, and ran 0:00."""
    shown = (
        "12|PENDING|N/A|0:00|JobHeldUser\n13|PENDING|2026-11-21T09:00:00|0:00|Resources\n"
        "9|RUNNING|2026-11-21T08:00:00|5:00|None\n14|CANCELLED|2026-11-21T08:01:00|0:00|None\n"
        "15|CANCELLED|2026-11-21T08:00:00|1:10|None\n17_[1-2]|PENDING|N/A|0:00|JobHeldUser\n16|CONFIGURING|2026-11-21T08:00:00|0:00|None\n"
    )
    assert parse_jobs(shown) == (
        OwnJob("9", Standing.STARTED, NOW),
        OwnJob("12", Standing.HELD),
        OwnJob("13", Standing.WAITING),
        OwnJob("14", Standing.GONE),
        OwnJob("15", Standing.STARTED, NOW),
        OwnJob("16", Standing.WAITING),
    )
    with pytest.raises(ValueError, match="invalid job line"):
        parse_jobs("slurm_load_jobs error\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"system": "pbs"}, "gridengine, log, simulated, slurm"),
        ({"system": "simulated", "predictor": "oracle"}, "oracle"),
        ({"system": "simulated", "queue": {"lode": 1}}, "lode"),
        ({"system": "simulated", "script": "/no/such"}, "cannot be read"),
        ({}, "system"),
    ],
)
def test_options_that_are_wrong_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        open_plugin(PluginSettings("queue1", 64, 8, NOW, options))


def test_a_partition_that_is_down_sells_no_starts_and_its_limits_hold() -> None:
    queue = FakeQueue(limits=Limits(closed="partition debug is DOWN"))
    machine = new_machine(queue)
    with pytest.raises(PluginError, match="partition debug is DOWN"):
        machine.quote(UNIT, NOW)
    queue.limits = Limits(longest=30 * MINUTE)
    refusal = refused(machine, UNIT, NOW)
    assert (refusal.code, refusal.nearest) == (RefusalCode.MACHINE_TOO_SMALL, "1800 s")
