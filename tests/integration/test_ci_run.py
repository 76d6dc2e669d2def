"""`.ci/run` goes on after a step that fails, tells every failure at its end, and is then no success."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

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
