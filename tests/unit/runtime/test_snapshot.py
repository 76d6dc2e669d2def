"""Snapshots always fit into a message, and say what they left out."""

import json
from typing import Any

import pytest

from ramp.runtime.guests.questions import SNAPSHOT_BYTES_MAX, snapshot_text


def _job(number: int) -> dict[str, Any]:
    return {"job": number, "cores": 64, "start": "2026-11-21T08:00:00Z", "end": "2026-11-21T09:00:00Z", "user": 7}


@pytest.mark.parametrize(("running", "queued"), [(0, 0), (3, 2), (130, 5_000), (4_000, 0), (3_000, 3_000)])
def test_it_fits_and_counts(running: int, queued: int) -> None:
    whole = {
        "resource": "ricc4",
        "running": [_job(number) for number in range(running)],
        "queued": [_job(number) for number in range(queued)],
    }
    text = snapshot_text(whole)
    found = json.loads(text)
    assert len(text.encode()) <= SNAPSHOT_BYTES_MAX
    assert (found["running_total"], found["queued_total"]) == (running, queued)
    assert found["running"] == whole["running"][: len(found["running"])]
    assert found["queued"] == whole["queued"][: len(found["queued"])]
    if running + queued < 10:
        assert (len(found["running"]), len(found["queued"])) == (running, queued)


def test_running_jobs_are_cut_last() -> None:
    whole = {"running": [_job(1)] * 200, "queued": [_job(2)] * 5_000}
    found = json.loads(snapshot_text(whole))
    assert len(found["running"]) == 200
    assert 0 < len(found["queued"]) < 5_000
