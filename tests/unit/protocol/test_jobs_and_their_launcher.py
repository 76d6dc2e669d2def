"""Jobs on a sold slot between orders, answers of the launcher, steps of the clock and restarts of the resource.

`test_jobs_of_resources.py` tells whose orders are taken.
"""

import subprocess
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from ramp.cli.views.launch_snippets import snippet
from ramp.model import contents as c
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import Nodes, RequestUnit, TorusTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.records import ChangeReceived, JobCancelAsked
from ramp.protocol.resource.jobs.job import END_MARGIN
from ramp.protocol.resource.jobs.job_desk import READS_MAX, WAITING_MAX, place_variables
from simulation.machine_files import load_machine
from simulation.machines.interface import Connection, JobRequest, has_places
from simulation.resource.placement_text import describe_placement
from tests.unit.protocol.conftest import UNIT, contents
from tests.unit.protocol.job_seller import ORDER, TERMS, JobSeller, asked, job_seller, recorded, submitted

QUERY = c.JobQuery("job-1", "a1")
CANCELLATION = c.JobCancellation("job-1", "a1")


@pytest.fixture
def seller() -> JobSeller:
    return job_seller()


@pytest.fixture
def in_batch_system() -> JobSeller:
    """One whose site says what it sees of the reservation, with a job ordered."""
    found = job_seller(replace(TERMS, executor="slurm"))
    found.hears(ORDER)
    return found


@pytest.mark.parametrize(
    ("unit", "gpus", "gres"),
    [
        (UNIT, "0", "none"),  # what was not asked for is not used
        (replace(UNIT, cores=Nodes(1, 16), gpus_per_node=2, gpu_model="a100"), "2", "gpu:a100:2"),
    ],
)
def test_a_job_finds_its_slot_in_its_environment(unit: RequestUnit, gpus: str, gres: str) -> None:
    """As docs/launching.md says."""
    job = submitted(job_seller(unit=unit).hears(replace(ORDER, begin_at=0, archive="a" * 64)))
    assert dict(job.environment) == {
        "RAMP_JOB": "job-1",
        "RAMP_AGREEMENT": "a1",
        "RAMP_RESOURCE": "res",
        "RAMP_RESERVATION": "R-offer-res-1",
        "RAMP_CORES": "16",
        "RAMP_GPUS": gpus,
        "RAMP_START": "1970-01-01T01:00:00Z",
        "RAMP_END": "1970-01-01T02:00:00Z",
        "RAMP_UNIT": "1",
        "RAMP_UNITS": "1",
        "RAMP_PEERS": "1=res/R-offer-res-1",
    }
    assert (job.gres, job.archive, job.queue_key) == (gres, "a" * 64, "")


@pytest.mark.parametrize(
    ("terms", "node_use", "started"),
    [
        (None, "coprocessor", "-mode CO -np 8 "),
        (TorusTerms(), "coprocessor", "-mode CO -np 8 "),
        (TorusTerms(node_use="virtual"), "virtual", "-mode VN -np 16 "),
    ],
)
@pytest.mark.parametrize(
    ("machine", "request_", "expected", "block"),
    [
        ("bgl", JobRequest(1, 4, (1, 2, 2)), ("bgl[000x011]", "1x2x2", "mesh"), ""),
        ("bgl", JobRequest(1, 2, (2, 1, 1), connection=Connection.TORUS), ("bgl[000x100]", "2x1x1", "torus"), ""),
        ("bgl", JobRequest(1, 1, (1, 1, 1)), ("bgl000", "1x1x1", "mesh"), ""),
        ("angara-4x4x4", JobRequest(1, 8), ("ang[000x013]", "1x2x4", "mesh,torus"), ""),
        ("bgl-static", JobRequest(1, 9), ("bgl[600x713]", "2x2x4", "mesh"), "RMP002"),
        ("bgl-static", JobRequest(1, 1, connection=Connection.TORUS), ("bgl732", "1x1x1", "mesh"), "RMP006"),
    ],
)
def test_a_job_on_a_torus_finds_its_block(
    machine: str, request_: Any, expected: Any, block: str, terms: TorusTerms | None, node_use: str, started: str
) -> None:
    """The variables of Jette and others 2004 and Slurm 1.0; with them the printed mpirun script runs."""
    torus = load_machine(machine)
    assert has_places(torus)
    placement = torus.place(request_)
    assert placement is not None
    described = describe_placement(torus, placement)
    seller = job_seller(placement=described, unit=replace(UNIT, torus=terms))
    job = submitted(seller.hears(ORDER))
    told = dict(job.environment)
    assert (told["RAMP_NODES"], told["RAMP_GEOMETRY"], told["RAMP_CONNECTION"]) == expected
    assert told["RAMP_NODE_USE"] == node_use
    assert (told["MPIRUN_NOALLOCATE"], told["MPIRUN_NOFREE"]) == ("1", "1")
    offer = seller.job._offer
    agreement = seller.agreement(offer)
    changed = place_variables(offer, TorusTerms(node_use="virtual"), "r", 8)  # the place after a change is not known
    assert (changed["RAMP_NODE_USE"], changed["BGL_PARTITION_ID"], "RAMP_NODES" in changed) == ("virtual", "r", False)
    script = "mpirun() { echo $*; }\n" + snippet("mpirun", agreement, str)
    ran = subprocess.run(["sh", "-c", script], env=told, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(f"-partition {block or 'R-offer-res-1'} {started}")
    assert told["MPIRUN_PARTITION"] == told["BGL_PARTITION_ID"] == (block or "R-offer-res-1")


def test_a_bug_in_a_job_stays_in_its_slot(seller: JobSeller, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = ZeroDivisionError("a bug")
    seller.hears(ORDER)
    monkeypatch.setattr(seller.job, "on_seen", Mock(side_effect=bug))
    assert seller.seen(None, 1) == [fx.TakeUpAgain("offer-res-1", bug)]


def test_a_buyer_who_cancels_does_not_wait_for_the_answer_to_an_earlier_question(seller: JobSeller) -> None:
    seller.hears(ORDER)  # the launcher has not answered
    effects = seller.hears(CANCELLATION, 1)
    assert (recorded(effects), asked(effects)) == ([JobCancelAsked], [fx.CancelJob])
    effects = seller.hears(CANCELLATION, 2)  # once more: on record already, but asked again
    assert (recorded(effects), asked(effects)) == ([], [fx.CancelJob])


def test_questions_that_wait_for_the_launcher_are_bounded(seller: JobSeller) -> None:
    seller.hears(ORDER)
    for _ in range(WAITING_MAX + 5):
        seller.hears(QUERY, 1)
    told = contents(seller.seen(ev.JobSight(JobState.QUEUED, "1"), 2))
    assert len(told) == WAITING_MAX
    assert contents(seller.seen(ev.JobSight(JobState.QUEUED, "1"), 3)) == []  # each is answered once


def test_pieces_of_output_that_are_read_are_bounded_and_the_oldest_go_first(seller: JobSeller) -> None:
    seller.hears(ORDER)
    reads = []
    for offset in range(READS_MAX + 1):
        (read,) = seller.hears(c.JobOutputQuery("job-1", "a1", "stdout", offset), 1)
        assert isinstance(read, fx.ReadJobFile)
        reads.append(read.call_id)
    assert len(set(reads)) == READS_MAX + 1

    def told(call_id: str) -> list[Any]:
        return contents(list(seller.party.handle(ev.JobFileRead(call_id, "bG8=", 5, True), 2)))

    assert told(reads[0]) == told("read-of-another-life") == []
    assert [[each.offset for each in told(call_id)] for call_id in reads[1:]] == [[n] for n in range(1, READS_MAX + 1)]
    assert told(reads[1]) == []


def test_a_slot_that_shall_shrink_waits_for_jobs_that_need_it(seller: JobSeller) -> None:
    jobs = seller.party.jobs
    seller.hears(replace(ORDER, cores=8))
    assert jobs.in_the_way("offer-res-1", 8, 2 * HOUR) == ""
    assert jobs.in_the_way("other", 1, HOUR) == ""
    assert jobs.in_the_way("offer-res-1", 7, 2 * HOUR) == "job job-1 uses 8 cores; wait until it ends"
    until = "job job-1 may run until 1970-01-01T02:00:00Z; wait until it ends"
    assert jobs.in_the_way("offer-res-1", 8, 2 * HOUR - 1) == until
    seller.seen(ev.JobSight(JobState.DONE, "1", 8, HOUR, HOUR + 1, 0), HOUR + 1)
    assert jobs.in_the_way("offer-res-1", 1, HOUR) == ""
    seller.hears(replace(ORDER, job_id="job-2", cores=4), HOUR + 2)
    assert "job job-2 uses 4 cores" in jobs.in_the_way("offer-res-1", 3, 2 * HOUR)


def test_jobs_that_together_need_what_was_added_wait_until_it_is_paid(seller: JobSeller) -> None:
    """The slot has had sixteen cores until now, and has thirty-two; the added ones count from two minutes on."""
    now, paid = HOUR + MINUTE, HOUR + 2 * MINUTE
    (participant,) = seller.party.participants.values()
    participant.size, participant.not_before = (32, 3 * HOUR), ((paid, 16),)
    due = {}
    for name, cores in (("first", 10), ("beside", 6), ("more", 1), ("large", 17)):
        due[name] = submitted(seller.hears(replace(ORDER, job_id=name, cores=cores), now)).begin_at
    assert due == {"first": now, "beside": now, "more": paid, "large": paid}
    for name, cores in (("first", 10), ("beside", 6), ("large", 17)):
        seller.party.handle(ev.JobSeen(name, ev.JobSight(JobState.DONE, "1", cores, now, now, 0)), now)
    job = submitted(seller.hears(replace(ORDER, cores=15), now))
    assert (job.begin_at, job.end_at) == (now, 3 * HOUR)  # what has ended needs none


# -- in a batch system: what the site sees of the reservation decides, and never the fate of a job --------------------

IN_ORDER = ev.SlotsTended(seen=("offer-res-1",))

FATES = [
    ev.JobSight(JobState.FAILED, "1", 0, None, None, None, "cancelled by its owner"),
    ev.JobSight(JobState.RUNNING, "1", 1, HOUR),
    ev.JobSight(JobState.QUEUED, "1"),
    ev.MachineInDoubt("every look takes 20 s"),
    None,
]


@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_a_job_its_slot_was_delivered_if_the_site_saw_it(
    in_batch_system: JobSeller, fate: Any
) -> None:
    effects = [*in_batch_system.seen(fate, HOUR + 1), *in_batch_system.told(IN_ORDER, HOUR + 15 * SECOND)]
    for now in (HOUR + 6 * MINUTE, 2 * HOUR, 2 * HOUR + 3 * MINUTE):
        effects += [*in_batch_system.seen(fate, now), *in_batch_system.tick(now)]
    assert ChangeReceived not in recorded(effects)
    assert in_batch_system.job.status().delivery is Delivery.ON_TIME
    assert in_batch_system.job.status().state.is_final or isinstance(fate, ev.JobSight)
    in_batch_system.restart(3 * HOUR)
    assert in_batch_system.job.status().delivery is Delivery.ON_TIME or not in_batch_system.job.status().state.is_final


def test_a_slot_that_is_lost_is_told_with_another_that_is_in_order(in_batch_system: JobSeller) -> None:
    in_batch_system.seen(FATES[0], HOUR + 1)
    assert in_batch_system.job.deadline == 2 * HOUR + END_MARGIN
    lost = in_batch_system.sell("r2", "a2")
    in_order = replace(IN_ORDER, lost=((lost.offer_id, "its nodes are gone"),))
    assert ChangeReceived in recorded(in_batch_system.told(in_order, HOUR + 15 * SECOND))


@pytest.mark.parametrize("fate", FATES)
def test_without_any_look_at_the_slot_the_delivery_is_unknown_and_the_money_stays(
    in_batch_system: JobSeller, fate: Any
) -> None:
    effects = in_batch_system.told(IN_ORDER, HOUR - MINUTE)  # before the slot
    effects += in_batch_system.told(ev.SlotsTended(), HOUR + MINUTE)  # the machine could not be asked
    for now in (HOUR + 6 * MINUTE, 2 * HOUR, 2 * HOUR + 3 * MINUTE):
        effects += [*in_batch_system.seen(fate, now), *in_batch_system.tick(now)]
    effects += in_batch_system.told(IN_ORDER, 2 * HOUR + 4 * MINUTE)  # after the slot
    effects += in_batch_system.tick(2 * HOUR + 5 * MINUTE)
    assert ChangeReceived not in recorded(effects)
    open_ = isinstance(fate, ev.JobSight) and not fate.state.is_final
    assert in_batch_system.job.status().delivery is (Delivery.PENDING if open_ else Delivery.UNKNOWN)


def test_looks_at_a_job_are_as_far_away_as_before_when_the_clock_is_set(seller: JobSeller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.MachineInDoubt("it does not answer"), 1)
    due = seller.job.deadline
    assert due is not None
    seller.party.clock_set(-HOUR // 2)
    assert seller.job.deadline == due - HOUR // 2
    assert asked(seller.tick(due - HOUR // 2)) == [fx.LookUpJob]
    seller.tick(2 * HOUR + END_MARGIN)
    assert "the slot is over, and the result of the job is unknown" in seller.job.status().detail


def test_what_runs_does_not_wait_again(seller: JobSeller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.JobSight(JobState.RUNNING, "1", 16, HOUR), HOUR)
    assert seller.seen(ev.JobSight(JobState.QUEUED, "1"), HOUR + 1) == []
    assert (seller.job.status().state, seller.job.status().started_at) == (JobState.RUNNING, HOUR)
