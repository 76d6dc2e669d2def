"""The account that jobs run as, its folder, and a Python with PSI/J that it can run."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ramp.launching.acting import system_python

ROOT = Path(__file__).parents[3]
INSTALLED = Path(os.environ.get("RAMP_PSIJ", ROOT / ".venv-psij"))
ACCOUNT = "nobody"
"""Whose jobs are run: not the tests' own, and there on every computer."""


@pytest.fixture(scope="module")
def python() -> Iterator[Path]:
    """An interpreter that has what `make psij` has installed; that itself may lie in a folder that is not public."""
    packages = sorted(INSTALLED.glob("lib/python3*/site-packages"))
    if not packages or not (packages[0] / "psij").is_dir():
        pytest.skip("PSI/J is not installed (make psij)")
    if _runs(INSTALLED / "bin" / "python"):
        yield INSTALLED / "bin" / "python"
        return
    with tempfile.TemporaryDirectory(prefix="ramp-psij-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        environment = Path(folder) / "psij"
        made = subprocess.run([system_python(), "-m", "venv", "--without-pip", environment], capture_output=True)
        if made.returncode:
            pytest.skip(f"{system_python()} makes no environment: {made.stderr.decode()[-200:]}")
        target = next(environment.glob("lib/python3*/site-packages"))
        if target.parent.name != packages[0].parent.name:
            pytest.skip(f"PSI/J is installed for {packages[0].parent.name}, the system has {target.parent.name}")
        shutil.copytree(packages[0], target, dirs_exist_ok=True)
        made_here = environment / "bin" / "python"
        if not _runs(made_here):
            pytest.skip(f"{ACCOUNT} cannot run {made_here}")
        yield made_here


def _runs(python: Path) -> bool:
    """Whether the account can run an interpreter, and finds PSI/J by it."""
    try:
        done = subprocess.run([python, "-I", "-c", "import psij"], user=ACCOUNT, capture_output=True, cwd="/")
    except OSError:
        return False
    return done.returncode == 0


@contextmanager
def folder_of_the_account() -> Iterator[Path]:
    """A folder for job folders; pytest's own are nobody else's to see."""
    if os.geteuid() != 0:
        pytest.skip("jobs run as other accounts, which needs root")
    account = pwd.getpwnam(ACCOUNT)
    with tempfile.TemporaryDirectory(prefix="ramp-jobs-", dir="/tmp") as folder:
        os.chown(folder, account.pw_uid, account.pw_gid)
        yield Path(folder)
