"""Jobs on a sold slot between orders, answers of the launcher, steps of the clock and restarts of the resource.

The slot begins after an hour and lasts one; `test_jobs_of_resources.py` tells whose orders are taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.records import JobCancelAsked
from ramp.protocol.resource.jobs.job_desk import READS_MAX, WAITING_MAX
from ramp.protocol.resource.jobs.launching import LaunchTerms

TERMS = LaunchTerms("local", {"alice": "alice1"}, grace=10 * SECOND, delivery_limit=5 * MINUTE)
ORDER = c.JobOrder("job-1", "a1", 16, 1, HOUR, ("./run",))
QUERY = c.JobQuery("job-1", "a1")
CANCELLATION = c.JobCancellation("job-1", "a1")


class Seller:
    """A resource that has sold its slot to alice, with everything that it has on record."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self.one = make(TERMS)
        self.journal: list[Any] = []
        offer, effects = self.one.hold()
        self.noted(effects)
        self.noted(self.one.commit(offer))
        self.noted(self.one.hear("bank", c.PaymentMade("a1", "t1", offer.cost)))

    def noted(self, effects: list[fx.Effect]) -> list[fx.Effect]:
        self.journal += [each.record for each in effects if isinstance(each, fx.Persist)]
        return effects

    def hears(self, content: Any, now: int = 0) -> list[fx.Effect]:
        return self.noted(self.one.hear("alice", content, now, performative=Performative.REQUEST))

    def seen(self, answer: Any, now: int) -> list[fx.Effect]:
        return self.noted(list(self.one.party.handle(ev.JobSeen("job-1", answer), now)))

    def tick(self, now: int) -> list[fx.Effect]:
        return self.noted(list(self.one.party.tick(now)))

    def restart(self, now: int) -> list[fx.Effect]:
        self.one = self._make(TERMS)
        return self.noted(list(self.one.party.recover(self.journal, now)))

    @property
    def status(self) -> c.JobStatus:
        (job,) = self.one.party.jobs.jobs_of("offer-res-1")
        found: c.JobStatus = job.status()
        return found

    @property
    def deadline(self) -> int | None:
        found: int | None = next(self.one.party.jobs.jobs_of("offer-res-1")).deadline
        return found


@pytest.fixture
def seller(launching_resource: Any) -> Seller:
    return Seller(launching_resource)


def asked(effects: list[fx.Effect]) -> list[type]:
    return [type(each) for each in effects if isinstance(each, fx.AskLauncher)]


def answers(effects: list[fx.Effect]) -> list[Any]:
    return [each.message.content for each in effects if isinstance(each, fx.Send)]


def recorded(effects: list[fx.Effect]) -> list[type]:
    return [type(each.record) for each in effects if isinstance(each, fx.Persist)]


def test_a_job_finds_its_slot_in_its_environment(seller: Seller) -> None:
    """As docs/launching.md says."""
    (submit,) = [each for each in seller.hears(ORDER) if isinstance(each, fx.SubmitJob)]
    assert dict(submit.job.environment) == {
        "RAMP_JOB": "job-1",
        "RAMP_AGREEMENT": "a1",
        "RAMP_RESOURCE": "res",
        "RAMP_RESERVATION": "R-offer-res-1",
        "RAMP_CORES": "16",
        "RAMP_START": "1970-01-01T01:00:00Z",
        "RAMP_END": "1970-01-01T02:00:00Z",
        "RAMP_UNIT": "1",
        "RAMP_UNITS": "1",
        "RAMP_PEERS": "1=res/R-offer-res-1",
    }
    assert submit.job.queue_key == ""


def test_a_job_ends_with_its_slot_as_that_is_now(seller: Seller) -> None:
    (participant,) = seller.one.party.participants.values()
    participant.size = 8, HOUR + 30 * MINUTE
    (submit,) = [each for each in seller.hears(replace(ORDER, cores=8)) if isinstance(each, fx.SubmitJob)]
    assert submit.job.end_at == HOUR + 30 * MINUTE


@pytest.mark.parametrize(
    ("begin_at", "now", "due"),
    [(0, 0, HOUR), (HOUR + MINUTE, 0, HOUR + MINUTE), (0, HOUR + 2 * MINUTE, HOUR + 2 * MINUTE)],
    ids=["with its slot", "later than its slot", "ordered late"],
)
def test_a_job_is_due_when_slot_order_and_buyer_allow(seller: Seller, begin_at: int, now: int, due: int) -> None:
    seller.hears(replace(ORDER, begin_at=begin_at), now)
    assert seller.status.due_at == due


def test_an_ended_job_is_told_alike_after_a_restart(seller: Seller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.JobSight(JobState.DONE, "4711", 16, HOUR + SECOND, HOUR + MINUTE, 3, "exit code 3"), HOUR + MINUTE)
    before = seller.status
    assert before == c.JobStatus(
        "job-1", "a1", JobState.DONE, "local", "alice1", HOUR, Delivery.ON_TIME, "4711", 16, HOUR + SECOND,
        HOUR + MINUTE, 3, "exit code 3",
    )  # fmt: skip
    assert asked(seller.restart(HOUR + 2 * MINUTE)) == []
    assert seller.status == before
    assert seller.deadline is None


def test_looks_at_a_job_are_as_far_away_as_before_when_the_clock_is_set(seller: Seller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.MachineInDoubt("it does not answer"), 1)
    due = seller.deadline
    assert due is not None
    seller.one.party.clock_set(-HOUR // 2)
    assert seller.deadline == due - HOUR // 2
    assert asked(seller.tick(due - HOUR // 2)) == [fx.LookUpJob]


def test_a_buyer_who_cancels_does_not_wait_for_the_answer_to_an_earlier_question(seller: Seller) -> None:
    seller.hears(ORDER)  # the launcher has not answered
    effects = seller.hears(CANCELLATION, 1)
    assert (recorded(effects), asked(effects)) == ([JobCancelAsked], [fx.CancelJob])
    effects = seller.hears(CANCELLATION, 2)  # once more: on record already, but asked again
    assert (recorded(effects), asked(effects)) == ([], [fx.CancelJob])


def test_a_cancelled_job_that_the_launcher_never_had_was_never_started(seller: Seller) -> None:
    seller.hears(ORDER)
    seller.hears(CANCELLATION, 1)
    seller.seen(None, 2)
    assert (seller.status.state, seller.status.detail) == (JobState.CANCELLED, "the job never started")


def test_a_job_that_is_lost_after_its_slot_is_not_launched_again(seller: Seller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.JobSight(JobState.QUEUED, "1"), 1)
    assert asked(seller.seen(None, 2 * HOUR)) == []
    assert (seller.status.state, seller.status.detail) == (JobState.FAILED, "the site no longer knows the job")


def test_a_launcher_that_does_not_know_what_it_was_given_is_in_doubt_till_the_slots_end(seller: Seller) -> None:
    """Only what is known not to run shows at its limit (5 min) that the slot was not delivered."""
    seller.hears(ORDER)
    seller.seen(ev.JobSight(JobState.QUEUED, "1"), 1)
    assert asked(seller.seen(None, HOUR + 6 * MINUTE)) == [fx.SubmitJob]
    seller.seen(None, HOUR + 6 * MINUTE)
    assert (seller.status.delivery, seller.status.state) == (Delivery.PENDING, JobState.QUEUED)
    assert seller.status.detail == "the job was submitted, but the site does not know it"


def test_looks_at_a_job_grow_rarer(seller: Seller) -> None:
    """After 2 s, then half as long again each time, up to a minute."""
    seller.hears(ORDER, HOUR)
    seller.seen(ev.JobSight(JobState.RUNNING, "1", 16, HOUR), HOUR)
    pauses = []
    now = HOUR
    for _ in range(12):
        assert seller.deadline is not None
        pauses.append(seller.deadline - now)
        now = seller.deadline
        assert asked(seller.tick(now)) == [fx.LookUpJob]
        seller.seen(ev.JobSight(JobState.RUNNING, "1", 16, HOUR), now)
    assert pauses[:4] == [2 * SECOND, 3 * SECOND, 4 * SECOND + SECOND // 2, 6 * SECOND + 3 * SECOND // 4]
    assert pauses[-2:] == [MINUTE, MINUTE]


def test_a_job_that_waits_for_its_time_is_looked_at_then(seller: Seller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.JobSight(JobState.QUEUED, "1"), 1)
    assert seller.deadline == HOUR + 2 * SECOND
    assert asked(seller.tick(HOUR + 2 * SECOND - 1)) == []


def test_a_job_that_is_late_is_looked_at_at_its_limit(seller: Seller) -> None:
    now = HOUR
    seller.hears(ORDER, now)
    for _ in range(20):
        seller.seen(ev.JobSight(JobState.QUEUED, "1"), now)
        assert seller.deadline is not None
        now = seller.deadline
        if now >= HOUR + 5 * MINUTE:
            break
        seller.tick(now)
    assert now == HOUR + 5 * MINUTE


def test_what_runs_does_not_wait_again(seller: Seller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.JobSight(JobState.RUNNING, "1", 16, HOUR), HOUR)
    assert seller.seen(ev.JobSight(JobState.QUEUED, "1"), HOUR + 1) == []
    assert (seller.status.state, seller.status.started_at) == (JobState.RUNNING, HOUR)


def test_questions_that_wait_for_the_launcher_are_bounded(seller: Seller) -> None:
    seller.hears(ORDER)
    for _ in range(WAITING_MAX + 5):
        seller.hears(QUERY, 1)
    told = answers(seller.seen(ev.JobSight(JobState.QUEUED, "1"), 2))
    assert len(told) == WAITING_MAX
    assert answers(seller.seen(ev.JobSight(JobState.QUEUED, "1"), 3)) == []  # each is answered once


def test_pieces_of_output_that_are_read_are_bounded_and_the_oldest_go_first(seller: Seller) -> None:
    seller.hears(ORDER)
    reads = []
    for offset in range(READS_MAX + 1):
        (read,) = seller.hears(c.JobOutputQuery("job-1", "a1", "stdout", offset), 1)
        assert isinstance(read, fx.ReadJobFile)
        reads.append(read.call_id)
    assert len(set(reads)) == READS_MAX + 1

    def told(call_id: str) -> list[Any]:
        return answers(list(seller.one.party.handle(ev.JobFileRead(call_id, "bG8=", 5, True), 2)))

    assert told(reads[0]) == told("read-of-another-life") == []
    assert [[each.offset for each in told(call_id)] for call_id in reads[1:]] == [[n] for n in range(1, READS_MAX + 1)]
    assert told(reads[1]) == []


def test_a_job_nobody_knows_of_after_its_slot_is_told_with_the_reason(seller: Seller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.MachineInDoubt("the batch system is down"), 1)
    seller.tick(2 * HOUR + 2 * MINUTE)
    assert seller.status.state is JobState.FAILED
    assert seller.status.detail == ("the slot is over, and the result of the job is unknown: the batch system is down")


def test_every_job_of_a_slot_is_taken_up_again(seller: Seller) -> None:
    seller.hears(replace(ORDER, cores=8))
    seller.hears(replace(ORDER, job_id="job-2", cores=8))
    assert asked(seller.restart(MINUTE)) == [fx.LookUpJob, fx.LookUpJob]


def test_a_slot_that_shall_shrink_waits_for_jobs_that_need_it(seller: Seller) -> None:
    jobs = seller.one.party.jobs
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


def test_jobs_that_together_need_what_was_added_wait_until_it_is_paid(seller: Seller) -> None:
    """The slot has had sixteen cores until now, and has thirty-two; the added ones count from two minutes on."""
    now, paid = HOUR + MINUTE, HOUR + 2 * MINUTE
    (participant,) = seller.one.party.participants.values()
    participant.size, participant.not_before = (32, 2 * HOUR), ((paid, 16),)
    due = {}
    for name, cores in (("first", 10), ("beside", 6), ("more", 1), ("large", 17)):
        (submit,) = [
            each
            for each in seller.hears(replace(ORDER, job_id=name, cores=cores), now)
            if isinstance(each, fx.SubmitJob)
        ]
        due[name] = submit.job.begin_at
    assert due == {"first": now, "beside": now, "more": paid, "large": paid}
    for name, cores in (("first", 10), ("beside", 6), ("large", 17)):
        seller.one.party.handle(ev.JobSeen(name, ev.JobSight(JobState.DONE, "1", cores, now, now, 0)), now)
    (submit,) = [each for each in seller.hears(replace(ORDER, cores=15), now) if isinstance(each, fx.SubmitJob)]
    assert submit.job.begin_at == now  # what has ended needs none
