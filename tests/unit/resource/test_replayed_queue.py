"""A workload log as a queue: its jobs run as EASY runs them, the market's among them, and a restart changes nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulation
from ramp.batch.waiting.job_queue import Standing, WantedJob
from ramp.batch.waiting.plugin import open_plugin
from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR, MINUTE, SECOND, from_iso
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation
from ramp.plugins.interface import PluginSettings
from simulation.resource.waiting.replayed_queue import FIRST_NUMBER, ReplayedQueue, open_queue
from simulation.workload.swf import write_swf
from tests import queue_runs
from tests.queue_runs import ASKED, RUN, SIZE, SUBMIT
from tests.slots import quoted, refused

pytestmark = pytest.mark.loops

NOW = from_iso("2026-11-21T08:00:00Z")
CORES = 10


def log_of(folder: Path, *jobs: tuple[int, int, int, int]) -> Path:
    """A log of user 7's jobs: submitted (s), run time (s), processors, requested time (s)."""
    path = folder / "small.swf"
    write_swf(path, queue_runs.log_of((SUBMIT, RUN, SIZE, ASKED, "user_id"), *((*job, 7) for job in jobs)))
    return path


def opened(log: Path | str, folder: Path | None = None, **more: Any) -> ReplayedQueue:
    return open_queue(PluginSettings("queue1", CORES, 1, NOW, {"log": str(log), **more}, folder, seed=3))


def running(queue: ReplayedQueue, seconds: float) -> list[str]:
    return [job.job_id for job in queue.look(NOW + int(seconds * SECOND)).running]


BUSY = ((0, 600, 6, 900), (10, 600, 6, 600), (20, 300, 4, 300))
"""The second waits for the first, the third is backfilled beside it."""

OURS = str(FIRST_NUMBER)


def wanted(cores: int = 4, length_s: int = 300, not_before: int | None = None) -> WantedJob:
    return WantedJob("ramp_queue1.offer-1", TotalCores(cores), length_s * SECOND, not_before, "#!/bin/sh\n")


def test_the_logs_jobs_run_as_easy_runs_them(tmp_path: Path) -> None:
    """Started and ended as `simulation.simulate` says, which other tests compare with other programs."""
    random = np.random.default_rng(1)
    submits = np.sort(random.integers(0, 20_000, 120))
    rows = [(int(at), int(random.integers(1, 900)), int(random.integers(1, 9))) for at in submits]
    log = log_of(tmp_path, *((at, run, size, run * 2) for at, run, size in rows))
    result = simulation.simulate(log, machine=f"flat:{CORES}", scheduler="easy")
    schedule = result.result.schedule
    queue = opened(log)
    first = int(submits[0]) * SECOND
    for at in range(0, 30_000, 97):
        instant = at * SECOND + first
        lives = (schedule.start_time <= instant) & (instant < schedule.end_time)
        assert sorted(map(int, running(queue, at))) == (np.flatnonzero(lives) + 1).tolist(), at


def test_what_is_let_go_waits_its_turn(tmp_path: Path) -> None:
    queue = opened(log_of(tmp_path, *BUSY))
    assert running(queue, 30) == ["1", "3"]
    picture = queue.look(NOW + 30 * SECOND)
    assert [(job.job_id, job.user, job.cores, job.time_limit) for job in picture.waiting] == [
        ("2", "7", 6, 600 * SECOND)
    ]
    assert next((job.start, job.end, job.submitted) for job in picture.running) == (NOW, NOW + 900 * SECOND, NOW)
    queue.submit(wanted())
    (held,) = queue.find("ramp_queue1.offer-1")
    assert (held.job_id, held.standing) == (OURS, Standing.HELD)
    queue.let_go(OURS)
    assert queue.find("ramp_queue1.offer-1")[0].standing is Standing.WAITING
    # at 320 s four processors are free, which ours keeps for 300 s; the second starts at 600 s all the same
    assert running(queue, 330) == ["1", OURS]
    (begun,) = queue.find("ramp_queue1.offer-1")
    assert (begun.standing, begun.started_at, begun.ended) == (Standing.STARTED, NOW + 320 * SECOND, False)
    assert running(queue, 610) == [OURS, "2"]
    assert running(queue, 621) == ["2"]
    assert queue.find("ramp_queue1.offer-1")[0].ended


def test_who_is_deleted_lets_others_start(tmp_path: Path) -> None:
    queue = opened(log_of(tmp_path, (0, 100, 7, 100), (30, 100, 2, 400)))
    running(queue, 10)
    queue.submit(wanted(cores=9, length_s=50))
    queue.let_go(OURS)
    assert running(queue, 40) == ["1"]  # the second would delay ours, which is first
    queue.delete(OURS)
    assert running(queue, 40) == ["1", "2"]
    assert queue.find("ramp_queue1.offer-1")[0].standing is Standing.GONE
    queue.submit(wanted(cores=1))
    later = str(FIRST_NUMBER + 1)
    queue.let_go(later)
    assert later in running(queue, 50)
    queue.delete(later)
    assert later not in running(queue, 50)
    assert queue.find("ramp_queue1.offer-1")[-1].standing is Standing.STARTED  # it has run, and has ended


def test_what_begins_later_joins_later_and_a_held_one_may_be_deleted(tmp_path: Path) -> None:
    queue = opened(log_of(tmp_path, (0, 10, 1, 10)))
    running(queue, 20)
    queue.submit(wanted(not_before=NOW + 100 * SECOND))
    queue.let_go(OURS)
    assert running(queue, 99) == []
    assert running(queue, 100) == [OURS]
    queue.submit(wanted())
    queue.delete(str(FIRST_NUMBER + 1))
    queue.let_go(str(FIRST_NUMBER + 1))
    assert running(queue, 110) == [OURS]


def test_a_restart_lives_through_the_same(tmp_path: Path) -> None:
    log = log_of(tmp_path, *BUSY, (700, 100, 10, 100))
    queue = opened(log, tmp_path / "state")
    running(queue, 30)
    queue.submit(wanted(cores=4))
    queue.let_go(OURS)
    running(queue, 330)
    queue.submit(wanted(cores=2))
    queue.let_go(str(FIRST_NUMBER + 1))
    queue.look(NOW + 340 * SECOND)
    queue.delete(str(FIRST_NUMBER + 1))
    again = opened(log, tmp_path / "state")
    for at in (350, 610, 700, 1300, 1310):
        now = NOW + at * SECOND
        assert again.look(now) == queue.look(now)
        assert again.find("ramp_queue1.offer-1") == queue.find("ramp_queue1.offer-1")
    (tmp_path / "state" / "queue1.jobs.json").write_text('[{"number": 1}]')
    with pytest.raises(ConfigurationError, match="invalid file of queued jobs"):
        opened(log, tmp_path / "state")


def test_a_faster_clock_shows_and_takes_times_of_the_wall(tmp_path: Path) -> None:
    queue = opened(log_of(tmp_path, *BUSY), base_time_s=30, speed=10)
    picture = queue.look(NOW)
    assert [job.job_id for job in picture.running] == ["1", "3"]
    assert picture.waiting[0].time_limit == 60 * SECOND
    assert picture.running[0].end == NOW + 87 * SECOND
    queue.submit(wanted(cores=4, length_s=30))
    queue.let_go(OURS)
    assert running(queue, 29.1) == ["1", OURS]
    assert OURS not in running(queue, 59.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"log": "no-such-log"}, "no copy of the log"), ({"log": "x", "base_time_s": -1}, "base_time_s"), ({}, "log")],
)
def test_options_that_are_wrong_are_named(options: dict[str, Any], words: str) -> None:
    settings = PluginSettings("queue1", CORES, 1, NOW, {"system": "log", "queue": options})
    with pytest.raises(ConfigurationError, match=words):
        open_plugin(settings)


def test_starts_on_it_are_sold_and_its_source_is_told(tmp_path: Path) -> None:
    """Idle for ten minutes, a job starts at once; while it is full, too little is known to sell a wait."""
    log = log_of(tmp_path, (600, 3_000, 10, 3_000), (7_200, 10, 1, 10))
    options = {"system": "log", "queue": {"log": str(log)}, "snapshot_age_s": 0.0}
    machine = open_plugin(PluginSettings("queue1", CORES, 1, NOW, options, tmp_path / "state"))
    assert machine.source == "log"
    now = NOW  # the log begins with its first submission
    unit = RequestUnit(1, 70, now + 3 * HOUR, TotalCores(4), wall_time=10 * MINUTE, start_probability=0.9)
    refused(machine, unit, now + SECOND)
    free = now + 3_001 * SECOND
    slot = quoted(machine, unit, free)
    assert slot.start_probability == 1.0
    held = machine.hold("offer-1", unit, slot, free + MINUTE, free)
    assert isinstance(held, Reservation)
    machine.confirm("offer-1", free)
    found = machine.reservation("offer-1", free + SECOND)
    assert found.started_at == free
    synthetic = {"system": "log", "queue": {"log": "synthetic", "load": 0.5}}
    assert open_plugin(PluginSettings("queue1", CORES, 1, NOW, synthetic)).source == "synthetic"
