"""What a run did over time, against counting second by second."""

import itertools
import random

import numpy as np
import pytest

from simulation.machine_files import load_machine
from simulation.machines.flat import FlatMachine
from simulation.machines.grid import bits_of
from simulation.machines.interface import JobRequest
from simulation.queueing.job_table import JobTable
from simulation.queueing.queue_simulation import EndedJob
from simulation.queueing.run_history import (
    RESERVED,
    Bars,
    PlacementRecorder,
    amount_over_time,
    bars_without_places,
    runs_of_bits,
)
from simulation.queueing.whole_log import ReservationRequest, SchedulerOptions, run_log


def crowd(seed: int, jobs: int, largest: int) -> JobTable:
    chosen = random.Random(seed)
    numbers = np.arange(1, jobs + 1)
    submit = np.sort([chosen.randrange(100) for _ in range(jobs)])
    length = np.array([chosen.randrange(30) for _ in range(jobs)])
    size = np.array([chosen.randrange(1, largest + 1) for _ in range(jobs)])
    return JobTable(numbers, submit, length, length, size, numbers - 1)


def held_at(bars: Bars, time: int) -> dict[int, list[int]]:
    """Units of each holder at a time; fails where two hold one."""
    found: dict[int, list[int]] = {}
    for begin, end, low, high, number in zip(
        bars.begin.tolist(), bars.end.tolist(), bars.low.tolist(), bars.high.tolist(), bars.job_number.tolist(),
        strict=True,
    ):  # fmt: skip
        if begin <= time < end:
            found.setdefault(number, []).extend(range(low, high))
    units = list(itertools.chain.from_iterable(found.values()))
    assert len(set(units)) == len(units)
    return found


def test_runs_of_bits() -> None:
    assert runs_of_bits(0) == []
    for units in [
        1,
        0b1011,
        0b1110011,
        (1 << 128) - 1,
        1 << 127,
        *(random.Random(1).getrandbits(90) for _ in range(50)),
    ]:
        runs = runs_of_bits(units)
        assert sorted(itertools.chain.from_iterable(range(*run) for run in runs)) == list(bits_of(units))
        assert all(high < low for (_, high), (low, _) in itertools.pairwise(runs))


@pytest.mark.parametrize("seed", range(8))
def test_units_without_places_are_drawn_once_each(seed: int) -> None:
    jobs = crowd(seed, 40, 12)
    reservation = ReservationRequest(JobRequest(-1, 5), 40, 25)
    run = run_log(FlatMachine(16), jobs, SchedulerOptions("easy"), reservations=[reservation])
    bars = bars_without_places(run)
    assert bars.low.min() >= 0
    assert bars.high.max() <= 16
    schedule = run.schedule
    for time in range(int(schedule.end_time.max())):
        running = np.flatnonzero((schedule.start_time <= time) & (time < schedule.end_time))
        expected = {int(run.jobs.job_number[index]): int(schedule.size[index]) for index in running}
        if 40 <= time < 65:
            expected[RESERVED] = 5
        assert {number: len(units) for number, units in held_at(bars, time).items()} == expected


def test_places_are_those_that_the_machine_gave_out() -> None:
    recorder, told = PlacementRecorder(), []

    def tell(ended: EndedJob) -> None:
        recorder(ended)
        told.append(ended)

    run_log(load_machine("bgl"), crowd(3, 30, 8), SchedulerOptions("first-fit"), on_end=tell)
    bars = recorder.bars()
    for time in range(max(one.end_time for one in told)):
        expected = {
            one.job.job_number: sorted(bits_of(one.placement.nodes))
            for one in told
            if one.start_time <= time < one.end_time
        }
        assert {number: sorted(units) for number, units in held_at(bars, time).items()} == expected


@pytest.mark.parametrize("seed", range(8))
def test_amounts_and_their_ranges_are_those_of_every_second(seed: int) -> None:
    jobs = crowd(seed, 40, 12)
    begin, end = jobs.submit_time, jobs.submit_time + jobs.run_time
    steps = amount_over_time(begin, end, jobs.size)
    first, last = int(begin.min()), int(end.max())
    seconds = [int(jobs.size[(begin <= time) & (time < end)].sum()) for time in range(first, last)]
    places = np.searchsorted(steps.times, np.arange(first, last), side="right") - 1
    assert steps.values[places].tolist() == seconds
    edges = np.unique(np.linspace(first, last, 14).astype(np.int64))
    mean, least, most = steps.mean_least_most(edges)
    for index, (low, high) in enumerate(itertools.pairwise(edges - first)):
        part = seconds[low:high]
        assert (mean[index], least[index], most[index]) == (pytest.approx(sum(part) / len(part)), min(part), max(part))
