"""`ramp demo-slurm` on a real Slurm: two purchases, and a job on a bought slot."""

import json
import subprocess
import sys

import pytest

from simulation.emulated_slurm import PACKAGES, missing_programs

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(bool(missing_programs()), reason=f"Slurm is not installed ({PACKAGES})"),
]


def test_the_demonstration() -> None:
    command = [sys.executable, "-m", "ramp.cli.main", "demo-slurm", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert [len(units) for units in shown["bought"].values()] == [1, 1]
    assert len(shown["output"].splitlines()) == 4
