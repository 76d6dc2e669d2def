"""A job in a queue that runs what its buyer orders: its script and the worker are real, the queue is not."""

import base64
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ramp.batch.commands import Completed
from ramp.batch.waiting.as_account import AccountRunner, runner_of
from ramp.errors import BatchSystemError
from ramp.launching.acting import Acting
from ramp.launching.queue_script import queue_script
from tests.unit.launching.keeping import WORKER, answer_to

LIMIT_S = 90.0
SECOND = 1_000_000
KEY, NUMBER = "offer-1", "17"


class Site:
    """A folder of jobs, and commands of a Slurm that has one job, number 17, in a file's state."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "jobs"
        self.commands = folder / "commands"
        self.commands.mkdir()
        self.state = folder / "state"
        self.state.write_text("RUNNING\n")
        self.command("squeue", f"cat {self.state}")

    def command(self, name: str, does: str) -> None:
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)

    def ask(self, verb: str, job_id: str = "job-1", does: str = "true", **more: Any) -> dict[str, Any]:
        now = int(time.time())
        job = {"job_id": job_id, "resource": "res@localhost", "reservation_id": NUMBER, "queue_key": KEY, "cores": 4}
        job |= {"begin_at": (now + more.pop("after", 0)) * SECOND, "end_at": (now + 600) * SECOND}
        job |= {"arguments": ["sh", "-c", does], "environment": [["RAMP_UNIT", "1"]]}
        asked = {"version": 1, "verb": verb, "executor": "slurm", "root": str(self.root), "job": job, **more}
        asked["variables"] = {"PATH": str(self.commands)}
        return answer_to(asked)

    def until(self, state: str, job_id: str = "job-1") -> dict[str, Any]:
        end = time.monotonic() + LIMIT_S
        while (found := self.ask("look_up", job_id)["seen"])["state"] != state:
            assert time.monotonic() < end, found
            time.sleep(0.3)  # each look is a process
        seen: dict[str, Any] = found
        return seen


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def started(site: Site) -> Iterator[subprocess.Popen[bytes]]:
    """The job in the queue, as the batch system starts it."""
    script = queue_script(str(site.root), KEY, 300)
    process = subprocess.Popen(["/bin/sh", "-c", script], env={**os.environ, "NSLOTS": "4"}, start_new_session=True)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_what_is_ordered_runs_in_it_once_is_cancelled_alone_and_ends_with_it(site: Site, started: Any) -> None:
    for job_id, does in (("job-1", "echo $RAMP_UNIT; exit 3"), ("job-2", "sleep 200 & wait"), ("job-3", "sleep 200")):
        assert site.ask("submit", job_id, does)["seen"]["native_id"] == NUMBER
    assert site.ask("submit", "job-4", after=500)["seen"]["state"] == "queued"
    seen = site.until("failed")
    assert (seen["exit_code"], seen["cores"], seen["native_id"]) == (3, 4, NUMBER)
    read = site.ask("read", name="stdout", offset=0)
    assert base64.b64decode(read["data"]) == b"1\n"
    assert site.ask("submit")["seen"]["exit_code"] == 3  # again runs nothing again
    site.until("running", "job-2")
    site.ask("cancel", "job-2")
    assert site.until("cancelled", "job-2")["exit_code"] == -signal.SIGTERM
    assert site.until("running", "job-3")["exit_code"] is None
    started.send_signal(signal.SIGTERM)  # as batch systems do before they kill
    assert started.wait(LIMIT_S) == 0
    site.state.write_text("TIMEOUT\n")
    assert site.until("failed", "job-3")["exit_code"] == -signal.SIGTERM
    assert site.until("failed", "job-4")["detail"] == "job 17 of the queue has ended"
    assert not (site.root / "res@localhost" / "job-4" / "started").exists()


@pytest.mark.slow
def test_of_what_the_queue_says_only_the_sure_is_believed(site: Site) -> None:
    assert site.ask("look_up")["seen"] is None  # nothing was ordered
    assert site.ask("submit")["seen"]["state"] == "queued"
    site.command("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    assert "Unable to contact" in site.ask("look_up")["error"]
    site.command("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert site.until("failed")["detail"] == "job 17 of the queue has ended"


def test_the_worker_runs_no_other_command_than_those_of_jobs(site: Site) -> None:
    site.command("sbatch", 'echo "$1 $(cat)"; echo oh >&2; exit 4')
    command = {"stdin": "script", "limit_s": 30}
    said = site.ask("command", argv=["sbatch", "--hold"], **command)
    assert (said["code"], said["stdout"], said["stderr"]) == (4, "--hold script\n", "oh\n")
    for argv in (["sh", "-c", "true"], ["srun", "true"], []):
        assert "no command by which jobs are submitted" in site.ask("command", argv=argv, **command)["error"]
    site.command("scancel", "exec sleep 60")
    assert site.ask("command", argv=["scancel", "1"], stdin="", limit_s=0.2)["timed_out"] == 0.2


class ThisAccount(Acting):
    """Acts as whoever runs the test."""

    def command(self, account: str) -> Any:
        return WORKER, ""


def test_a_command_as_somebody_else_says_what_it_says_or_why_not(site: Site) -> None:
    def run(name: str, limit: float = 30.0) -> Completed:
        acting = ThisAccount("", "")
        return AccountRunner(acting, "alice1", {"PATH": str(site.commands)})((name, "7"), "in", limit)

    site.command("sbatch", 'echo "$1 $(cat)"; exit 1')
    assert run("sbatch") == Completed(("sbatch", "7"), 1, "7 in\n", "")
    with pytest.raises(BatchSystemError, match="is no command by which"):
        run("id")
    site.command("scancel", "exec sleep 60")
    with pytest.raises(BatchSystemError):
        run("scancel", 0.2)
    with pytest.raises(BatchSystemError, match="no account 'nobody-here'"):
        AccountRunner(Acting("/worker", "/python"), "nobody-here", {})(("scancel", "7"))
    with pytest.raises(BatchSystemError, match="no way to act as account alice1"):
        runner_of(run, {}, {}, 1.0)("alice1")  # type: ignore[arg-type]
