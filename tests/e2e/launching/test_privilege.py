"""Jobs of a real account: what the one line of sudoers in docs/launching.md allows, and what a job cannot reach.

The programs that once got a slot for nothing by changing files in the job's folder run here
under their keeper as the agent starts it: as root, and as another account through `sudo`.
"""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ramp
from ramp.launching import worker
from ramp.launching.acting import becoming, system_python, worker_inside
from tests.e2e.waiting import LIMIT_S
from tests.unit.launching.keeping import KeptJob

pytestmark = pytest.mark.e2e

AGENT, BUYER, OTHER = "daemon", "games", "irc"  # not nobody, as whom other tests run jobs: these kill all they can
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
    return subprocess.run(words, input=text, capture_output=True, text=True, cwd="/", env=environment, timeout=LIMIT_S)


def question(program: Path, verb: str, account: str = BUYER) -> str:
    job: dict[str, Any] = {"job_id": "job-1", "resource": "res"}
    root = str(program.parent / "jobs" / account)
    return json.dumps({"version": 1, "verb": verb, "root": root, "job": job, "name": "x", "offset": 0})


@pytest.fixture(params=["root", "sudo"])
def job(request: pytest.FixtureRequest, installed: Path) -> Iterator[KeptJob]:
    """A job of the buyer's account, under a keeper of root or of the agents' account."""
    entry = pwd.getpwnam(BUYER)
    with tempfile.TemporaryDirectory(prefix="ramp-kept-", dir="/tmp") as folder:
        root = Path(folder)
        root.chmod(0o755)
        (root / "jobs").mkdir()
        shutil.chown(root / "jobs", entry.pw_uid, entry.pw_gid)
        if request.param == "root":
            python: tuple[str, ...] = (sys.executable,)
            worker_command = (*becoming(entry), *worker_inside(system_python()))
        else:
            shutil.chown(root, pwd.getpwnam(AGENT).pw_uid)
            for source in (ramp.__file__, *map(str, Path(worker.__file__).parent.glob("*.py"))):
                copy = root / "program" / Path(source).relative_to(Path(ramp.__file__).parents[1])
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
            python = ("runuser", "-u", AGENT, "--", "env", f"PYTHONPATH={root}/program", system_python())
            worker_command = ("sudo", "-n", "-u", BUYER, "--", str(installed))
        account = {"worker": worker_command, "uid": entry.pw_uid}
        kept = KeptJob(root, python=python, **account)
        yield kept
        if keeper := kept.keeper:
            os.kill(keeper, signal.SIGTERM)
            kept.ended()


def test_a_job_runs_as_its_buyer_who_cannot_reach_its_record(job: KeptJob) -> None:
    """It may not even read it, and can end neither its keeper nor a worker that is to end it."""
    attack = f"kill -9 $PPID; echo x > {job.record}.json; rm -rf {job.root}/records"
    job.start("sh", "-c", f"id -un; {attack}; kill -9 -1")
    seen = job.ended()
    assert seen["started_at"] is not None
    assert seen["cores"] == 4
    assert (job.folder / "stdout").read_text() == f"{BUYER}\n"
    assert job.folder.stat().st_uid == job.uid
    assert (job.root / "jobs" / "res").stat().st_mode & 0o077 == 0, "nobody else sees what a job leaves"


STOP_ALL = """
import os, signal
while True:
    try:
        os.kill(-1, signal.SIGSTOP)
    except OSError:
        pass
"""
"""Stops every other process of its account."""


def test_an_account_cannot_stop_a_job_from_starting_and_get_its_price_back(job: KeptJob) -> None:
    stopping = subprocess.Popen([*becoming(pwd.getpwnam(BUYER)), system_python(), "-c", STOP_ALL])
    try:
        job.start("true", last=50)
        assert job.running()["cores"] == 4
    finally:
        stopping.kill()
        stopping.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_an_account_cannot_hold_up_whoever_starts_its_worker() -> None:
    """Before: it stopped the process between becoming the account and running the worker, and the agent waited."""
    command = becoming(pwd.getpwnam(BUYER))
    stopping = subprocess.Popen([*command, system_python(), "-c", STOP_ALL])
    try:
        for _ in range(50):
            started = subprocess.Popen([*command, "true"])
            started.kill()
            started.wait()
    finally:
        stopping.kill()
        stopping.wait()


def test_an_account_that_sudo_refuses_is_the_sites_failure(job: KeptJob) -> None:
    if job.worker[0] != "sudo":
        pytest.skip("for the agents' account only")
    forbidden = ("sudo", "-n", "-u", OTHER, "--", job.worker[-1])
    job.start("true", worker=forbidden, late_when=(job.record_file, "sudo: "))
    seen = job.ended()
    assert (seen["state"], seen["started_at"]) == ("failed", None)
    assert seen["detail"].startswith("sudo: ")


def test_root_puts_a_job_into_a_control_group_of_its_own(job: KeptJob) -> None:
    where = job.root / "groups"
    where.mkdir()
    if job.worker[0] == "sudo" or subprocess.run(["mount", "-t", "cgroup2", "none", where], check=False).returncode:
        pytest.skip("needs control groups of version 2, and root")
    try:
        written = (job.folder / "work" / "group", "/")
        job.start("sh", "-c", "cat /proc/self/cgroup > group; exec sleep 900", late_when=written)
        assert job.ended()["detail"] == "its slot ended"
        assert (job.folder / "work" / "group").read_text().strip().endswith(f"/ramp-res:{job.name}")
        assert not list(where.glob(f"**/ramp-res:{job.name}")), "it is removed"
    finally:
        subprocess.run(["umount", where], check=True)


def test_nothing_else_is_allowed(installed: Path) -> None:
    asked = question(installed, "read")
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
    done = as_agent("sudo", "-n", "-u", BUYER, "--", installed, text=question(installed, "read", "trap"))
    assert "not a folder of the account's own" in json.loads(done.stdout)["error"]
