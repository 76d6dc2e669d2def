"""The worker as its agent runs it: one process a question, all that is known of a job in its folder."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ramp.launching import worker

LIMIT_S = 300.0
SECOND = 1_000_000


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    def question(verb: str, job_id: str = "job-1", **changed: Any) -> dict[str, Any]:
        now = int(time.time())
        job = {
            "job_id": job_id,
            "resource": "res@localhost",
            "reservation_id": "R-1",
            "cores": 4,
            "begin_at": now * SECOND,
            "end_at": (now + 600) * SECOND,
            "arguments": ["sh", "-c", 'echo "$1 $RAMP_UNIT"; echo oh >&2', "x", "it's"],
            "inputs": [],
            "environment": [["RAMP_UNIT", "2"]],
        }
        more = {key: changed.pop(key) for key in ("name", "offset", "data", "executor", "variables") if key in changed}
        asked = {
            "version": 1,
            "verb": verb,
            "executor": "local",
            "root": str(tmp_path),
            "job": {**job, **changed},
            **more,
        }
        command = [sys.executable, "-I", worker.__file__]
        done = subprocess.run(
            command, input=json.dumps(asked).encode(), capture_output=True, check=True, timeout=LIMIT_S
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return question


def until(look: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = look()
        if wanted(found):
            return found
        time.sleep(0.2)  # each look is a process
    raise AssertionError(f"still {found}")


def folder(tmp_path: Path, job_id: str = "job-1") -> Path:
    return tmp_path / "res@localhost" / job_id


def test_a_job_runs_once_and_what_it_says_is_there(ask: Any, tmp_path: Path) -> None:
    assert ask("look_up")["seen"] is None
    asked = ask("submit")["seen"]
    assert asked["state"] in ("queued", "running", "done")
    seen = until(lambda: ask("look_up")["seen"], lambda found: found["state"] == "done")
    assert (seen["exit_code"], seen["cores"]) == (0, 4)
    assert abs(seen["started_at"] / SECOND - time.time()) < LIMIT_S
    read = ask("read", name="stdout", offset=0)
    assert base64.b64decode(read["data"]) == b"it's 2\n"
    assert read["complete"] is True
    assert base64.b64decode(ask("read", name="stderr", offset=1)["data"]) == b"h\n"
    again = ask("submit")["seen"]
    assert again["started_at"] == seen["started_at"]
    assert subprocess.run([folder(tmp_path) / "run"]).returncode == 126, "whoever starts it again starts nothing"


@pytest.mark.slow
def test_an_interrupted_staging_is_done_again(ask: Any, tmp_path: Path) -> None:
    (folder(tmp_path) / "work").mkdir(parents=True)
    assert ask("look_up")["seen"] is None
    ask("submit")
    until(lambda: ask("look_up")["seen"], lambda found: found["state"] == "done")


@pytest.mark.slow
def test_a_staged_job_that_nobody_has_is_submitted(ask: Any, tmp_path: Path) -> None:
    """As after a crash between the two."""
    ask("submit", begin_at=int(time.time() + 600) * SECOND, end_at=int(time.time() + 900) * SECOND)
    ask("cancel")
    for name in ("keeper", "cancelled"):
        (folder(tmp_path) / name).unlink()
    assert ask("look_up")["seen"] is None
    ask("submit")
    until(lambda: ask("look_up")["seen"], lambda found: found["state"] == "done")


@pytest.mark.slow
def test_a_job_that_is_ended_the_moment_it_begins_says_how_it_ended(ask: Any, tmp_path: Path) -> None:
    """By whoever saw that it had begun, before its script has come to the command."""
    date = tmp_path / "bin" / "date"
    date.parent.mkdir()
    date.write_text('#!/bin/sh\n/bin/date "$@"\n[ "$1" != +%s.%N ] || kill -TERM "$PPID"\n', "ascii")
    date.chmod(0o755)
    variables = {"PATH": str(date.parent)}
    ask("submit", arguments=["sleep", "900"], variables=variables)
    ended = until(lambda: ask("look_up", variables=variables)["seen"], lambda found: found["ended_at"] is not None)
    assert (ended["state"], ended["exit_code"]) == ("failed", -15)


def test_a_job_that_waits_and_one_that_runs_are_ended(ask: Any) -> None:
    later = {"begin_at": int(time.time() + 600) * SECOND, "end_at": int(time.time() + 900) * SECOND}
    assert ask("submit", "waits", **later)["seen"]["state"] == "queued"
    assert ask("cancel", "waits")["seen"]["state"] == "cancelled"
    ask("submit", "runs", arguments=["sleep", "900"])
    until(lambda: ask("look_up", "runs")["seen"], lambda found: found["state"] == "running")
    ended = ask("cancel", "runs")["seen"]
    assert (ended["state"], ended["exit_code"]) == ("cancelled", -15)
    assert ask("submit", "runs")["seen"]["state"] == "cancelled"


@pytest.mark.slow
def test_a_slots_end_ends_its_job(ask: Any) -> None:
    ask("submit", arguments=["sleep", "900"], end_at=int(time.time() + 2) * SECOND)
    seen = until(lambda: ask("look_up")["seen"], lambda found: found["state"] == "failed")
    assert seen["exit_code"] in (-15, None)  # None where the slot was over before it could begin


@pytest.mark.slow
def test_results_are_read_but_nothing_beside_them(ask: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    command = f"echo r > result; ln -s {secret} link; mkdir folder; mkfifo pipe"
    ask("submit", arguments=["sh", "-c", command])
    until(lambda: ask("look_up")["seen"], lambda found: found["state"] == "done")
    assert base64.b64decode(ask("read", name="result", offset=0)["data"]) == b"r\n"
    for name in ("link", "folder", "pipe", "nothing"):
        assert ask("read", name=name, offset=0)["code"] == "no_file"
    for name in ("../run", "/etc/passwd", "a/../../run", ""):
        assert "error" in ask("read", name=name, offset=0)


@pytest.mark.slow
def test_files_are_listed_and_read_from_subfolders_under_any_name(ask: Any, tmp_path: Path) -> None:
    command = (
        "mkdir -p 'out/ü b'; echo 1 > 'out/ü b/c'; echo 2 > stdout; ln -s /etc/passwd link; : > \"$(printf 'a\\nb')\""
    )
    ask("submit", arguments=["sh", "-c", command])
    until(lambda: ask("look_up")["seen"], lambda found: found["state"] == "done")
    listed = ask("read", name=".", offset=0)
    entries = [json.loads(line) for line in base64.b64decode(listed["data"]).splitlines()]
    assert [entry[:2] for entry in entries] == [["stdout", 0], ["stderr", 0], ["./stdout", 2], ["out/ü b/c", 2]]
    assert abs(entries[-1][2] / SECOND - time.time()) < LIMIT_S
    assert listed["size"] == 4
    rest = ask("read", name=".", offset=3)
    assert json.loads(base64.b64decode(rest["data"])) == entries[3]
    for name, content in (("out/ü b/c", b"1\n"), ("./stdout", b"2\n"), ("stdout", b"")):
        assert base64.b64decode(ask("read", name=name, offset=0)["data"]) == content


def packed(*entries: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a compressed archive."""
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w:gz") as archive:
        for name, data in entries:
            entry = tarfile.TarInfo(name)
            entry.size, entry.type, entry.mode = len(data), kind, 0o755
            archive.addfile(entry, io.BytesIO(data))
    return found.getvalue()


def sent(ask: Any, archive: bytes, piece: int = 100) -> None:
    """Send an archive in pieces, each of them twice."""
    for offset in [*range(0, len(archive), piece)] * 2:
        data = base64.b64encode(archive[offset : offset + piece]).decode("ascii")
        answer = ask("stage", offset=offset, data=data)
        assert answer["size"] >= offset + len(archive[offset : offset + piece])


@pytest.mark.slow
def test_an_archive_of_inputs_is_unpacked_before_the_job_starts(ask: Any, tmp_path: Path) -> None:
    archive = packed(("in/ü b/run.sh", b"#!/bin/sh\ncat in/data\n"), ("in/data", b"hello\n"))
    sent(ask, archive)
    assert ask("look_up")["seen"] is None
    ask("submit", arguments=["./in/ü b/run.sh"], archive=hashlib.sha256(archive).hexdigest())
    until(lambda: ask("look_up")["seen"], lambda found: found["state"] == "done")
    assert base64.b64decode(ask("read", name="stdout", offset=0)["data"]) == b"hello\n"
    assert not (folder(tmp_path) / worker.ARCHIVE).exists()
    assert ask("stage", offset=0, data="YQ==")["code"] == "no_file"


@pytest.mark.parametrize(
    ("archive", "problem"),
    [
        (None, "never arrived"),
        (b"no archive", "cannot be unpacked"),
        (packed(("../x", b"y")), "invalid file name"),
        (packed(("/tmp/x", b"y")), "invalid file name"),
        (packed(("x", b""), kind=tarfile.SYMTYPE), "not a regular file"),
        (packed(("a", b"y"), ("a/b", b"y")), "Not a directory"),
        (packed(("a/b", b"y"), ("a", b"y")), "Is a directory"),
        (packed(("a" * 300, b"y")), "too long"),
        (packed(("a", b"y"))[:-20], "cannot be unpacked"),
    ],
)
def test_wrong_inputs_are_the_buyers_fault(ask: Any, tmp_path: Path, archive: bytes | None, problem: str) -> None:
    """The job fails, and no doubt about the site arises from it, after which the slot would be paid back."""
    if archive is not None:
        sent(ask, archive, 100_000)
    seen = ask("submit", archive=hashlib.sha256(archive or b"").hexdigest())["seen"]
    assert (seen["state"], problem in seen["detail"]) == ("failed", True), seen
    assert not (tmp_path / "x").exists()


def test_pieces_that_are_missing_are_noticed(ask: Any) -> None:
    archive = packed(("a", bytes(range(256)) * 20))
    sent(ask, archive[:-1])
    seen = ask("submit", archive=hashlib.sha256(archive).hexdigest())["seen"]
    assert (seen["state"], "checksum" in seen["detail"]) == ("failed", True), seen


def test_inputs_cannot_become_larger_than_the_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worker, "UNPACKED_BYTES_MAX", 100_000)
    archive = packed(("a", bytes(1_000_000)))
    (folder(tmp_path) / "work").mkdir(parents=True)
    worker.keep(folder(tmp_path), 0, archive)
    with pytest.raises(worker.WrongInputs, match="too large"):
        worker.unpack(folder(tmp_path), hashlib.sha256(archive).hexdigest())
    with pytest.raises(worker.WrongQuestion):
        worker.keep(folder(tmp_path), worker.ARCHIVE_BYTES_MAX, b"x")


@pytest.mark.parametrize(
    "changed",
    [
        {"job_id": "../../x"},
        {"job_id": ".."},
        {"resource": "a/b"},
        {"inputs": [{"name": "../x", "data": "", "executable": False}]},
        {"inputs": [{"name": "x", "data": "!", "executable": False}]},
        {"environment": [["PATH=x; true", "y"]]},
        {"executor": "none"},
    ],
)
def test_what_leads_elsewhere_is_refused(ask: Any, tmp_path: Path, changed: Any) -> None:
    assert "error" in ask("submit", **changed)
    assert not list(tmp_path.rglob("run"))


@pytest.mark.slow
def test_another_version_or_no_question_is_refused() -> None:
    for text in (b"", b"{", b"[]", b'{"version": 9}', b"x" * 500_000):
        done = subprocess.run([sys.executable, "-I", worker.__file__], input=text, capture_output=True, check=True)
        assert "error" in json.loads(done.stdout)


@pytest.mark.parametrize("question", [{"version": 2}, {}])
def test_a_question_of_another_version_is_refused_with_what_to_do(question: dict[str, Any]) -> None:
    told = f"wrong version of the question: got {question.get('version')}, expected 1; install the worker of the same"
    with pytest.raises(worker.WrongQuestion, match=told):
        worker.answered(question)
