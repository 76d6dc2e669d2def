"""Replay, plan and quotes against a second-by-second reference that is written from the definitions alone."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ramp.model.instant import SECOND, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from simulation.resource.fake_qstat import FakeQstat
from simulation.workload.replay import IntervalIndex
from simulation.workload.swf import write_swf
from tests.queue_runs import ASKED, RUN, SIZE, SUBMIT, log_of

CAPACITY = 8
STARTED = from_iso("2026-11-21T08:00:00Z")
FAR_S = 1200
"""More seconds than all generated jobs together can ask for."""
FILES = count()


@dataclass(frozen=True)
class Job:
    submit: int
    wait: int
    run: int
    cores: int
    request: int


@dataclass(frozen=True)
class Window:
    start: int
    end: int
    cores: int


JOBS = st.lists(
    st.builds(
        Job,
        submit=st.integers(0, 60),
        wait=st.integers(-1, 40),
        run=st.integers(-1, 50),
        cores=st.integers(-1, CAPACITY + 1),
        request=st.sampled_from([-1, 0, 1, 5, 20, 40]),
    ),
    min_size=4,
    max_size=16,
)
LOGS = JOBS.filter(lambda jobs: any(1 <= job.cores <= CAPACITY and job.run > 0 for job in jobs))
ASKS = st.tuples(
    st.integers(0, 90), st.integers(1, CAPACITY + 1), st.integers(0, 40), st.integers(1, 40), st.integers(-5, 60)
)


def reference_taken(jobs: list[Job], reserved: list[Window], now: int) -> list[int]:
    """Cores taken in each second from `now` on, by the definitions in simulation/workload/replay.py."""
    replayed = [job for job in jobs if 1 <= job.cores <= CAPACITY]
    runs = sorted(job.run for job in replayed if job.run > 0)
    default = runs[ceil(0.99 * (len(runs) - 1))] if runs else 3600
    origin = min((job.submit for job in jobs), default=0)
    by_submission = sorted(replayed, key=lambda job: job.submit)
    running, queued = [], []
    room = CAPACITY
    starts = {id(job): job.submit - origin + max(job.wait, 0) for job in by_submission}
    for job in sorted(by_submission, key=lambda job: starts[id(job)]):
        if starts[id(job)] <= now < starts[id(job)] + max(job.run, 0):
            if job.cores <= room:
                room -= job.cores
                running.append(job)
            else:
                queued.append(job)
    queued += [job for job in by_submission if job.submit - origin <= now < starts[id(job)]]
    position = {id(job): number for number, job in enumerate(by_submission)}  # by identity: jobs may be alike
    queued.sort(key=lambda job: position[id(job)])
    taken = [0] * (FAR_S + 1)
    for window in reserved:
        for second in range(max(window.start, now), min(window.end, now + FAR_S)):
            taken[second - now] += window.cores
    for job in running:
        limit = starts[id(job)] + (job.request if job.request > 0 else default)
        # No generated job overruns by five minutes; the first two steps are one and five.
        end = next(limit + step for step in (0, 60, 300) if limit + step > now)
        for second in range(now, end):
            taken[second - now] += job.cores
    start = now
    for job in queued:
        duration = job.request if job.request > 0 else default
        while any(taken[start - now + step] + job.cores > CAPACITY for step in range(duration)):
            start += 1
        for step in range(duration):
            taken[start - now + step] += job.cores
    return [min(cores, CAPACITY) for cores in taken]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield tmp_path_factory.mktemp("logs")


def machine_of(jobs: list[Job], folder: Path, **options: object) -> FakeQstat:
    path = folder / f"{next(FILES)}.swf"
    fields = (SUBMIT, "wait_time", RUN, SIZE, ASKED)
    write_swf(path, log_of(fields, *((job.submit, job.wait, job.run, job.cores, job.request) for job in jobs)))
    return FakeQstat(PluginSettings("m", CAPACITY, 1, STARTED, {"log": str(path), **options}))


def unit_of(ask: tuple[int, int, int, int, int]) -> tuple[RequestUnit, int]:
    now_s, cores, ahead_s, run_s, slack_s = ask
    now = STARTED + now_s * SECOND
    begin = now + ahead_s * SECOND
    deadline = begin + (run_s + slack_s) * SECOND
    return RequestUnit(1, 70, deadline, TotalCores(cores), not_before=begin, wall_time=run_s * SECOND), now


ALIKE = [Job(0, 1, 0, 4, 0), Job(0, 1, 1, 1, -1), Job(0, 1, 0, 4, 0)]
"""Three that wait at second 0, the last one like the first; the second one keeps its place between them."""


@settings(max_examples=examples(150))
@example(jobs=ALIKE, asks=[(0, 1, 0, 1, 0)])
@given(jobs=LOGS, asks=st.lists(ASKS, max_size=8))
def test_quotes_and_reservations_agree_with_the_reference(folder: Path, jobs: list[Job], asks: list[object]) -> None:
    machine = machine_of(jobs, folder)
    reserved: list[Window] = []
    for number, ask in enumerate(sorted(asks)):  # type: ignore[type-var]
        now_s, cores, ahead_s, run_s, slack_s = ask  # type: ignore[misc]
        unit, now = unit_of(ask)  # type: ignore[arg-type]
        answer = machine.quote(unit, now)
        if cores > CAPACITY:
            assert isinstance(answer, Refusal)
            assert answer.code is RefusalCode.MACHINE_TOO_SMALL
            continue
        if slack_s < 0:
            assert isinstance(answer, Refusal)
            assert answer.code in {RefusalCode.WINDOW_TOO_SHORT, RefusalCode.WINDOW_PASSED}
            continue
        taken = reference_taken(jobs, reserved, now_s)
        fitting = [
            start
            for start in range(ahead_s, FAR_S - run_s)
            if all(taken[second] + cores <= CAPACITY for second in range(start, start + run_s))
        ]
        if fitting[0] > ahead_s + slack_s:
            assert isinstance(answer, Refusal)
            assert answer.code is RefusalCode.CORES_TAKEN
            assert from_iso(answer.nearest) == now + fitting[0] * SECOND
            continue
        assert isinstance(answer, Slot)
        assert answer.start == now + fitting[0] * SECOND
        assert answer.end - answer.start == run_s * SECOND
        mean = sum(taken[fitting[0] : fitting[0] + run_s]) / run_s / CAPACITY
        assert answer.load == pytest.approx(mean, abs=1e-12)
        held = machine.hold(f"offer-{number}", unit, answer, now + SECOND, now)
        assert isinstance(held, Reservation)
        assert isinstance(machine.confirm(f"offer-{number}", now), Reservation)
        reserved.append(Window(now_s + fitting[0], now_s + fitting[0] + run_s, cores))


@settings(max_examples=examples(60))
@given(jobs=LOGS, now_s=st.integers(0, 120))
def test_snapshots_agree_with_the_reference(folder: Path, jobs: list[Job], now_s: int) -> None:
    machine = machine_of(jobs, folder)
    shown = machine.snapshot(STARTED + now_s * SECOND, 24 * SECOND)
    taken = reference_taken(jobs, [], now_s)
    assert shown["cores_busy"] == sum(job["cores"] for job in shown["running"]) <= taken[0]
    assert [part["load"] for part in shown["projected_load"]] == pytest.approx(
        [cores / CAPACITY for cores in taken[:24]]
    )
    # Nothing the snapshot lists overlaps beyond the machine, at any time.
    listed = shown["running"] + shown["queued"]
    moments = {from_iso(job["start"]) for job in listed}
    for moment in moments | {STARTED + now_s * SECOND}:
        present = [job for job in listed if from_iso(job["start"]) <= moment < from_iso(job["end"])]
        if moment >= STARTED + now_s * SECOND:
            assert sum(job["cores"] for job in present) <= CAPACITY


@settings(max_examples=examples(60))
@given(jobs=LOGS, ask=ASKS)
def test_a_faster_clock_is_a_slower_world(folder: Path, jobs: list[Job], ask: tuple[int, int, int, int, int]) -> None:
    """At 60 times wall speed, asking for a minute of the log is asking for a second of the wall."""
    now_s, cores, ahead_s, run_s, slack_s = ask
    # The steps beyond a request are lengths of the log's time, which are not stretched here: no job needs them.
    jobs = [replace(job, wait=max(job.wait, 0), request=max(job.request, job.run, 1)) for job in jobs]
    slow = [Job(job.submit * 60, job.wait * 60, job.run * 60, job.cores, job.request * 60) for job in jobs]
    unit, now = unit_of((now_s, min(cores, CAPACITY), ahead_s, run_s, max(slack_s, 0)))
    # A gap that fits to the microsecond may be missed by a fast clock's rounding; a slightly shorter run fits both.
    unit = replace(unit, wall_time=run_s * SECOND - 10)
    at_wall_speed = machine_of(jobs, folder).quote(unit, now)
    faster = machine_of(slow, folder, speed=60).quote(unit, now)
    assert type(faster) is type(at_wall_speed)
    if isinstance(faster, Slot) and isinstance(at_wall_speed, Slot):
        # The search keeps clear of rounding by up to `speed` microseconds of the log, one of the wall.
        assert 0 <= faster.start - at_wall_speed.start <= 2
        assert faster.end - faster.start == run_s * SECOND - 10


@given(seed=st.integers(0, 2**32), count=st.integers(0, 1500), longest=st.integers(1, 400))
@settings(max_examples=examples(40))
def test_the_interval_index_finds_what_a_scan_finds(seed: int, count: int, longest: int) -> None:
    generator = np.random.default_rng(seed)
    starts = generator.integers(0, 300, count)
    ends = starts + generator.integers(-2, longest, count)
    index = IntervalIndex.build(starts, ends)
    for point in generator.integers(-5, 750, 20).tolist():
        holding = np.flatnonzero((starts <= point) & (point < ends))
        expected = holding[np.argsort(starts[holding], kind="stable")]
        assert index.holding(point).tolist() == expected.tolist()
