"""The worker as its agent runs it: one process a question, as the account that owns the job."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ramp.launching import worker
from tests.unit.launching.keeping import until

LIMIT_S = 300.0


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    def question(verb: str, job_id: str = "job-1", **changed: Any) -> dict[str, Any]:
        job = {
            "job_id": job_id, "resource": "res@localhost", "reservation_id": "R-1", "cores": 4,
            "arguments": ["sh", "-c", 'echo "$1 $RAMP_UNIT"; echo oh >&2', "x", "it's"],
            "inputs": [], "environment": [["RAMP_UNIT", "2"]],
        }  # fmt: skip
        more = {
            key: changed.pop(key) for key in ("name", "offset", "executor", "pids", "mark", "signal") if key in changed
        }
        asked = {"version": 1, "verb": verb, "root": str(tmp_path), "job": {**job, **changed}, **more}
        text = json.dumps({"version": 1, "verb": "run"} | asked if verb == "run" else asked) + "\n"
        command = [sys.executable, "-I", worker.__file__]
        given = (2 * text if verb == "run" else text).encode()
        done = subprocess.run(command, input=given, capture_output=True, timeout=LIMIT_S)
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
    command = [sys.executable, "-I", worker.__file__]
    line = json.dumps({"version": 1, "verb": "run"}).encode() + b"\n"
    done = subprocess.run(command, input=line, capture_output=True, timeout=LIMIT_S, cwd=tmp_path)
    assert done.returncode == worker.CANNOT_RUN
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_processes_are_ended_by_number_or_by_what_is_in_their_environment(ask: Any) -> None:
    marked = subprocess.Popen(["sleep", "900"], env={"RAMP_JOB": "marked"})
    named, other = (subprocess.Popen(["sleep", "900"], env={"RAMP_JOB": "marked2"}) for _ in range(2))
    try:
        until(lambda: marked.pid in worker.carrying("RAMP_JOB=marked", os.geteuid()), bool)
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
    for name in ("../run", "/etc/passwd", ".hidden", ""):
        assert "error" in ask("read", name=name, offset=0)


@pytest.mark.parametrize(
    "changed",
    [
        {"job_id": "../../x"},
        {"job_id": ".."},
        {"resource": "a/b"},
        {"inputs": [{"name": "../x", "data": "", "executable": False}]},
        {"inputs": [{"name": "x", "data": "!", "executable": False}]},
        {"environment": [["PATH=x; true", "y"]]},
    ],
)
def test_what_leads_elsewhere_is_refused(ask: Any, tmp_path: Path, changed: Any) -> None:
    assert "error" in ask("run", **changed)
    assert not list(tmp_path.rglob("stdout"))


def test_an_unknown_batch_system_is_refused(ask: Any) -> None:
    assert "unknown batch system 'local'" in ask("submit", executor="local")["error"]


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
