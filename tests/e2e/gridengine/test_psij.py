"""The PSI/J executor of examples/psij_gridengine runs jobs inside a real advance reservation."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from gridengine_cell import LIBRARY

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "examples" / "psij_gridengine"
USER = "nobody"

pytestmark = [pytest.mark.e2e, pytest.mark.full]


@pytest.fixture(scope="module")
def python():
    """A Python that has psij-python, whose pins are not ours, and the package; skips where it cannot be installed."""
    with tempfile.TemporaryDirectory(prefix="ramp-psij-") as folder:
        Path(folder).chmod(0o755)
        source = Path(folder) / "package"
        shutil.copytree(PACKAGE, source)
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
        python = Path(folder) / "venv" / "bin" / "python"
        installed = subprocess.run(
            [python, "-m", "pip", "install", "-q", source], capture_output=True, text=True, timeout=600, cwd=folder
        )
        if installed.returncode != 0:
            pytest.skip(f"psij-python cannot be installed: {installed.stderr.strip()[-200:]}")
        yield python


@pytest.fixture
def reservation(cluster):
    """The number of an advance reservation of eight slots that has begun and that the user may use."""
    cluster.configure("-Au", f"name psijusers\ntype ACL\nfshare 0\noticket 0\nentries {USER}\n")
    end = time.strftime("%Y%m%d%H%M.%S", time.gmtime(time.time() + 1800))
    granted = cluster("qrsub", "-e", end, "-pe", "mpi", "8", "-u", "@psijusers", "-N", "psij")
    number = granted.split()[3]
    yield number
    cluster("qrdel", number)


def _as_user(folder):
    """Grid Engine's commands as the user: the Python of these tests may lie where no other user can read it."""
    folder.mkdir()
    for name in ("qsub", "qstat", "qdel", "qacct"):
        command = folder / name
        command.write_text(f'#!/bin/sh\nexec runuser -u {USER} -- {LIBRARY / name} "$@"\n')
        command.chmod(0o755)
    return folder


@pytest.mark.timeout(900)
def test_jobs_end_as_they_did(cluster, python, reservation, tmp_path):
    commands = _as_user(tmp_path / "commands")
    with tempfile.TemporaryDirectory(prefix="ramp-psij-jobs-") as folder:
        work = Path(folder) / "work" / "gridengine"  # where the jobs leave their exit codes
        work.mkdir(parents=True)
        for each in (Path(folder), work):
            each.chmod(0o777)
        environment = {**os.environ, **cluster.environment, "PATH": f"{commands}:{os.environ['PATH']}"}
        program = Path(__file__).with_name("psij_jobs.py")
        done = subprocess.run(
            [python, program, reservation, folder],
            env=environment, capture_output=True, text=True, timeout=600, cwd=folder,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["ends"]["state"], found["ends"]["exit_code"]) == ("FAILED", 5)
    assert found["output"] == "2 two 'words'; $HOME\n2\n"  # slots, a variable as it was set, and two lines of nodes
    assert (found["fine"]["state"], found["fine"]["exit_code"]) == ("COMPLETED", 0)
    assert found["cancelled"]["state"] == "CANCELED"
    assert found["killed"]["state"] == "FAILED"  # past its h_rt, not completed
    assert "killed by Grid Engine" in found["killed"]["message"]
    assert "no suitable queues" in found["wide"]
