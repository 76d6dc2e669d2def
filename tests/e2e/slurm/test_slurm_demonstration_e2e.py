"""`ramp demo-slurm` on a real Slurm: two purchases, and a job on a bought slot."""

import contextlib
import json
import subprocess
import sys

import pytest

from ramp.batch.slurm.emulated import PACKAGES, missing_programs
from tests.e2e.batch_jobs.psij_environment import public_python

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(bool(missing_programs()), reason=f"Slurm is not installed ({PACKAGES})"),
]


@pytest.mark.parametrize("by", ["ramp launch", pytest.param("sbatch", marks=pytest.mark.full)])
def test_the_demonstration(by: str) -> None:
    command = [sys.executable, "-m", "ramp.cli.main", "demo-slurm", "--json"]
    with contextlib.ExitStack() as stack:
        if by == "ramp launch":
            command += ["--psij-python", str(stack.enter_context(public_python()))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["launched_by"] == by
    assert [len(units) for units in shown["bought"].values()] == [1, 1]
    assert len(shown["output"].splitlines()) == 4
