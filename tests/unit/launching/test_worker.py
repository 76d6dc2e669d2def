"""The worker as its agent runs it: one process a question, as the account that owns the job."""

import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from ramp.launching import worker
from tests.unit.launching.keeping import WORKER
from tests.waiting import LIMIT_S, until

SECOND = 1_000_000


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    def question(verb: str, job_id: str = "job-1", **changed: Any) -> dict[str, Any]:
        job = {
            "job_id": job_id, "resource": "res@localhost", "reservation_id": "R-1", "cores": 4,
            "arguments": ["sh", "-c", 'echo "$1 $RAMP_UNIT"; echo oh >&2', "x", "it's"],
            "environment": [["RAMP_UNIT", "2"]],
        }  # fmt: skip
        names = ("name", "offset", "data", "executor", "variables", "pids", "mark", "signal")
        more = {key: changed.pop(key) for key in names if key in changed}
        asked = {"version": 1, "verb": verb, "root": str(tmp_path), "job": {**job, **changed}, **more}
        text = json.dumps({"version": 1, "verb": "run"} | asked if verb == "run" else asked) + "\n"
        given = (2 * text if verb == "run" else text).encode()
        done = subprocess.run(WORKER, input=given, capture_output=True, timeout=LIMIT_S)
        lines = done.stdout.splitlines()
        assert len(lines) == (2 if verb == "run" and done.returncode else 1), done
        assert done.returncode == (worker.CANNOT_RUN if len(lines) == 2 else 0), done
        answer: dict[str, Any] = json.loads(lines[-1])
        return answer

    return question


def folder(tmp_path: Path, job_id: str = "job-1") -> Path:
    return tmp_path / "res@localhost" / job_id


def test_the_worker_becomes_the_command_and_its_output_is_read_in_pieces(ask: Any) -> None:
    assert ask("run") == {"version": 1}
    assert base64.b64decode(ask("read", name="stdout", offset=0)["data"]) == b"it's 2\n"
    assert base64.b64decode(ask("read", name="stderr", offset=1)["data"]) == b"h\n"


def test_a_worker_whose_keeper_goes_before_the_start_is_on_record_runs_nothing(ask: Any, tmp_path: Path) -> None:
    line = json.dumps({"version": 1, "verb": "run"}).encode() + b"\n"
    done = subprocess.run(WORKER, input=line, capture_output=True, timeout=LIMIT_S, cwd=tmp_path)
    assert (done.returncode, [*tmp_path.iterdir()]) == (worker.CANNOT_RUN, [])


@pytest.mark.slow
def test_processes_are_ended_by_number_or_by_what_is_in_their_environment(ask: Any) -> None:
    marked = subprocess.Popen(["sleep", "900"], env={"RAMP_JOB": "marked"})
    named, other = (subprocess.Popen(["sleep", "900"], env={"RAMP_JOB": "marked2"}) for _ in range(2))
    try:
        until(lambda: marked.pid in worker.carrying("RAMP_JOB=marked", os.geteuid()))
        assert worker.carrying("", os.geteuid()) == []  # else the end of one job would be that of all
        assert ask("end", pids=[named.pid, 1, 0, -1], mark="RAMP_JOB=marked", signal=15) == {"version": 1}
        assert (marked.wait(LIMIT_S), named.wait(LIMIT_S)) == (-15, -15)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.slow
def test_results_are_read_but_nothing_beside_them(ask: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    command = f"echo r > result; ln -s {secret} link; mkdir folder; mkfifo pipe"
    ask("run", arguments=["sh", "-c", command])
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
    ask("run", arguments=["sh", "-c", command])
    listed = ask("read", name=".", offset=0)
    entries = [json.loads(line) for line in base64.b64decode(listed["data"]).splitlines()]
    assert [entry[:2] for entry in entries] == [["stdout", 0], ["stderr", 0], ["./stdout", 2], ["out/ü b/c", 2]]
    assert abs(entries[-1][2] / SECOND - time.time()) < LIMIT_S
    assert listed["size"] == 4
    rest = ask("read", name=".", offset=3)
    assert json.loads(base64.b64decode(rest["data"])) == entries[3]
    for name, content in (("out/ü b/c", b"1\n"), ("./stdout", b"2\n"), ("stdout", b"")):
        assert base64.b64decode(ask("read", name=name, offset=0)["data"]) == content


def packed(*entries: tuple[str, bytes], kind: bytes = tarfile.REGTYPE, **headers: str) -> bytes:
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w:gz") as archive:
        for name, data in entries:
            entry = tarfile.TarInfo(name)
            entry.pax_headers = {key.replace("_", "."): value for key, value in headers.items()}
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
    ask("run", arguments=["./in/ü b/run.sh"], archive=hashlib.sha256(archive).hexdigest())
    assert base64.b64decode(ask("read", name="stdout", offset=0)["data"]) == b"hello\n"
    assert not (folder(tmp_path) / worker.ARCHIVE).exists()


@pytest.mark.slow
def test_an_archive_is_unpacked_before_the_script_of_a_batch_system(ask: Any, tmp_path: Path) -> None:
    archive = packed(("in/data", b"hello\n"))
    sent(ask, archive)
    (tmp_path / "squeue").symlink_to("/bin/false")
    batch = {"executor": "slurm", "variables": {"PATH": str(tmp_path)}}
    assert "squeue" in ask("submit", archive=hashlib.sha256(archive).hexdigest(), **batch)["error"]
    assert (folder(tmp_path) / "work/in/data").read_bytes() == b"hello\n"
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
        (packed(("a", b""), GNU_sparse_map="0,0", GNU_sparse_size=str(2**50)), "not a regular file"),
        (packed(("a", b""), GNU_sparse_map="x,y", GNU_sparse_size="0"), "cannot be unpacked"),
    ],
    ids=range(11),  # an archive has the time in it, and each worker names its tests
)
def test_wrong_inputs_are_the_buyers_fault(ask: Any, tmp_path: Path, archive: bytes | None, problem: str) -> None:
    """The job fails, and no doubt about the site arises from it, after which the slot would be paid back."""
    if archive is not None:
        sent(ask, archive, 100_000)
    digest = hashlib.sha256(archive or b"").hexdigest()
    assert problem in ask("run", archive=digest)["error"]
    seen = ask("submit", archive=digest, executor="slurm")["seen"]
    assert (seen["state"], problem in seen["detail"]) == ("failed", True), seen
    assert not (tmp_path / "x").exists()


def test_pieces_that_are_missing_are_noticed(ask: Any) -> None:
    archive = packed(("a", bytes(range(256)) * 20))
    sent(ask, archive[:-1])
    assert "checksum" in ask("run", archive=hashlib.sha256(archive).hexdigest())["error"]


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
    "changed", [{"job_id": "../../x"}, {"job_id": ".."}, {"resource": "a/b"}, {"environment": [["PATH=x; true", "y"]]}]
)
def test_what_leads_elsewhere_is_refused(ask: Any, tmp_path: Path, changed: Any) -> None:
    assert "error" in ask("run", **changed)
    assert not list(tmp_path.rglob("stdout"))


def test_an_unknown_batch_system_is_refused(ask: Any) -> None:
    assert "unknown batch system 'local'" in ask("submit", executor="local")["error"]


@pytest.mark.slow
def test_another_version_or_no_question_is_refused() -> None:
    for text in (b"", b"{", b"[]", b'{"version": 9}', b"x" * 500_000):
        done = subprocess.run(WORKER, input=text, capture_output=True, check=True)
        assert "error" in json.loads(done.stdout)


@pytest.mark.parametrize("question", [{"version": 2}, {}])
def test_a_question_of_another_version_is_refused_with_what_to_do(question: dict[str, Any]) -> None:
    told = f"wrong version of the question: got {question.get('version')}, expected 1; install the worker of the same"
    with pytest.raises(worker.WrongQuestion, match=told):
        worker.answered(question)
