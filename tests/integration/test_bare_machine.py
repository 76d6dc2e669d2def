"""`.ci/bare`, `.ci/progress` and `.ci/run`: what they hide, and no failure among it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRESS = ROOT / ".ci" / "progress"

MAKEFILE = """
demo:
\t@echo "HOME is $$(ls -A $$HOME | wc -l) files, LANG is $$LANG, TZ is $$TZ, SECRET is $$SECRET"
test:
\t@python3 -m unittest -q test_something
"""
CALLS_SQUEUE = """
import subprocess, unittest

class Test(unittest.TestCase):
    def test_queue(self):
        subprocess.run(["squeue"], env={"PATH": "/usr/bin:/bin:/usr/local/bin"}, check=True)
"""
CALLS_MAKE = CALLS_SQUEUE.replace('"squeue"', '"make", "--version"')

# A machine with Slurm: a `squeue` in /usr/bin, for one namespace only.
WITH_SQUEUE = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work"
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$1/upper,workdir=$1/work" /usr
printf '#!/bin/sh\\nexit 0\\n' >/usr/bin/squeue
chmod +x /usr/bin/squeue
squeue
exec "$2"
"""


def may_make_namespaces() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a checkout with the script and two targets that take no time."""
    if shutil.which("git") is None or not may_make_namespaces():
        pytest.skip("git and the right to make a mount namespace are needed")
    checkout = tmp_path / "project"
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "bare", checkout / ".ci" / "bare")
    (checkout / "Makefile").write_text(MAKEFILE)
    return checkout


def run_bare(project: Path, test: str) -> subprocess.CompletedProcess[str]:
    (project / "test_something.py").write_text(test)
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "A project"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@localhost", *command], cwd=project, check=True)
    overlay = project.parent / "overlay"
    overlay.mkdir()
    command = ["unshare", "--mount", "sh", "-c", WITH_SQUEUE, "sh", str(overlay), str(project / ".ci" / "bare")]
    environment = {**os.environ, "SECRET": "kept out"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_a_unit_test_that_calls_squeue_fails_where_slurm_is_installed(project: Path) -> None:
    done = run_bare(project, CALLS_SQUEUE)
    assert "No such file or directory: 'squeue'" in done.stderr, done.stderr
    assert "== bare machine: make test: status 2" in done.stdout
    assert done.returncode != 0


def test_a_unit_test_that_needs_only_the_base_passes(project: Path) -> None:
    done = run_bare(project, CALLS_MAKE)
    assert done.returncode == 0, done.stderr
    assert "HOME is 0 files, LANG is C, TZ is Asia/Kolkata, SECRET is \n" in done.stdout


def test_progress_shows_all_output_of_a_command_that_fails() -> None:
    command = [sys.executable, PROGRESS, "Working", "sh", "-c", "echo one; echo two >&2; exit 3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "one\ntwo\n\nWorking: failed with status 3\n"


def test_progress_shows_no_output_of_a_command_that_succeeds() -> None:
    command = [sys.executable, PROGRESS, "Working", "sh", "-c", "echo one; echo two >&2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"Working: done in \d+ s\n", done.stdout)


MAKE = """#!/bin/sh
echo "make $*" >>"$SAID"
echo "$1 says something"
case " $FAILING " in *" $1 "*) exit 3;; esac
"""

BARE = """#!/bin/sh
echo "bare machine says something"
"""

ALL_INSTALLED = "#!/bin/sh\necho 'ii '\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a folder with the script, a `make` that only reports and fails, and a `dpkg-query` that finds everything."""
    for folder in (".ci", "bin"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    for name, text in ((".ci/bare", BARE), ("bin/make", MAKE), ("bin/dpkg-query", ALL_INSTALLED)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(checkout: Path, failing: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The run, and how make was called."""
    said = checkout / "said"
    environment = {**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "RAMP_LOGS": "/nowhere"}
    environment |= {"SAID": str(said), "FAILING": failing}
    done = subprocess.run([checkout / ".ci" / "run"], capture_output=True, text=True, env=environment, check=False)
    return done, said.read_text().splitlines()


STEPS = {"install", "docs", "check", "slow", "e2e", "swarm"}


def test_every_step_runs_and_has_its_time(checkout):
    done, calls = run(checkout, "")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {call.split()[1] for call in calls} == STEPS
    assert done.stdout.index("bare machine says something\n") < done.stdout.index("install says something\n")
    assert done.stdout.endswith("== all passed\n")
    for step in STEPS:
        assert f"{step} says something\n" in done.stdout
        assert f"== make {step}: passed after " in done.stdout
        assert f" s  make {step}\n" in done.stdout


def test_a_failure_hides_no_other(checkout):
    done, calls = run(checkout, "docs slow swarm")
    assert done.returncode == 1
    assert {call.split()[1] for call in calls} == STEPS
    failures = [line for line in done.stdout.splitlines() if line.startswith("== FAILED: ")]
    assert failures == ["== FAILED: make docs", "== FAILED: make slow", "== FAILED: make swarm"]
    assert "== make slow: FAILED with status 3 after " in done.stdout
    assert "== make e2e: passed after " in done.stdout
