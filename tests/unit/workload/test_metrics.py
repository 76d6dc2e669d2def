"""Measures of a schedule, worked out by hand."""

import numpy as np
import pytest

from ramp.model.instant import SECOND
from simulation.workload.metrics import Schedule, occupancy, summarise, utilisation, utilisation_while_arriving


def schedule(*jobs: tuple[int, int, int, int, int], capacity: int = 10) -> Schedule:
    """Of (submit, start, end, size, held) in seconds."""
    columns = np.array(jobs, dtype=np.int64).reshape(-1, 5).T
    times = columns[:3] * SECOND
    return Schedule(times[0], times[1], times[2], columns[3], columns[4], capacity)


TWO_JOBS = schedule((100, 100, 200, 5, 8), (150, 200, 300, 10, 10))


def test_measures_of_two_jobs() -> None:
    """First job: wait 0, run 100; second: wait 50, run 100; makespan 100 to 300."""
    summary = summarise(TWO_JOBS)
    assert summary.jobs == 2
    assert summary.makespan_s == 200
    assert summary.mean_wait_s == 25
    assert summary.mean_relative_wait == pytest.approx(0.25)
    assert summary.mean_bounded_slowdown == pytest.approx((1 + 1.5) / 2)
    assert summary.utilisation == pytest.approx((5 * 100 + 10 * 100) / (10 * 200))


def test_occupancy_counts_units_held_in_vain() -> None:
    """8 units held where 5 were asked for."""
    assert occupancy(TWO_JOBS) == pytest.approx((8 * 100 + 10 * 100) / (10 * 200))


def test_utilisation_while_arriving_ends_with_the_last_submission() -> None:
    """Between 100 and 150 only the first job works: 5 of 10 units."""
    assert utilisation_while_arriving(TWO_JOBS) == pytest.approx(0.5)


def test_short_jobs_do_not_rule_the_mean_slowdown() -> None:
    """A job of 1 s that waits 99 s: relative wait 99, bounded slowdown (99 + 1) / 10."""
    summary = summarise(schedule((0, 99, 100, 1, 1)))
    assert summary.mean_relative_wait == 99
    assert summary.mean_bounded_slowdown == 10


def test_a_job_without_run_time_and_no_job_at_all() -> None:
    """Nothing divides by zero: a run of 0 s counts as 1 s in the relative wait; no job gives zeros."""
    assert summarise(schedule((0, 5, 5, 1, 1))).mean_relative_wait == 5
    assert summarise(schedule((0, 0, 0, 1, 1))).utilisation == 0
    empty = summarise(schedule())
    assert (empty.jobs, empty.utilisation, empty.mean_wait_s) == (0, 0, 0)
    assert utilisation(schedule()) == 0
