"""`.ci/run` goes on after a step that fails, tells every failure at its end, and is then no success."""

from __future__ import annotations

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

pytestmark = pytest.mark.skipif(
    not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("gcc") is None,
    reason="it would install what this computer lacks",
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script, and a `make` that does nothing but tell and fail."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("make", MAKE), ("prosody", "#!/bin/sh\n"), ("dpkg-query", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return tmp_path


def run(checkout: Path, failing: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The run, and how make was called."""
    said = checkout / "said"
    environment = {**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "RAMP_LOGS": "/nowhere"}
    environment |= {"SAID": str(said), "FAILING": failing}
    done = subprocess.run([checkout / ".ci" / "run"], capture_output=True, text=True, env=environment, check=False)
    return done, said.read_text().splitlines()


STEPS = {"install", "docs", "check", "test", "slow", "e2e", "swarm", "bench"}


def test_every_step_runs_and_has_its_time(checkout):
    done, calls = run(checkout, "")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {call.split()[1] for call in calls} == STEPS
    assert done.stdout.endswith("== all passed\n")
    for step in STEPS:
        assert f"{step} says something\n" in done.stdout
        assert f"== make {step}: passed after " in done.stdout
        assert f" s  make {step}\n" in done.stdout


def test_a_failure_hides_no_other(checkout):
    done, calls = run(checkout, "docs test bench")
    assert done.returncode == 1
    assert {call.split()[1] for call in calls} == STEPS
    failures = [line for line in done.stdout.splitlines() if line.startswith("== FAILED: ")]
    assert failures == ["== FAILED: make docs", "== FAILED: make test", "== FAILED: make bench"]
    assert "== make test: FAILED with status 3 after " in done.stdout
    assert "== make e2e: passed after " in done.stdout
