"""Jobs on a sold slot: whose orders are taken, what is launched once, and what shows that a slot was not delivered."""

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.agreement import Signed
from ramp.model.contents.jobs import ARCHIVE_BYTES_MAX, OUTPUT_CHUNK_BYTES, Delivery, JobState
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.records import ChangeReceived, JobEnded, JobTaken, SlotReleased
from ramp.protocol.resource.jobs.launching import Application
from tests.unit.protocol.conftest import UNIT, contents, records
from tests.unit.protocol.job_seller import ORDER, TERMS, JobSeller, asked, job_seller, submitted


@pytest.fixture
def seller() -> JobSeller:
    return job_seller()


def refused(effects: list[fx.Effect]) -> c.JobRefused:
    (answer,) = contents(effects)
    assert isinstance(answer, c.JobRefused)
    return answer


# -- whose orders are taken ------------------------------------------------------------------------------------------


def test_the_same_order_again_launches_nothing_again(seller: JobSeller) -> None:
    seller.hears(ORDER)
    again = seller.hears(ORDER)
    assert asked(again) == []
    assert [type(each) for each in contents(again)] == [c.JobStatus]
    other = seller.hears(replace(ORDER, cores=1))
    assert refused(other).code == "other_job"


CATALOGUE = (
    Application("NAMD", ("namd2", "+p{cores}"), "2.12"),
    Application("NAMD", ("namd3",), "3.0"),
    Application("R", ("R",)),
)


@pytest.mark.parametrize(
    ("requested", "ordered", "program"), [("3.0", "", "namd3"), ("3.0", "2.12", "namd2"), (None, "", "namd2")]
)
def test_a_job_has_the_version_that_was_requested_unless_its_order_names_one(
    requested: str | None, ordered: str, program: str
) -> None:
    unit = replace(UNIT, application="NAMD", application_version=requested)
    one = JobSeller(terms=replace(TERMS, applications=CATALOGUE), unit=unit)
    one.sell()
    order = replace(ORDER, application="NAMD", application_version=ordered)
    assert submitted(one.hears(order)).arguments[0] == program


def test_an_application_is_started_by_the_sellers_words() -> None:
    """Also after a restart with another catalogue: what was taken is on record."""
    one = job_seller(replace(TERMS, applications=CATALOGUE))
    order = replace(ORDER, arguments=("a b", "{cores}"), application="NAMD")
    wrong = refused(one.hears(replace(order, application_version="1")))
    assert (wrong.code, wrong.detail) == (
        "no_application",
        "unknown application: got NAMD 1, expected one of NAMD 2.12, NAMD 3.0",
    )
    assert refused(job_seller().hears(order)).detail == "unknown application: got NAMD, expected one of none"
    effects = one.hears(order)
    (taken,) = [each for each in records(effects) if isinstance(each, JobTaken)]
    assert submitted(effects).arguments == taken.command == ("namd2", "+p16", "a b", "{cores}")
    again = job_seller()
    again.party.jobs.replay(taken, again.first)
    assert again.job.to_run.arguments == taken.command
    newest = one.hears(replace(order, job_id="job-2", application_version="3.0"))
    assert submitted(newest).arguments == ("namd3", "a b", "{cores}")


def test_orders_of_others_and_of_what_is_not_sold_are_refused(seller: JobSeller) -> None:
    assert refused(seller.hears(ORDER, user="mallory")).code == "unknown_agreement"
    assert refused(seller.hears(replace(ORDER, agreement_id="a7"))).code == "unknown_agreement"
    held = JobSeller().go("hold", "commit")
    assert refused(held.hears(ORDER)).code == "not_active"


BEYOND: list[tuple[Callable[[c.JobOrder], c.JobOrder], str]] = [
    (lambda order: replace(order, cores=17), "too_many_cores"),
    (lambda order: replace(order, begin_at=2 * HOUR), "begins_too_late"),
    (lambda order: replace(order, arguments=()), "beyond_limits"),
    (lambda order: replace(order, job_id="../job"), "beyond_limits"),
    (lambda order: replace(order, arguments=("",)), "beyond_limits"),
    (lambda order: replace(order, arguments=("x" * 4001,)), "beyond_limits"),
    (lambda order: replace(order, arguments=("a",) * 201), "beyond_limits"),
    (lambda order: replace(order, arguments=("a\0b",)), "beyond_limits"),
]


@pytest.mark.parametrize(("changed", "code"), BEYOND)
def test_what_is_beyond_the_limits_is_refused(seller: JobSeller, changed: Any, code: str) -> None:
    assert refused(seller.hears(changed(ORDER))).code == code
    assert asked(seller.hears(ORDER)) == [fx.SubmitJob]


def test_a_slot_takes_so_many_jobs(seller: JobSeller) -> None:
    for number in range(100):
        assert asked(seller.hears(replace(ORDER, job_id=f"job-{number}"))) == [fx.SubmitJob]
    assert refused(seller.hears(replace(ORDER, job_id="one-more"))).code == "too_many_jobs"


def test_a_resource_that_does_not_launch_says_so(resource: Any) -> None:
    resource.sell()
    assert refused(resource.hear("alice", ORDER)).code == "launching_off"


# -- no job twice, none lost -----------------------------------------------------------------------------------------


def launched() -> JobSeller:
    """Up to a job that is launched."""
    one = job_seller()
    one.hears(ORDER)
    one.seen(ev.JobSight(JobState.QUEUED, "1"), 1)
    return one


def test_what_the_launcher_has_lost_once_it_ran_is_not_launched_again(seller: JobSeller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.JobSight(JobState.RUNNING, "1", 16, 1), 1)
    effects = seller.seen(None, 2)
    assert asked(effects) == []
    assert (seller.job.status().state, seller.job.status().detail) == (
        JobState.FAILED,
        "the site no longer knows the job",
    )


def test_a_launcher_in_doubt_is_asked_again_and_its_buyer_hears_why(seller: JobSeller) -> None:
    seller.hears(ORDER)
    told = seller.seen(ev.MachineInDoubt("sbatch does not answer"), SECOND)
    (answer,) = contents(told)
    assert (answer.state, answer.detail) == (JobState.TAKEN, "sbatch does not answer")
    due = seller.job.deadline
    assert asked(seller.tick(due)) == [fx.LookUpJob]
    assert asked(seller.seen(None, due)) == [fx.SubmitJob]


# -- what buyers ask -------------------------------------------------------------------------------------------------


def test_a_question_is_answered_with_what_the_launcher_has_just_seen(seller: JobSeller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.JobSight(JobState.QUEUED, "9"), 1)
    assert contents(seller.hears(c.JobQuery("job-1", "a1"), 2)) == []
    sight = ev.JobSight(JobState.DONE, "", 16, HOUR + SECOND, HOUR + MINUTE, 0)
    effects = seller.seen(sight, HOUR + MINUTE)
    (answer,) = contents(effects)
    assert answer == c.JobStatus(
        "job-1", "a1", JobState.DONE, "local", "alice1", HOUR, Delivery.ON_TIME, "9", 16, HOUR + SECOND,
        HOUR + MINUTE, 0,
    )  # fmt: skip
    assert [type(each) for each in records(effects)] == [JobEnded]
    for now in (HOUR + 2 * MINUTE, HOUR + 3 * MINUTE):
        assert contents(seller.hears(c.JobQuery("job-1", "a1"), now)) == [answer]
        seller.restart(now)


def test_a_job_belongs_to_one_slot() -> None:
    one = job_seller()
    one.sell("r2", "a2")
    one.hears(ORDER)
    assert refused(one.hears(replace(ORDER, agreement_id="a2"))).code == "other_job"


def test_a_buyer_whose_account_was_taken_away_launches_nothing_more() -> None:
    one = launched()
    one.restart(MINUTE, replace(TERMS, accounts={}))
    refusal = refused(one.hears(replace(ORDER, job_id="job-2"), MINUTE))
    assert (refusal.code, "alice" in refusal.detail) == ("no_account", True)


def test_a_cancelled_job_ends_also_after_a_restart() -> None:
    one, cancellation = launched(), c.JobCancellation("job-1", "a1")
    assert asked(one.hears(cancellation, 2)) == [fx.CancelJob]
    assert asked(one.restart(MINUTE)) == [fx.CancelJob]
    one.seen(None, MINUTE)
    assert (one.job.status().state, one.job.status().detail) == (JobState.CANCELLED, "the job never started")
    assert asked(one.hears(cancellation, 2 * MINUTE)) == []


def test_all_jobs_of_a_slot_are_looked_up_after_a_restart_and_cancelled_when_it_is_lost(seller: JobSeller) -> None:
    for job_id in ("job-1", "job-2"):
        seller.hears(replace(ORDER, job_id=job_id))
    assert asked(seller.restart(MINUTE)) == [fx.LookUpJob] * 2
    assert asked(seller.told(ev.SlotsTended((("offer-res-1", "it burns"),)), HOUR)) == [fx.CancelJob] * 2


def test_output_is_passed_on_piece_by_piece(seller: JobSeller) -> None:
    seller.hears(ORDER)
    (read,) = seller.hears(c.JobOutputQuery("job-1", "a1", "stdout", 3), 1)
    assert isinstance(read, fx.ReadJobFile)
    assert (read.name, read.offset) == ("stdout", 3)
    told = seller.party.handle(ev.JobFileRead(read.call_id, "bG8=", 5, True), 2)
    assert contents(told) == [c.JobOutput("job-1", "a1", "stdout", 3, 5, True, "bG8=")]
    (read,) = seller.hears(c.JobOutputQuery("job-1", "a1", "core", 0), 3)
    told = seller.party.handle(ev.JobFileRead(read.call_id, None, code="no_file", detail="no file"), 4)
    assert refused(told).code == refused(seller.hears(c.JobOutputQuery("job-1", "a1", "../x", 0), 4)).code == "no_file"


@pytest.mark.parametrize("name", [".", "out/a b", "ünï", ".hidden", "./stdout", "a..b"])
def test_any_file_inside_is_asked_for(seller: JobSeller, name: str) -> None:
    seller.hears(ORDER)
    (read,) = seller.hears(c.JobOutputQuery("job-1", "a1", name, 0), 1)
    assert read.name == name


# -- delivery --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("due", "lost"), [(HOUR + HOUR // 2, True), (HOUR + HOUR // 2 + 1, False)])
def test_in_a_short_slot_a_job_of_its_first_half_shows_that_nothing_was_delivered(due: int, lost: bool) -> None:
    one = job_seller(replace(TERMS, delivery_limit=2 * HOUR))
    one.hears(replace(ORDER, begin_at=due))
    told = one.seen(ev.JobSight(JobState.FAILED, detail="its latest start had passed"), 2 * HOUR)
    assert any(isinstance(each, Signed) for each in contents(told)) is lost


@pytest.mark.parametrize(("late", "delivery"), [(10 * SECOND, Delivery.ON_TIME), (10 * SECOND + 1, Delivery.LATE)])
def test_the_start_is_measured_against_the_slot(seller: JobSeller, late: int, delivery: Delivery) -> None:
    seller.hears(ORDER)
    seller.seen(ev.JobSight(JobState.RUNNING, "", 16, HOUR + late), HOUR + MINUTE)
    assert seller.job.status().delivery is delivery


NEVER_STARTED = ev.JobSight(JobState.FAILED, detail="the account is locked")
"""Written by the keeper of a job that it could not start in time."""


def test_a_slot_that_is_not_delivered_is_paid_back_on_the_resources_own_word(seller: JobSeller) -> None:
    limit = HOUR + 5 * MINUTE
    assert submitted(seller.hears(ORDER)).start_by == limit
    seller.seen(ev.JobSight(JobState.QUEUED), 1)
    assert contents(seller.seen(ev.JobSight(JobState.QUEUED), limit)) == [], "its keeper decides"
    effects = seller.seen(NEVER_STARTED, limit)
    assert [type(each) for each in records(effects)] == [JobEnded, ChangeReceived]
    assert seller.job.status().detail == "not delivered: the account is locked"
    said = [(each.message.receiver, each.message.content) for each in effects if isinstance(each, fx.Send)]
    assert [receiver for receiver, _ in said] == ["alice", "bank"]
    assert all(content.body.code is RefusalCode.NOT_DELIVERED for _, content in said)
    assert seller.first.state == "ending"
    repeated = seller.party.tick(limit + MINUTE)
    assert [type(each) for each in contents(repeated) if not isinstance(each, c.Registration)] == [Signed]
    effects = seller.hear("bank", c.ChangePosted("a1", 0, "t2", -5), limit + MINUTE)
    assert [type(each) for each in records(effects)] == [SlotReleased]
    assert contents(seller.hear("bank", c.ChangePosted("a1", 0, "t2", -5), limit + MINUTE)) == []


def test_a_job_that_the_launcher_is_silent_about_is_undelivered_at_the_slots_end_only(seller: JobSeller) -> None:
    seller.hears(ORDER)
    assert contents(seller.seen(ev.MachineInDoubt("down"), 2 * HOUR - 1))[0].delivery is Delivery.PENDING
    effects = seller.seen(ev.MachineInDoubt("down"), 2 * HOUR)
    assert ChangeReceived in [type(each) for each in records(effects)]
    assert (seller.job.status().ended_at, seller.job.status().detail) == (2 * HOUR, "not delivered: down")


def test_a_job_that_its_launcher_has_cancelled_shows_nothing_about_its_slot(seller: JobSeller) -> None:
    seller.hears(ORDER)
    assert [type(each) for each in records(seller.seen(ev.JobSight(JobState.CANCELLED), HOUR))] == [JobEnded]


def test_a_slot_on_which_a_job_has_run_was_delivered(seller: JobSeller) -> None:
    seller.hears(ORDER)
    seller.seen(ev.JobSight(JobState.DONE, "", 16, HOUR, HOUR + 1, 0), HOUR + 1)
    seller.hears(replace(ORDER, job_id="job-2"), HOUR + MINUTE)
    effects = seller.seen(NEVER_STARTED, HOUR + 7 * MINUTE, "job-2")
    assert ChangeReceived not in [type(each) for each in records(effects)]
    assert seller.first.state == "sold"


def test_a_failed_slot_is_claimed_back_after_a_restart_however_far_it_had_come() -> None:
    one = launched()
    before = len(one.journal)
    one.seen(NEVER_STARTED, HOUR + 5 * MINUTE)
    assert [type(each) for each in one.journal[before:]] == [JobEnded, ChangeReceived]
    whole = list(one.journal)
    for known in (whole[:-1], whole):
        one.journal = list(known)
        effects = one.restart(HOUR + 6 * MINUTE)
        assert one.first.state == "ending"
        assert "bank" in [each.message.receiver for each in effects if isinstance(each, fx.Send)]


PIECE = c.JobInputPiece("job-2", "a1", 0, "YWJj")


@pytest.mark.parametrize(
    ("piece", "code"),
    [
        (replace(PIECE, agreement_id="a2"), "unknown_agreement"),
        (replace(PIECE, job_id="job-1"), "other_job"),
        (replace(PIECE, job_id="../x"), "beyond_limits"),
        (replace(PIECE, data=""), "beyond_limits"),
        (replace(PIECE, data="!"), "beyond_limits"),
        (replace(PIECE, data="ü"), "beyond_limits"),
        (replace(PIECE, data=base64.b64encode(bytes(OUTPUT_CHUNK_BYTES + 1)).decode()), "beyond_limits"),
        (replace(PIECE, offset=ARCHIVE_BYTES_MAX - 2), "beyond_limits"),
        (replace(PIECE, offset=-1), "beyond_limits"),
    ],
)
def test_inputs_beyond_the_limits_are_refused(seller: JobSeller, piece: c.JobInputPiece, code: str) -> None:
    seller.hears(ORDER)
    assert refused(seller.hears(piece)).code == code


def test_a_slot_that_is_over_takes_no_job(seller: JobSeller) -> None:
    for word in (ORDER, PIECE):
        assert refused(seller.hears(word, now=2 * HOUR)).code == "slot_over"
    assert asked(seller.hears(ORDER, now=2 * HOUR - 1)) == [fx.SubmitJob]
