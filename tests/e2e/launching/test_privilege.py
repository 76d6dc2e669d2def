"""What the one line of sudoers in docs/launching.md lets the agents' account do, and what it does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ramp.launching import worker

pytestmark = pytest.mark.e2e

AGENT, BUYER, OTHER = "daemon", "nobody", "games"
"""Accounts that every Debian has, in the places of `ramp`, `alice1` and somebody whose jobs are not the market's."""

SUDOERS = Path("/etc/sudoers.d")


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """The worker as the page has it installed, and allowed."""
    if os.geteuid() != 0 or shutil.which("sudo") is None or not SUDOERS.is_dir():
        pytest.skip("needs root, and sudo")
    with tempfile.TemporaryDirectory(prefix="ramp-worker-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        program = Path(folder) / "ramp-job-worker"
        shutil.copy(worker.__file__, program)
        program.chmod(0o755)
        jobs = Path(folder) / "jobs"
        jobs.mkdir()
        jobs.chmod(0o1777)
        rule = SUDOERS / f"ramp-test-{os.getpid()}"
        try:
            rule.touch(mode=0o440)
            rule.write_text(f'Defaults!{program} env_reset\n{AGENT} ALL=({BUYER}) NOPASSWD: {program} ""\n')
            checked = subprocess.run(["visudo", "-c", "-q", "-f", rule], capture_output=True, text=True)
            assert checked.returncode == 0, checked.stderr
            yield program
        finally:
            rule.unlink(missing_ok=True)


def as_agent(*argv: object, text: str = "") -> subprocess.CompletedProcess[str]:
    words = ["runuser", "-u", AGENT, "--", *map(str, argv)]
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": "", "PYTHONPATH": "/nowhere"}
    return subprocess.run(words, input=text, capture_output=True, text=True, cwd="/", env=environment, timeout=60)


def question(program: Path, verb: str, account: str = BUYER) -> str:
    now = int(time.time())
    job: dict[str, Any] = {
        "job_id": "job-1", "resource": "res", "reservation_id": "R-1", "cores": 1, "begin_at": now * 1_000_000,
        "end_at": (now + 600) * 1_000_000, "arguments": ["id", "-un"], "inputs": [], "environment": [],
    }  # fmt: skip
    root = str(program.parent / "jobs" / account)
    return json.dumps({"version": 1, "verb": verb, "executor": "local", "root": root, "job": job})


def test_the_agents_account_has_jobs_run_as_their_buyer(installed: Path) -> None:
    def seen(verb: str) -> dict[str, Any]:
        done = as_agent("sudo", "-n", "-u", BUYER, "--", installed, text=question(installed, verb))
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)["seen"]
        return found

    state = seen("submit")["state"]
    end = time.monotonic() + 200
    while state != "done":
        assert time.monotonic() < end, state
        time.sleep(0.1)
        state = seen("look_up")["state"]
    folder = installed.parent / "jobs" / BUYER
    assert (folder / "res" / "job-1" / "stdout").read_text() == f"{BUYER}\n"
    assert folder.stat().st_mode & 0o077 == 0, "nobody else sees what a job leaves"


def test_nothing_else_is_allowed(installed: Path) -> None:
    asked = question(installed, "look_up")
    for argv in (
        ("-u", BUYER, "--", installed, "argument"),
        ("-u", OTHER, "--", installed),
        ("-u", "root", "--", installed),
        ("-u", BUYER, "--", "/bin/sh", "-c", "true"),
        ("-u", BUYER, "--", "/usr/bin/python3", installed),
        ("-u", BUYER, "--preserve-env=PYTHONPATH", "--", installed),
    ):
        done = as_agent("sudo", "-n", *argv, text=asked)
        assert done.returncode != 0, f"sudo {argv} is allowed: {done.stdout}"


def test_a_folder_that_another_account_has_made_there_is_not_used(installed: Path) -> None:
    trap = installed.parent / "jobs" / "trap"
    trap.mkdir()
    done = as_agent("sudo", "-n", "-u", BUYER, "--", installed, text=question(installed, "submit", "trap"))
    assert "not a folder of the account's own" in json.loads(done.stdout)["error"]
