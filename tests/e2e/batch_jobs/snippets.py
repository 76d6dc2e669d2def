"""Agreements whose snippets are tried against the real commands."""

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from ramp.cli.views.launch_snippets import snippet
from ramp.model.instant import MINUTE, SECOND
from ramp.model.request import RequestUnit, TotalCores
from tests.e2e.batch_jobs.psij_environment import ACCOUNT
from tests.unit.conftest import agreement, offer


def snippet_for(style: str, reservation: str, cores: int) -> str:
    """The snippet for a slot of five minutes that begins now."""
    now = int(time.time()) * SECOND
    bought = replace(offer("site", cores=cores), start=now, end=now + 5 * MINUTE, source="")
    return snippet(style, agreement(bought, RequestUnit(1, 70, bought.end, TotalCores(cores)), reservation), str)


def run_as_buyer(argv: list[str], folder: Path, variables: dict[str, str]) -> str:
    """Run what a buyer would, as the account, in a folder with `job.sh`; what it prints."""
    job = folder / "job.sh"
    job.write_text("#!/bin/sh\nexec sleep 60\n")
    job.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "USER": ACCOUNT, "TZ": "UTC", **variables}
    done = subprocess.run(argv, cwd=folder, env=environment, user=ACCOUNT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
