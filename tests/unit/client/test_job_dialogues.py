"""The dialogues about jobs, launches in the background, and the files that go to a job and come back."""

import base64
import hashlib
import io
import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ramp.client import dialogues, jobs, swarm
from ramp.client.jobs import files_of, save, work_of
from ramp.control.events import Event, JobsListed, JobStanding, MarketRefusalCode, Refused
from ramp.control.requests import ListJobs, Request
from ramp.control.status import AgentStatus, ServerStatus, SwarmStatus
from ramp.errors import ConfigurationError, ControlLineError
from ramp.model import contents as c
from ramp.model.contents import JobOrder, JobOutput, JobRefused, JobStatus
from ramp.model.contents.jobs import FOLDER, OUTPUT_CHUNK_BYTES, Delivery, JobState
from ramp.model.instant import to_datetime
from ramp.protocol.events import JobAsked, JobSubmitted
from ramp.runtime.state_folder import StateFolder

ORDER = JobOrder("job-1", "a1", 8, 1, 0, ("run",))
RUNNING = JobStatus("job-1", "a1", JobState.RUNNING, "local", "alice1", 0, Delivery.ON_TIME, started_at=1)
DONE = replace(RUNNING, state=JobState.DONE, exit_code=0)
WAITING = replace(RUNNING, state=JobState.QUEUED, started_at=None)
NOTHING = Refused(MarketRefusalCode.JOB_REFUSED, "no_file: nothing")


def held(dialogue: Any, *answers: Event) -> tuple[Any, list[Request]]:
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
    assert (found.status, asked[1]) == (ended, JobAsked("", c.JobCancellation("job-1", "")))


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
    assert asked[1:] == [
        JobAsked("", c.JobOutputQuery("job-1", "", FOLDER, 0)),
        JobAsked("", c.JobOutputQuery("job-1", "", FOLDER, 2)),
    ]


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
    assert questions[-1] == JobAsked("", c.JobOutputQuery("job-1", "", name, 0))


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
        JobAsked("", c.JobInputPiece("job-1", "a1", 0, base64.b64encode(archive[:-1]).decode())),
        JobAsked("", c.JobInputPiece("job-1", "a1", OUTPUT_CHUNK_BYTES, "AA==")),
        JobSubmitted(ORDER),
    ]
    assert held(dialogues._ordered(ORDER, archive), NOTHING) == (NOTHING, asked[:1])


def test_a_job_that_runs_is_looked_up() -> None:
    found, asked = held(dialogues.job("job-1"), listed(RUNNING), DONE)
    assert (found.status, asked[1]) == (DONE, JobAsked("", c.JobQuery("job-1", "")))


@pytest.mark.parametrize("path", ["", ".", "./", "/etc/passwd", "../x", "a\nb", "\x1b[31m", "a\udcff", "x" * 1001])
def test_what_cannot_name_a_file_is_refused_without_a_question(path: str) -> None:
    """`.` is how the list of files is asked for; it is no file whose bytes a buyer reads."""
    for dialogue in (dialogues.job_output("job-1", path), dialogues.job_news("job-1", path, 0)):
        with pytest.raises(ConfigurationError, match=r"invalid file name: got .*, expected"):
            next(dialogue)


def test_who_is_waited_for_is_told_with_the_server_and_for_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = (
        AgentStatus("bank", "bank", 2, "ready", "", 0, "", is_up=True),
        AgentStatus("alice", "user", 3, "starting", "", 0, ""),
    )
    server = ServerStatus("external", "192.0.2.1", 5222, None)
    found = SwarmStatus("starting", "2026-12-01T10:00:00Z", 1, "swarm.toml", server, agents)
    seen: list[SwarmStatus | None] = [None, None, found]
    monkeypatch.setattr(swarm, "status", lambda _: seen.pop(0) if seen else found)
    passed = [0.0]
    clock = SimpleNamespace(monotonic=lambda: passed[0], sleep=lambda _: passed.insert(0, passed[0] + 10))
    monkeypatch.setattr(swarm, "time", clock)
    told: list[dict[str, str]] = []
    process: Any = SimpleNamespace(pid=1, poll=lambda: None if seen else 1)
    assert swarm._wait_up(StateFolder(tmp_path), process, told.append) is None
    waiting = [event["detail"] for event in told if event["event"] == swarm.WAITING]
    logs = f"their logs are in {tmp_path}/logs"
    server_text = "the external XMPP server at 192.0.2.1:5222"
    assert waiting == [
        f"10 s: waiting for the supervisor; {logs}",
        f"20 s: waiting for 1 of 2 agents to come up on {server_text}; {logs}",
    ]


@pytest.mark.parametrize(
    ("command", "why"), [("", "nothing to run"), ('a "b', "invalid command: no closing quotation")]
)
def test_what_is_no_command_is_refused(command: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        work_of(command)


def test_a_job_without_files_has_no_archive() -> None:
    order, archive = work_of("a b", environment={"A": "b"})
    assert (order.arguments, order.archive, archive) == (("a", "b"), "", b"")
    assert [(each.name, each.value) for each in order.variables] == [("A", "b")]


@pytest.mark.parametrize("as_script", [False, True])
def test_a_pipe_or_device_is_no_input_and_is_not_waited_for(tmp_path: Path, as_script: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    for each in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ConfigurationError, match="cannot be staged: expected files, folders, or links to files"):
            work_of("a", script=each) if as_script else work_of("a", inputs=[each])


@pytest.mark.parametrize("why", ["file", "name", "folder", "stream"])
def test_inputs_go_into_an_archive(tmp_path: Path, why: str) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh")
    name = {"name": "ü b", "stream": "stdout"}.get(why, "data")
    given = [tmp_path / name]
    if why == "folder":
        (given[0] / "deep").mkdir(parents=True)
        (given[0] / "deep" / "x").write_text("y")
        (given[0] / "link").symlink_to(script)
    else:
        given[0].write_bytes(b"x")
    order, packed = work_of("a", script=script, inputs=given)
    assert order.arguments == ("./job.sh", "a")
    assert order.archive == hashlib.sha256(packed).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        modes = {each.name: each.mode for each in archive}
        assert all(each.isreg() for each in archive)
    expected = {"data/deep/x", "data/link"} if why == "folder" else {each.name for each in given}
    assert modes.keys() == expected | {"job.sh"}
    assert modes["job.sh"] & 0o100
    assert packed == work_of("a", script=script, inputs=given)[1]


def test_inputs_that_cannot_be_sent_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, big = tmp_path / "folder", tmp_path / "big"
    folder.mkdir()
    (folder / "loop").symlink_to(folder)
    with pytest.raises(ConfigurationError, match="links to files"):
        work_of("a", inputs=[folder])
    (tmp_path / "other").mkdir()
    for each in (tmp_path / "x", tmp_path / "other" / "x"):
        each.touch()
    with pytest.raises(ConfigurationError, match="two input files are called 'x'"):
        work_of("a", inputs=[tmp_path / "x", tmp_path / "other" / "x"])
    with pytest.raises(ConfigurationError, match="cannot be read"):
        work_of("a", inputs=[tmp_path / "none"])
    big.write_bytes(bytes(100_000))
    monkeypatch.setattr(jobs, "UNPACKED_BYTES_MAX", 90_000)
    with pytest.raises(ConfigurationError, match="too large"):
        work_of("a", inputs=[big])
    monkeypatch.setattr(jobs, "UNPACKED_BYTES_MAX", 900_000)
    monkeypatch.setattr(jobs, "ARCHIVE_BYTES_MAX", 50)
    with pytest.raises(ConfigurationError, match="too large"):
        work_of("a", inputs=[big])


def test_a_list_of_files_is_read() -> None:
    lines = b'["stdout", 0, 1000000]\n["a b/\\u00fc", 5, 2000000]\n'
    assert [(each.path, each.size, each.changed) for each in files_of(lines)] == [
        ("stdout", 0, to_datetime(1_000_000)),
        ("a b/ü", 5, to_datetime(2_000_000)),
    ]
    assert files_of(b"") == ()


@pytest.mark.parametrize(
    "entry",
    [
        ["../x", 0, 0],
        ["/etc/passwd", 0, 0],
        ["a\nb", 0, 0],
        ["\x1b[2J", 0, 0],
        ["a", -1, 0],
        ["a", 1.5, 0],
        ["a", True, 0],
        ["a", 0, 10**30],
        ["a", 0, None],
        [1, 0, 0],
        ["a", 0],
        {},
        3,
    ],
)
def test_a_list_that_a_site_has_made_up_is_refused(entry: object) -> None:
    with pytest.raises(ControlLineError, match="list of files is invalid"):
        files_of(json.dumps(entry).encode())


def test_files_are_saved_below_their_folder_only(tmp_path: Path) -> None:
    folder, secret = tmp_path / "results", tmp_path / "secret"
    secret.write_text("secret")
    assert save(folder, "a b/ü", b"1").read_bytes() == b"1"
    assert save(folder, "a b/ü", b"2").read_bytes() == b"2"
    (folder / "file").symlink_to(secret)
    (folder / "folder").symlink_to(tmp_path)
    for path in ("../secret", "/etc/passwd", "file", "folder/secret", "a b", "a b/ü/x", ""):
        with pytest.raises(ConfigurationError):
            save(folder, path, b"overwritten")
    assert secret.read_text() == "secret"
