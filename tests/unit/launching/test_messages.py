"""What a worker answers is checked before it is believed."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from ramp.launching import messages, worker
from ramp.model.contents.jobs import JobState
from ramp.protocol import effects as fx
from ramp.protocol import events as ev

JOB = fx.JobToRun("job-1", "res@localhost", "R-1", "alice1", 4, 10, 20, ("true",), ())
LOOK = fx.LookUpJob(JOB)
READ = fx.ReadJobFile("read-1", JOB, "stdout", 3)


def sight(**changed: Any) -> dict[str, Any]:
    return {"version": 1, "seen": {**worker.sight("running", started_at=15), **changed}}


def answer(question: Any, plain: Any) -> Any:
    return messages.answer_of(question, json.dumps(plain).encode())


def test_an_answer_of_another_version_is_refused_with_what_to_do() -> None:
    told = "wrong version of the worker's answer: got 2, expected 1; install the worker of the same version of RAMP"
    with pytest.raises(ValueError, match=told):
        answer(LOOK, {"version": 2, "seen": None})


def test_only_a_job_in_a_queue_of_a_batch_system_has_the_key_of_its_queued_job() -> None:
    there = fx.SubmitJob(replace(JOB, reservation_id="17", queue_key="offer-1"))
    for question, executor, key in (
        (there, "slurm", "offer-1"),
        (there, "local", None),
        (fx.SubmitJob(JOB), "slurm", None),
    ):
        assert json.loads(messages.question_text(question, executor, "", {}))["job"].get("queue_key") == key


def test_a_question_has_all_that_the_worker_needs() -> None:
    plain = json.loads(messages.question_text(READ, "local", "/jobs", {"SLURM_CONF": "/x"}))
    assert (plain["verb"], plain["name"], plain["offset"], plain["root"]) == ("read", "stdout", 3, "/jobs")
    assert {messages.question_text(each(JOB), "local", "", {}) for each in (fx.SubmitJob, fx.LookUpJob, fx.CancelJob)}


def test_what_a_worker_sees_is_read() -> None:
    seen = answer(LOOK, sight(native_id="7", cores=4, detail=" a\n b "))
    assert seen == ev.JobSeen("job-1", ev.JobSight(JobState.RUNNING, "7", 4, 15, None, None, "a b"))
    assert answer(LOOK, {"version": 1, "seen": None}) == ev.JobSeen("job-1", None)
    data = base64.b64encode(b"lo").decode()
    read = answer(READ, {"version": 1, "data": data, "size": 5, "complete": True})
    assert read == ev.JobFileRead("read-1", data, 5, True)
    assert answer(READ, {"version": 1, "code": "x", "detail": "none"}).code == "no_file"


def test_a_clock_that_was_set_back_ends_no_job_before_it_began() -> None:
    seen = answer(LOOK, sight(state="done", ended_at=3, exit_code=0))
    assert (seen.answer.started_at, seen.answer.ended_at) == (15, 15)


@pytest.mark.parametrize(
    "plain",
    [
        [],
        {"seen": None},
        {"version": 2, "seen": None},
        {"version": 1},
        {"version": 1, "error": "sbatch: no"},
        sight(state="taken"),
        sight(state="asleep"),
        sight(started_at=None),
        sight(started_at="15"),
        sight(started_at=True),
        sight(started_at=2**70),
        sight(cores=-1),
        {"version": 1, "seen": "running"},
    ],
)
def test_what_cannot_be_is_not_believed(plain: Any) -> None:
    with pytest.raises(ValueError):
        answer(LOOK, plain)


@pytest.mark.parametrize(
    "plain",
    [
        {"version": 1, "data": "!", "size": 1, "complete": True},
        {"version": 1, "data": "", "size": -1, "complete": True},
        {"version": 1, "data": "", "size": 0, "complete": "yes"},
        {"version": 1, "data": 5, "size": 0, "complete": True},
        {"version": 1, "data": base64.b64encode(bytes(50_000)).decode(), "size": 50_000, "complete": True},
    ],
)
def test_output_that_cannot_be_is_not_believed(plain: Any) -> None:
    with pytest.raises(ValueError):
        answer(READ, plain)


def test_no_json_and_too_much_of_it() -> None:
    for text in (b"sudo: a password is required", b"1" * 300_000):
        with pytest.raises(ValueError):
            messages.answer_of(LOOK, text)
