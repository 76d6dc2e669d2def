"""`ramp qstat`: a machine's snapshot as tables."""

import json

import pytest

from ramp.model.contents import DirectoryListing, MachineStatus
from ramp.model.instant import HOUR
from ramp.protocol.events import MachineAsked

JOB = {"job": 796, "cores": 16, "start": "2026-11-21T08:00:00.777423Z", "end": "2026-11-21T11:00:00.777423Z",
       "submitted": "2026-11-21T07:00:00.777423Z", "user": 15}  # fmt: skip
SNAPSHOT = {
    "resource": "ricc3",
    "source": "log",
    "time": "2026-11-21T09:00:00Z",
    "machine_time_s": 500000.0,
    "cores": 8192,
    "cores_busy": 8011,
    "load": 0.978,
    "running": [{**JOB, "job": number} for number in range(796, 816)],
    "queued": [],
    "running_total": 418,
    "queued_total": 1384,
    "reservations": [
        {"reservation_id": "ricc3-1", "key": "offer-1", "cores": 64, "start": "2026-11-21T10:00:00Z",
         "end": "2026-11-21T11:00:00Z", "firm": False, "held_until": "2026-11-21T09:02:00Z"},
    ],
    "projected_load": [{"time": "2026-11-21T09:00:00Z", "load": 1.0}, {"time": "2026-11-21T10:00:00Z", "load": 0.0}],
}  # fmt: skip


@pytest.fixture
def qstat(agent, monkeypatch, ramp):
    """Runs `ramp qstat ricc3` against a machine that answers with a snapshot."""

    def run(*options, **changes):
        listing = DirectoryListing("query-1", "resource-trader", ("ricc3@localhost",))
        status = MachineStatus("query-2", json.dumps({**SNAPSHOT, **changes}))
        fake, market = agent([listing], [status])
        monkeypatch.setattr("ramp.cli.verbs.machines.open_market", lambda state, user: market)
        return fake, ramp("qstat", "ricc3", *options).out

    return run


def test_tables_name_totals_and_what_was_cut(qstat):
    fake, text = qstat("--horizon", "2h")
    assert fake.heard[1] == MachineAsked("", "ricc3", 2 * HOUR)
    assert "ricc3 at 2026-11-21T09:00:00Z: 8011 of 8192 cores busy (97.8%); its queue replays a workload log" in text
    assert "projected load over 2 h: █▁ (mean 50.0%)" in text
    assert "Running: 418 jobs, end projected; the first 10 are shown (--all shows more)" in text
    assert "Queued: 1384 jobs, start and end projected; too many for one answer, none is listed" in text
    assert "held until 2026-11-21T09:02:00Z" in text
    assert "2026-11-21T11:00:00Z" in text
    assert " 805 " in f" {text}".replace("\n", "\n ")
    assert "806" not in text  # the eleventh


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "synthetic"}, "its queue is a synthetic workload (no log on this machine)"),
        ({"source": "live"}, "its queue is the machine's own"),
        ({"source": "synthetic", "map": {}}, "a live torus, whose own users submit synthetic jobs"),
        ({"source": "log", "map": {}}, "a live torus, whose own users submit the jobs of a workload log"),
    ],
)
def test_it_says_what_drives_the_queue(qstat, changes, words):
    assert qstat(**changes)[1].splitlines()[0].endswith(words)


def test_all_jobs_that_came_are_shown_when_asked_for(qstat):
    _, text = qstat("--all")
    assert "the first 20 are shown" in text
    assert "815" in text


def test_json_is_the_snapshot_itself(qstat):
    assert json.loads(qstat("--json")[1]) == SNAPSHOT
