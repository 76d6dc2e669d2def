"""The dialogues about jobs: what is asked of the agent, piece by piece, and what needs no question."""

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramp.client import dialogues
from ramp.control.events import Event, JobsListed, JobStanding, MarketRefusalCode, Refused
from ramp.control.requests import ListJobs, Request
from ramp.errors import ConfigurationError
from ramp.model.contents import JobOrder, JobOutput, JobRefused, JobStatus
from ramp.model.contents.jobs import FOLDER, OUTPUT_CHUNK_BYTES, Delivery, JobState
from ramp.protocol.events import JobAsked, JobCancelled, JobInputSent, JobOutputAsked, JobSubmitted

ORDER = JobOrder("job-1", "a1", 8, 1, 0, ("run",))
RUNNING = JobStatus("job-1", "a1", JobState.RUNNING, "local", "alice1", 0, Delivery.ON_TIME, started_at=1)
DONE = replace(RUNNING, state=JobState.DONE, exit_code=0)
WAITING = replace(RUNNING, state=JobState.QUEUED, started_at=None)
NOTHING = Refused(MarketRefusalCode.JOB_REFUSED, "no_file: nothing")


def held(dialogue: Any, *answers: Event) -> tuple[Any, list[Request]]:
    """Hold a dialogue with prepared answers; return its result and what it has asked."""
    asked: list[Request] = []
    told: list[Event | None] = [None, *answers]
    try:
        while True:
            asked.append(dialogue.send(told.pop(0)))
    except StopIteration as end:
        assert told == []
        return end.value, asked


def listed(status: JobStatus | None = None, refused: JobRefused | None = None) -> JobsListed:
    return JobsListed((JobStanding(ORDER, "r1", "res", 0, status, refused),))


def piece(data: bytes, offset: int, size: int, name: str = "x") -> JobOutput:
    return JobOutput("job-1", "a1", name, offset, size, False, base64.b64encode(data).decode())


@pytest.mark.parametrize("known", [listed(DONE), listed(refused=JobRefused("job-1", "a1", "slot_over"))])
def test_a_job_that_has_ended_is_cancelled_without_a_question(known: JobsListed) -> None:
    found, asked = held(dialogues.cancel_job("job-1"), known)
    assert (found, asked) == (known.jobs[0], [ListJobs()])


def test_a_job_that_runs_is_cancelled_at_its_resource() -> None:
    ended = replace(RUNNING, state=JobState.CANCELLED)
    found, asked = held(dialogues.cancel_job("job-1"), listed(RUNNING), ended)
    assert (found.status, asked[1]) == (ended, JobCancelled("", "job-1"))


@pytest.mark.parametrize(
    ("status", "answers", "news"),
    [
        (WAITING, [WAITING], (b"", False)),
        (RUNNING, [RUNNING, piece(b"more", 3, 7)], (b"more", False)),
        (RUNNING, [RUNNING, piece(b"", 3, 3)], (b"", False)),
        (RUNNING, [DONE, piece(b"last", 3, 7)], (b"last", False)),
        (DONE, [piece(b"", 7, 7)], (b"", True)),
        (replace(WAITING, state=JobState.CANCELLED), [NOTHING], (b"", True)),
    ],
)
def test_followed_output_ends_with_the_last_piece(status: JobStatus, answers: list[Event], news: Any) -> None:
    assert held(dialogues.job_news("job-1", "stdout", 3), listed(status), *answers)[0] == news


def test_the_list_of_files_comes_in_pieces() -> None:
    first, second = b'["stdout", 0, 0]\n["a b", 1, 0]\n', b'["c", 2, 0]\n'
    answers = (piece(first, 0, 3, FOLDER), piece(second, 2, 3, FOLDER))
    found, asked = held(dialogues.job_files("job-1"), listed(DONE), *answers)
    assert [(each.path, each.size) for each in found] == [("stdout", 0), ("a b", 1), ("c", 2)]
    assert asked[1:] == [JobOutputAsked("", "job-1", FOLDER, 0), JobOutputAsked("", "job-1", FOLDER, 2)]


def test_all_files_but_the_streams_are_saved(tmp_path: Path) -> None:
    files = piece(b'["stdout", 9, 0]\n["a/b c", 3, 0]\n', 0, 2, FOLDER)
    found, _ = held(dialogues.fetched("job-1", tmp_path), listed(DONE), files, listed(DONE), piece(b"xyz", 0, 3))
    assert found == (tmp_path / "a/b c",)
    assert found[0].read_bytes() == b"xyz"
    with pytest.raises(ConfigurationError, match="the job has no file 'none'"):
        held(dialogues.fetched("job-1", tmp_path, ["none"]), listed(DONE), files)
    files = piece(b'["big", 300000000, 0]\n', 0, 1, FOLDER)
    with pytest.raises(ConfigurationError, match="too large: got 300000000 bytes"):
        held(dialogues.fetched("job-1", tmp_path), listed(DONE), files)


@pytest.mark.parametrize(("asked", "name"), [("./top", "top"), ("top", "top"), ("./stdout", "./stdout")])
def test_a_file_that_is_saved_may_be_named_as_one_that_is_printed(tmp_path: Path, asked: str, name: str) -> None:
    files = piece(b'["stdout", 9, 0]\n["./stdout", 3, 0]\n["top", 3, 0]\n', 0, 3, FOLDER)
    found, questions = held(
        dialogues.fetched("job-1", tmp_path, [asked]), listed(DONE), files, listed(DONE), piece(b"xyz", 0, 3)
    )
    assert len(found) == 1
    assert questions[-1] == JobOutputAsked("", "job-1", name, 0)


def test_files_larger_than_their_site_has_listed_do_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialogues, "FETCHED_BYTES_MAX", 4)
    files = piece(b'["a", 0, 0]\n["b", 0, 0]\n', 0, 2, FOLDER)
    answers = [listed(DONE), files, listed(DONE), piece(b"xyz", 0, 3), listed(DONE), piece(b"xyz", 0, 3)]
    with pytest.raises(ConfigurationError, match="too large"):
        held(dialogues.fetched("job-1", tmp_path), *answers)
    assert not (tmp_path / "b").exists()


def test_a_list_of_files_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialogues, "LISTED_MAX", 3)
    endless = piece(b'["a", 0, 0]\n["b", 0, 0]\n', 0, 10**12, FOLDER)
    with pytest.raises(ConfigurationError, match="does not end"):
        held(dialogues.job_files("job-1"), listed(DONE), endless, endless)


def test_an_archive_goes_in_pieces_before_its_order() -> None:
    archive = bytes(OUTPUT_CHUNK_BYTES + 1)
    answers = [piece(b"", 0, OUTPUT_CHUNK_BYTES), piece(b"", OUTPUT_CHUNK_BYTES, OUTPUT_CHUNK_BYTES + 1), WAITING]
    found, asked = held(dialogues._ordered(ORDER, archive), *answers)
    assert found == WAITING
    assert asked == [
        JobInputSent("", "job-1", "a1", 0, base64.b64encode(archive[:-1]).decode()),
        JobInputSent("", "job-1", "a1", OUTPUT_CHUNK_BYTES, "AA=="),
        JobSubmitted(ORDER),
    ]
    assert held(dialogues._ordered(ORDER, archive), NOTHING) == (NOTHING, asked[:1])


def test_a_job_that_runs_is_looked_up() -> None:
    found, asked = held(dialogues.job("job-1"), listed(RUNNING), DONE)
    assert (found.status, asked[1]) == (DONE, JobAsked("", "job-1"))


@pytest.mark.parametrize("path", ["", ".", "./", "/etc/passwd", "../x", "a\nb", "\x1b[31m", "a\udcff", "x" * 1001])
def test_what_cannot_name_a_file_is_refused_without_a_question(path: str) -> None:
    """`.` is how the list of files is asked for; it is no file whose bytes a buyer reads."""
    for dialogue in (dialogues.job_output("job-1", path), dialogues.job_news("job-1", path, 0)):
        with pytest.raises(ConfigurationError, match=r"invalid file name: got .*, expected"):
            next(dialogue)
