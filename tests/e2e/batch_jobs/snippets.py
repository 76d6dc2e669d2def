"""Agreements whose snippets are tried against the real commands."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from ramp.cli.views.launch_snippets import snippet
from ramp.model.agreement import Agreement
from ramp.model.instant import MINUTE, SECOND
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from tests.e2e.batch_jobs.psij_environment import ACCOUNT


def snippet_for(style: str, reservation: str, cores: int) -> str:
    """The snippet for a slot of five minutes that begins now."""
    now = int(time.time()) * SECOND
    offer = Offer(
        offer_id="offer-1", request_id="request-1", unit=1, resource="site@localhost", cpu_hour_cost=30,
        start=now, end=now + 5 * MINUTE, cores=cores, load=0.0, valid_for=MINUTE,
    )  # fmt: skip
    agreement = Agreement(
        agreement_id="agreement-1", request_id="request-1", units_total=1, user="alice@localhost",
        resource="site@localhost", bank="bank@localhost", request=RequestUnit(1, 70, offer.end, TotalCores(cores)),
        offer=offer, reservation_id=reservation, cost=offer.cost, issued_at=now, order_id="order-1", valid_until=now,
    )  # fmt: skip
    return snippet(style, agreement, str)


def run_as_buyer(argv: list[str], folder: Path, variables: dict[str, str]) -> str:
    """Run what a buyer would, as the account, in a folder with `job.sh`; what it prints."""
    job = folder / "job.sh"
    job.write_text("#!/bin/sh\nexec sleep 60\n")
    job.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "USER": ACCOUNT, "TZ": "UTC", **variables}
    done = subprocess.run(argv, cwd=folder, env=environment, user=ACCOUNT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
