"""The keeper of a job on this computer: what it records lies outside the job's reach, and it ends all that was started.

The jobs here have the account of their keeper; `tests/e2e/launching` tries the same with another one.
"""

import hashlib
import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from ramp.client.jobs import archive_of
from ramp.launching import keeper
from ramp.launching.keeper import Keeper, KeeperTask
from ramp.launching.processes import ControlGroup
from ramp.launching.worker import ARCHIVE
from tests.unit.launching.keeping import PYTHON, KeptJob
from tests.waiting import is_alive, until

ESCAPE = textwrap.dedent("""
    import os, pathlib, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            pathlib.Path("escaped.new").write_text(str(os.getpid()))
            os.rename("escaped.new", "escaped")
            os.execve("/bin/sleep", ["sleep", "900"], {})
        os._exit(0)
    while not pathlib.Path("escaped").exists():
        time.sleep(0.01)
""")
"""Leaves a process in a session of its own, without the job's environment and without a living parent."""


@pytest.fixture
def job(tmp_path: Path) -> KeptJob:
    return KeptJob(tmp_path)


def escaped(job: KeptJob) -> int:
    return int(until(lambda: (job.folder / "work" / "escaped").exists()) and (job.folder / "work/escaped").read_text())


def test_a_job_runs_once_with_its_files_and_a_clean_environment(job: KeptJob) -> None:
    data = job.root / "data"
    data.write_text("staged")
    inputs = archive_of({"data": data})
    job.folder.mkdir(parents=True)
    (job.folder / ARCHIVE).write_bytes(inputs)
    script = 'cat data; echo "$1 $RAMP_UNIT"; echo oh >&2; env > env; exit 7'
    job.start("sh", "-c", script, "x", "it's", archive=hashlib.sha256(inputs).hexdigest())
    seen = job.ended()
    assert (seen["state"], seen["exit_code"], seen["cores"]) == ("failed", 7, 4)
    assert abs(seen["started_at"] / 1e6 - time.time()) < 300
    assert seen["ended_at"] >= seen["started_at"]
    assert (job.folder / "stdout").read_text() == "stagedit's 2\n"
    assert (job.folder / "stderr").read_text() == "oh\n"
    names = {line.partition("=")[0] for line in (job.folder / "work" / "env").read_text().splitlines()}
    own = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "PWD", "_", "SHLVL", "OLDPWD"}
    assert names - own == {"RAMP_JOB", "RAMP_UNIT"}
    job.start("sh", "-c", "echo again > again")
    assert job.ended() == seen
    assert not (job.folder / "work" / "again").exists()


def test_a_job_that_hides_everything_in_its_folder_was_delivered(job: KeptJob) -> None:
    """Before: `mv ../began ../.hidden`, work to the end, and get the whole price back."""
    job.start("sh", "-c", "mkdir ../.hidden; mv ../[a-z]* ../.hidden; echo worked > ../worked")
    seen = job.ended()
    assert (seen["state"], seen["exit_code"], seen["cores"], seen["detail"]) == ("done", 0, 4, "")
    assert seen["started_at"] is not None
    assert (job.folder / ".hidden" / "worked").exists()


def test_a_job_cannot_lower_its_cores_and_leaves_no_process_behind(job: KeptJob) -> None:
    """Before: `echo 1 > ../cores` and a `setsid` child that went on in the slot that was paid back."""
    job.start("sh", "-c", f"echo 1 > ../cores; exec {sys.executable} -c '{ESCAPE}'")
    seen = job.ended()
    assert (seen["state"], seen["cores"]) == ("done", 4)
    assert not is_alive(escaped(job))


@pytest.mark.parametrize("name", ["native", "began", "ended", "cores", "run", "stdout", "cancelled", "keeper"])
def test_a_pipe_in_the_folder_makes_no_look_at_the_job_wait(job: KeptJob, name: str) -> None:
    """Before: `mkfifo ../native`, and every look at the job took 20 s."""
    job.start("sh", "-c", f"rm -f ../{name}; mkfifo ../{name}; touch made; sleep 900")
    until(lambda: (job.folder / "work" / "made").exists())
    assert (job.seen["state"], job.seen["cores"]) == ("running", 4)
    os.kill(job.keeper, signal.SIGTERM)
    assert job.ended()["state"] == "cancelled"


@pytest.mark.parametrize("attack", ["kill -STOP $$", "sh -c 'kill -STOP $PPID' & sleep 900", "kill -KILL $$"])
def test_an_account_that_stops_its_worker_has_had_its_start(job: KeptJob, attack: str) -> None:
    """Before: whoever stopped the worker of a job for 20 s at a time got the slot for nothing."""
    job.start("true", worker=("sh", "-c", attack), last=4)
    seen = job.ended()
    assert (seen["state"], seen["started_at"] is not None, seen["cores"]) == ("failed", True, 4)


def test_a_slots_end_ends_everything_of_its_job(job: KeptJob) -> None:
    stubborn = f"trap '' TERM; {sys.executable} -c '{ESCAPE}'; touch ready; while :; do sleep 0.05; done"
    job.start("sh", "-c", stubborn, late_when=(job.folder / "work" / "ready", ""))
    seen = job.ended()
    assert (seen["state"], seen["exit_code"], seen["detail"]) == ("failed", -9, "its slot ended")
    assert not is_alive(escaped(job))


def test_the_control_groups_of_two_jobs_have_different_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A buyer names its jobs: one on `big` must not end the job of another on `big-one` by its name."""
    names: list[str] = []
    monkeypatch.setattr(ControlGroup, "made", lambda name: names.append(name))
    monkeypatch.setattr(Keeper, "_lived", lambda _: None)
    monkeypatch.setattr(keeper.processes, "ask_kernel", lambda *_: None)
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda *_, **__: -1)
    usual = signal.getsignal(signal.SIGCHLD)
    for resource, name in (("big", "one-job"), ("big-one", "job")):
        Keeper(KeeperTask(str(tmp_path / resource / name), [], {}, 0, {}, 0, 0, 0)).keep()
    signal.signal(signal.SIGCHLD, usual)
    assert len(set(names)) == 2


def test_a_job_that_waits_for_its_slot_is_cancelled_without_having_run(job: KeptJob) -> None:
    job.start("touch", "ran", begin=600)
    assert job.seen["state"] == "queued"
    os.kill(job.keeper, signal.SIGTERM)
    seen = job.ended()
    assert (seen["state"], seen["started_at"]) == ("cancelled", None)
    assert not job.folder.exists()


def test_a_keeper_that_is_killed_leaves_a_started_job_to_the_next_which_ends_it(job: KeptJob) -> None:
    job.start("sh", "-c", "echo $$ > pid.new; mv pid.new pid; sleep 900")
    started = job.running()["started_at"]
    until(lambda: (job.folder / "work" / "pid").exists())
    pid = int((job.folder / "work" / "pid").read_text())
    os.kill(job.keeper, signal.SIGKILL)
    until(lambda: job.keeper == 0)
    assert is_alive(pid)
    job.start("touch", "again")
    seen = job.ended()
    assert (seen["state"], seen["started_at"], seen["detail"]) == ("failed", started, "its keeper was killed")
    assert not is_alive(pid)
    assert not (job.folder / "work" / "again").exists()


def test_a_keeper_that_is_killed_before_the_start_is_followed_by_another(job: KeptJob) -> None:
    job.start("touch", "ran", begin=600)
    os.kill(job.keeper, signal.SIGKILL)
    until(lambda: job.keeper == 0)
    job.start("touch", "ran")
    assert job.ended()["state"] == "done"
    assert (job.folder / "work" / "ran").exists()


def test_two_keepers_of_one_job_are_one(job: KeptJob) -> None:
    job.start("sh", "-c", "echo run >> runs; until [ -e go ]; do sleep 0.02; done")
    first = job.keeper
    job.start("sh", "-c", "echo run >> runs")
    assert job.keeper == first
    until((job.folder / "work" / "runs").exists)
    (job.folder / "work" / "go").touch()
    job.ended()
    assert (job.folder / "work" / "runs").read_text() == "run\n"


# -- starts that fail ------------------------------------------------------------------------------------------------


def test_a_job_that_the_site_cannot_start_in_time_never_starts(job: KeptJob) -> None:
    worker = ("/bin/sh", "-c", "echo first >&2; echo sudo: a password is required >&2; exit 1")
    job.start("true", late_when=(job.record_file, "sudo: "), worker=worker)
    seen = job.ended()
    assert (seen["state"], seen["started_at"]) == ("failed", None)
    assert seen["detail"] == "sudo: a password is required"


@pytest.mark.parametrize("worker", [("/nowhere/sudo",), ("/bin/true",)])
def test_a_worker_that_does_not_start_is_no_start(job: KeptJob, worker: tuple[str, ...]) -> None:
    job.start("true", late_when=(job.record_file, worker[0]), worker=worker)
    assert (job.ended()["state"], job.seen["started_at"]) == ("failed", None)
    assert worker[0] in job.seen["detail"]


def test_a_worker_that_its_own_account_stops_does_not_stop_its_keeper(job: KeptJob) -> None:
    job.start("true", "A" * 300_000, worker=("/bin/sh", "-c", "echo; kill -STOP $$"), last=1)
    assert (job.ended()["state"], job.seen["detail"]) == ("failed", "its slot ended")


@pytest.mark.parametrize("broken", ["root", "work"])
def test_what_its_account_has_broken_is_no_failure_of_the_site(job: KeptJob, broken: str) -> None:
    """A folder of its own that the worker cannot use."""
    (job.root / "jobs" / "res").mkdir(parents=True)
    if broken == "root":
        (job.root / "jobs" / "res" / job.name).symlink_to(job.root)
    else:
        job.folder.mkdir()
        (job.folder / "work").write_text("no folder")
    job.start("true")
    seen = job.ended()
    assert (seen["state"], seen["started_at"] is not None) == ("failed", True)
    assert seen["detail"]


def test_a_job_whose_record_cannot_be_written_does_not_run(job: KeptJob) -> None:
    (job.root / "records").write_text("no folder")
    with pytest.raises(AssertionError, match="records"):
        job.start("touch", "ran")
    assert not job.folder.exists()


def test_a_command_is_what_it_was_ordered_to_be(job: KeptJob) -> None:
    job.start("printf", "%s", "a b", worker=PYTHON)
    job.ended()
    assert (job.folder / "stdout").read_text() == "a b"
