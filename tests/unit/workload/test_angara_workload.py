"""The study's synthetic workloads: what is printed, and the counts that the fact sheet states for its readings."""

import numpy as np
import pytest
import scipy  # its parts load when they are used

from ramp.errors import WorkloadError
from simulation.workload.generators.angara_workload import (
    DAY_S,
    Recipe,
    duration_s,
    make_workload,
    mean_duration_s,
)

MICROSECONDS = 1_000_000


def test_durations_are_those_printed() -> None:
    """Section 3.2: 0.01 % of the maximum at 0, 99 % at 90, 100 % at 100; figure 4 is a straight line on a log scale."""
    assert duration_s(0) == pytest.approx(8.64)
    assert duration_s(90) == pytest.approx(0.99 * DAY_S)
    assert duration_s(100) == pytest.approx(DAY_S)
    assert duration_s(95) == pytest.approx(0.995 * DAY_S)
    assert duration_s(45) == pytest.approx((duration_s(0) * duration_s(90)) ** 0.5)
    with pytest.raises(WorkloadError, match="percentile must be 0 to 100, got 101"):
        duration_s(101)


def test_mean_duration_is_the_integral_of_the_law() -> None:
    below, _ = scipy.integrate.quad(duration_s, 0, 90)
    above, _ = scipy.integrate.quad(duration_s, 90, 100)
    assert mean_duration_s() == pytest.approx((below + above) / 100)
    assert mean_duration_s() / DAY_S == pytest.approx(0.19633, abs=2e-5)  # fact sheet, section 2


@pytest.mark.parametrize(("nodes", "desmos", "jobs"), [(32, False, 2059), (144, False, 4226), (32, True, 678)])
def test_number_of_jobs_at_load_065(nodes: int, desmos: bool, jobs: int) -> None:
    """Fact sheet, section 2."""
    assert Recipe(nodes, 0.65, desmos).jobs == jobs


def test_workloads_have_the_load_the_sizes_and_the_horizon_wanted() -> None:
    recipe = Recipe(96, 0.65)
    loads = []
    for seed in range(8):
        jobs = make_workload(recipe, seed)
        assert len(jobs) == recipe.jobs
        assert (np.diff(jobs.submit_time) >= 0).all()
        assert 0 <= jobs.submit_time[0] < jobs.submit_time[-1] < 120 * DAY_S * MICROSECONDS
        assert jobs.run_time.min() >= 8.64 * MICROSECONDS
        assert jobs.run_time.max() <= DAY_S * MICROSECONDS
        loads.append(float((jobs.size * jobs.run_time).sum()) / (96 * 120 * DAY_S * MICROSECONDS))
        for size, share in recipe.shares.items():
            deviation = (share * (1 - share) / len(jobs)) ** 0.5
            assert abs((jobs.size == size).mean() - share) < 5 * deviation
    assert sum(loads) / len(loads) == pytest.approx(0.65, abs=0.03)
    assert make_workload(Recipe(32, 0.65, desmos=True), 1).submit_time[-1] < 30 * DAY_S * MICROSECONDS


def test_seeds_repeat_and_differ() -> None:
    recipe = Recipe(36, 0.5)
    one, again, other = make_workload(recipe, 1), make_workload(recipe, 1), make_workload(recipe, 2)
    assert (one.size == again.size).all()
    assert (one.run_time == again.run_time).all()
    assert (one.submit_time == again.submit_time).all()
    assert (one.run_time != other.run_time).any()


def test_powers_of_two_are_likeliest() -> None:
    shares = Recipe(32, 0.65).shares
    assert shares[4] > 3 * shares[3]
    assert sum(shares.values()) == pytest.approx(1)


def test_loads_that_make_no_job_are_refused() -> None:
    with pytest.raises(WorkloadError, match="gives no job"):
        make_workload(Recipe(32, 0.0), 1)
    with pytest.raises(WorkloadError, match="less than one job"):
        make_workload(Recipe(1, 1e-4), 1)
