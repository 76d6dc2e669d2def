"""A log as a live queue: the decisions where logs leave things open, with numbers worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from ramp.errors import WorkloadError
from ramp.model.instant import HOUR, SECOND
from simulation.workload import replay_source
from simulation.workload.logs import find_log
from simulation.workload.profile import CoreProfile, QueueProjection, ReservedWindow
from simulation.workload.replay import DEFAULT_REQUEST, ReplayLog
from simulation.workload.replay_source import open_replay
from simulation.workload.swf import SwfLog, read_swf, write_swf
from tests import queue_runs
from tests.queue_runs import ASKED, RUN, SIZE, SUBMIT


def log_of(*jobs: tuple[int, int, int, int, int]) -> SwfLog:
    """Jobs as (submit, wait, run, cores, requested time), numbered from 1."""
    return queue_runs.log_of((SUBMIT, "wait_time", RUN, SIZE, ASKED), *jobs)


def names_at(replay: ReplayLog, second: int) -> tuple[list[int], list[int]]:
    state = replay.state_at(second * SECOND)
    return replay.job_number[state.running].tolist(), replay.job_number[state.queued].tolist()


def test_time_counts_from_the_first_submission() -> None:
    replay = ReplayLog.build(log_of((31_656_837, 10, 100, 4, 200)), 8)
    assert names_at(replay, -1) == ([], [])
    assert names_at(replay, 0) == ([], [1])
    assert names_at(replay, 10) == ([1], [])
    assert names_at(replay, 109) == ([1], [])
    assert names_at(replay, 110) == ([], [])


def test_jobs_that_cannot_be_replayed_are_left_out_and_counted() -> None:
    replay = ReplayLog.build(log_of((0, 0, 10, 9, 10), (0, 0, 10, -1, 10), (5, 0, 10, 8, 10)), 8)
    assert replay.left_out == 2
    assert names_at(replay, 5) == ([3], [])
    with pytest.raises(WorkloadError, match="1 to 2 cores"):
        ReplayLog.build(log_of((0, 0, 10, 9, 10)), 2)


def test_an_unknown_wait_is_none_and_a_job_that_never_ran_only_waits() -> None:
    replay = ReplayLog.build(log_of((0, -1, 50, 2, 60), (0, 20, -1, 2, 60)), 8)
    assert names_at(replay, 0) == ([1], [2])
    assert names_at(replay, 20) == ([1], [])


def test_requested_times_that_are_not_stated_are_what_99_of_100_jobs_keep_within() -> None:
    jobs = [(0, 0, run, 1, 7) for run in range(1, 100)]
    replay = ReplayLog.build(log_of(*jobs, (0, 0, 5000, 1, -1), (0, 0, 9000, 1, 0), (0, 0, -1, 1, 0)), 8)
    # 101 jobs ran; the 100th shortest run is 5000 s.
    assert (replay.requested // SECOND).tolist() == [7] * 99 + [5000] * 3
    assert ReplayLog.build(log_of((0, 4, 0, 1, -1)), 8).requested.tolist() == [DEFAULT_REQUEST]


@pytest.mark.parametrize(
    ("now", "end"),
    [
        (99, 100),
        (100, 160),
        (159, 160),
        (160, 400),
        (400, 1000),
        (1000, 1900),
        (1900, 3700),
        (3700, 7300),
        (100 + 180_000, 100 + 360_000),
        (100 + 360_000, 100 + 720_000),
        (500_000, 860_000),
    ],
)
def test_projected_ends_come_from_requests_and_overruns_grow(now: int, end: int) -> None:
    replay = ReplayLog.build(log_of((0, 0, 10**6, 1, 100), (0, 0, 10**6, 1, 9 * 10**5)), 8)
    running = replay.state_at(now * SECOND).running
    assert replay.projected_ends(running, now * SECOND).tolist() == [end * SECOND, 9 * 10**5 * SECOND]


def plan(
    running: list[tuple[int, int]], queued: list[tuple[int, int]], reserved: list[ReservedWindow]
) -> QueueProjection:
    pairs = [np.array(pair, dtype=np.int64).reshape(-1, 2) for pair in (running, queued)]
    return QueueProjection(
        now=0,
        capacity=10,
        running=(pairs[0][:, 0], pairs[0][:, 1]),
        queued=(pairs[1][:, 0], pairs[1][:, 1]),
        reserved=reserved,
    )


def test_jobs_are_planned_around_reservations() -> None:
    made = plan([(6, 100)], [(4, 50), (8, 30)], [ReservedWindow(20, 60, 3), ReservedWindow(120, 140, 10)])
    made.profile()
    # 4 cores are free from 0, but from 20 on 3 of them are promised; 8 fit from 150 on (4 until 150).
    assert made.planned_starts == [60, 140]


def test_the_plan_goes_only_as_far_as_it_is_asked_for() -> None:
    made = plan([(10, 100)], [(10, 50)] * 5, [])
    assert made.profile(120).max_over(0, 120) == 10
    assert made.planned_starts == [100]
    assert made.profile().earliest_start(1, 1, 0) == 350


def profile() -> CoreProfile:
    starts, ends, cores = np.array([0, 10, 30]), np.array([20, 40, 50]), np.array([4, 3, 2])
    return CoreProfile.of_intervals(8, 0, starts, ends, cores)


def test_profile_by_hand() -> None:
    assert profile().times == [0, 10, 20, 30, 40, 50]
    assert profile().taken == [4, 7, 3, 5, 2, 0]
    assert profile().max_over(0, 10) == 4
    assert profile().max_over(0, 11) == 7
    assert profile().mean_over(5, 25) == pytest.approx((5 * 4 + 10 * 7 + 5 * 3) / 20)
    assert profile().mean_over(45, 55) == pytest.approx(1.0)
    assert profile().mean_over(60, 70) == 0


@pytest.mark.parametrize(
    ("cores", "duration", "earliest", "latest", "start"),
    [
        (4, 10, 0, 100, 0),
        (4, 11, 0, 100, 40),
        (5, 10, 0, 100, 20),
        (5, 10, 21, 100, 40),
        (5, 10, 21, 39, None),
        (8, 1, 0, 50, 50),
        (8, 10**9, 0, 49, None),
        (1, 1, 0, 0, 0),
        (1, 1, 5, 4, None),
    ],
)
def test_earliest_start_by_hand(cores: int, duration: int, earliest: int, latest: int, start: int | None) -> None:
    assert profile().earliest_start(cores, duration, earliest, latest) == start


def test_claims_on_the_same_core_take_it_once() -> None:
    both = np.array([0, 0]), np.array([10, 20]), np.array([6, 6])
    assert CoreProfile.of_intervals(8, 0, *both).taken == [8, 6, 0]


def test_windows_before_the_profile_are_refused() -> None:
    with pytest.raises(ValueError, match="before the profile's begin"):
        profile().max_over(-1, 5)


def test_a_file_is_indexed_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "a.swf"
    write_swf(path, log_of((0, 5, 10, 4, 20), (3, 0, 9, 9, 9)))
    first = open_replay(str(path), 8)
    assert (first.source, first.path, first.replay.left_out) == ("log", path, 1)
    (cached,) = (tmp_path / "cache" / "ramp" / "replay").iterdir()
    monkeypatch.setattr(replay_source, "read_swf", lambda _: pytest.fail("the log was read again"))
    replay_source._replay_of_file.cache_clear()
    again = open_replay(str(path), 8)
    assert names_at(again.replay, 4) == names_at(first.replay, 4) == ([], [1])
    assert names_at(again.replay, 5) == ([1], [])
    assert again.replay.left_out == 1
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cached.write_bytes(b"broken")
    replay_source._replay_of_file.cache_clear()
    assert names_at(open_replay(str(path), 8).replay, 5) == ([1], [])
    write_swf(path, log_of((0, 0, 10, 4, 20)))
    assert names_at(open_replay(str(path), 8).replay, 0) == ([1], [])


def test_where_a_log_is_missing_a_synthetic_one_of_its_length_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("RAMP_LOGS", str(tmp_path))
    opened = open_replay("LLNL-Thunder-2007-1.1-cln", 64, seed=4)
    assert (opened.source, opened.path) == ("synthetic", None)
    assert opened.replay.submitted[-1] == pytest.approx(5 * 30 * 24 * HOUR, rel=0.05)
    assert open_replay("LLNL-Thunder-2007-1.1-cln", 64, seed=4).replay is opened.replay
    other = open_replay("RICC-2010-2", 64, seed=4).replay
    assert not np.array_equal(other.submitted[:50], opened.replay.submitted[:50])
    with pytest.raises(WorkloadError, match=r"no copy of the log 'Nowhere'.*CEA-Curie"):
        open_replay("Nowhere", 64)


@pytest.mark.slow
@pytest.mark.logs
@pytest.mark.parametrize(
    ("name", "cores"),
    [("CEA-Curie-2011-2.1-cln", 93312), ("RICC-2010-2", 8192), ("LLNL-Thunder-2007-1.1-cln", 4008)],
)
def test_real_logs_against_a_scan(name: str, cores: int) -> None:
    path = find_log(name)
    if path is None:
        pytest.skip(f"{name} is in none of the folders of RAMP_LOGS")
    log = read_swf(path)
    replay = ReplayLog.build(log, cores)
    stated = log.submit_time >= 0
    submit = log.submit_time - log.submit_time[stated].min()
    start = submit + np.maximum(log.wait_time, 0)
    end = start + np.maximum(log.run_time, 0)
    usable = stated & (log.processors > 0) & (log.processors <= cores)
    for now in np.random.default_rng(6).integers(0, submit.max(), 40).tolist():
        running = np.flatnonzero(usable & (start <= now) & (now < end))
        queued = np.flatnonzero(usable & (submit <= now) & (now < start))
        state = replay.state_at(now * SECOND)
        taken = int(replay.cores[state.running].sum())
        assert taken <= cores
        assert sorted(replay.job_number[np.concatenate((state.running, state.queued))].tolist()) == sorted(
            log.job_number[np.concatenate((running, queued))].tolist()
        )
        if log.processors[running].sum() <= cores:
            assert sorted(replay.job_number[state.running].tolist()) == sorted(log.job_number[running].tolist())
        else:
            left = np.setdiff1d(state.queued, replay.queued_index.holding(now * SECOND))
            assert int(replay.cores[left].min()) > cores - taken
        plan = QueueProjection(
            now=now * SECOND,
            capacity=cores,
            running=(replay.cores[state.running], replay.projected_ends(state.running, now * SECOND)),
            queued=(replay.cores[state.queued], replay.requested[state.queued]),
        )
        assert max(plan.profile().taken) <= cores
        assert plan.profile().taken[-1] == 0
