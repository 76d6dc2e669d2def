"""Generated workloads against the published models: distributions by scipy, rules and shapes by hand."""

import itertools
import random

import numpy as np
import pytest
import scipy

from ramp.errors import WorkloadError
from simulation.workload.generators.angara_workload import Recipe, duration_s, make_workload, mean_duration_s
from simulation.workload.generators.lublin import (
    DAY_S,
    arrival_times,
    cycle_weights,
    gaps,
    job_sizes,
    run_times,
    synthetic_log,
)
from simulation.workload.shapes import choose_shapes, choose_tori, fat_shape, slim_shape

# Parameters as Lublin and Feitelson publish them for jobs of no stated type, entered here a second time.
SERIAL, POWER_OF_TWO = 0.244, 0.576
U_LOW, U_MED, U_HIGH, U_PROB = 0.8, 4.5, 7.0, 0.86
A1, B1, A2, B2, PA, PB = 4.2, 0.94, 312, 0.03, -0.0054, 0.78
GAP_ALPHA, GAP_BETA = 10.2303 * 1.0225, 0.4871
CYCLE_ALPHA, CYCLE_BETA = 8.1737, 3.9631
COUNT = 40_000


def two_stage_uniform_cdf(x: np.ndarray) -> np.ndarray:
    first = U_PROB * np.clip((x - U_LOW) / (U_MED - U_LOW), 0, 1)
    return first + (1 - U_PROB) * np.clip((x - U_MED) / (U_HIGH - U_MED), 0, 1)


def test_shares_of_sizes_are_the_published_ones() -> None:
    sizes = job_sizes(np.random.default_rng(1), COUNT, 128)
    assert sizes.min() == 1
    assert sizes.max() == 128
    # Expected: 2 to the power x is 1, 2, 4, ... when x rounds to 0, 1, 2, ...; the others round 2 to the x itself.
    bounds = np.log2(np.arange(1, 129) + 0.5)
    others = np.diff(two_stage_uniform_cdf(np.concatenate(([-np.inf], bounds))))
    others[-1] += 1 - others.sum()
    expected = (1 - SERIAL - POWER_OF_TWO) * others
    rounded = np.diff(two_stage_uniform_cdf(np.arange(0, 9) - 0.5))
    for power, share in enumerate(rounded):
        expected[2**power - 1] += POWER_OF_TWO * share
    expected[0] += SERIAL
    observed = np.bincount(sizes, minlength=129)[1:]
    pooled = expected * COUNT >= 10
    chi = scipy.stats.chisquare(
        np.append(observed[pooled], observed[~pooled].sum()),
        np.append(expected[pooled], expected[~pooled].sum()) * COUNT,
    )
    assert chi.pvalue > 0.01


@pytest.mark.parametrize("size", [1, 32, 128])
def test_run_times_follow_the_hyper_gamma_distribution(size: int) -> None:
    share = min(max(PA * size + PB, 0), 1)
    first, second = scipy.stats.gamma(A1, scale=B1), scipy.stats.gamma(A2, scale=B2)

    def cdf(x: np.ndarray) -> np.ndarray:
        return (share * first.cdf(x) + (1 - share) * second.cdf(x)) / (
            share * first.cdf(12) + (1 - share) * second.cdf(12)
        )

    runs = run_times(np.random.default_rng(size), np.full(COUNT, size), 128)
    # Whole seconds tie the short ones: spread each over its second before comparing with a continuous distribution.
    spread = np.log(runs + np.random.default_rng(7).random(COUNT))
    long_enough = spread[spread > np.log(2)]
    conditional = scipy.stats.ks_1samp(long_enough, lambda x: (cdf(x) - cdf(np.log(2))) / (1 - cdf(np.log(2))))
    assert conditional.pvalue > 0.01
    below = cdf(np.array([np.log(2)]))[0] * COUNT
    assert (runs == 1).sum() == pytest.approx(below, abs=5 * np.sqrt(below) + 1)


def test_gaps_are_log_gamma_distributed() -> None:
    logarithms = np.log(gaps(np.random.default_rng(2), COUNT))
    gamma = scipy.stats.gamma(GAP_ALPHA, scale=GAP_BETA)
    assert logarithms.max() <= 13
    assert scipy.stats.ks_1samp(logarithms, lambda x: gamma.cdf(x) / gamma.cdf(13)).pvalue > 0.01


def test_the_daily_cycle_has_the_weights_of_its_gamma_distribution() -> None:
    half_hours = np.arange(11, 59)
    gamma = scipy.stats.gamma(CYCLE_ALPHA, scale=CYCLE_BETA)
    expected = np.empty(48)
    expected[(half_hours - 1) % 48] = gamma.cdf(half_hours + 0.5) - gamma.cdf(half_hours - 0.5)
    assert cycle_weights() == pytest.approx(expected / expected.mean(), rel=1e-6)


def test_arrivals_follow_the_daily_cycle() -> None:
    # A steady stream on the cycle's clock: as many arrivals in each half-hour as it has weight.
    arrivals = arrival_times(np.full(48_000, 100 * DAY_S / 48_000))
    counts = np.bincount(arrivals % DAY_S // 1800, minlength=48)
    assert counts == pytest.approx(1000 * cycle_weights(), abs=105)
    assert (np.diff(arrivals) >= 0).all()


@pytest.mark.parametrize(("cores", "days"), [(1, 3), (2, 3), (128, 40), (163_840, 20)])
def test_a_log_is_fitted_to_its_machine(cores: int, days: int) -> None:
    log = synthetic_log(cores, days * DAY_S, seed=5, load=0.6)
    assert log.header_integer("MaxProcs") == cores
    assert log.processors.max() <= cores
    area = int((log.processors * log.run_time).sum())
    largest = int((log.processors * log.run_time).max())
    assert 0 <= area - 0.6 * cores * days * DAY_S <= largest
    assert log.submit_time[-1] == pytest.approx(days * DAY_S, rel=0.05)
    assert (log.requested_time >= log.run_time).all()
    assert (log.wait_time >= 0).all()


def test_the_machine_is_never_overbooked_and_cores_do_not_idle_while_the_first_in_line_fits() -> None:
    log = synthetic_log(64, 10 * DAY_S, seed=9, load=0.9)
    starts = log.submit_time + log.wait_time
    ends = starts + log.run_time
    for moment in np.unique(starts):
        used = int(log.processors[(starts <= moment) & (ends > moment)].sum())
        assert used <= 64
        waiting = np.flatnonzero((log.submit_time <= moment) & (starts > moment))
        if waiting.size:
            assert log.processors[waiting[0]] > 64 - used
    assert (log.wait_time > 0).any()


def test_the_seed_decides() -> None:
    first, second, third = (synthetic_log(32, 5 * DAY_S, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.columns, second.columns)
    assert first.columns.shape != third.columns.shape or not np.array_equal(first.columns, third.columns)


@pytest.mark.parametrize(("cores", "duration", "load"), [(0, DAY_S, 0.5), (4, DAY_S - 1, 0.5), (4, DAY_S, 0.0)])
def test_arguments_out_of_range(cores: int, duration: int, load: float) -> None:
    with pytest.raises(WorkloadError, match="at least 1 core, one day"):
        synthetic_log(cores, duration, 1, load=load)


BGL = (8, 4, 4)


def test_slim_shape_puts_the_long_extent_on_the_long_dimension() -> None:
    """The loop to 8 is the machine's dimension of 8."""
    assert slim_shape(8, BGL) == (8, 1, 1)
    assert slim_shape(8, (4, 4, 8)) == (1, 1, 8)


@pytest.mark.parametrize("least", [1, 2])
def test_shapes_against_all_combinations(least: int) -> None:
    """Every size from 1 to 128 gets the smallest volume there is among shapes of at least 1 (slim) or 2 (fat)."""
    boxes = list(itertools.product(range(least, 9), range(least, 5), range(least, 5)))
    volumes = {x * y * z for x, y, z in boxes}
    for size in range(1, 129):
        shape = slim_shape(size, BGL) if least == 1 else fat_shape(size, BGL)
        assert shape in boxes
        assert shape[0] * shape[1] * shape[2] == min(volume for volume in volumes if volume >= size)


def test_slim_takes_the_first_combination_of_the_loops() -> None:
    """Among equal volumes the loops (1..4, 1..4, 1..8 innermost) decide: 4 is a stick of 4, not a sheet of 2x2."""
    for size in range(1, 129):
        found = [(a, b, c) for a in range(1, 5) for b in range(1, 5) for c in range(1, 9) if a * b * c == size]
        if found:
            a, b, c = found[0]
            assert slim_shape(size, BGL) in {(c, a, b), (c, b, a)}


def test_a_job_larger_than_the_machine_has_no_shape() -> None:
    assert slim_shape(129, BGL) is None
    assert fat_shape(129, BGL) is None


def test_fat_shapes_are_at_least_two_where_the_machine_has_two() -> None:
    """No fat job is below 2x2x2; on a machine with a dimension of 1 that dimension stays 1."""
    assert fat_shape(1, BGL) == (2, 2, 2)
    assert fat_shape(9, BGL) in {(3, 2, 2), (2, 3, 2), (2, 2, 3)}
    assert fat_shape(3, (4, 1, 4)) == (2, 1, 2)


def test_probabilities_of_zero_and_one_are_certain_and_share_their_draws() -> None:
    """Probability 0 and 1 leave nothing to chance, and workloads of one seed differ only by their probability."""
    sizes = [1, 5, 9] * 40
    assert choose_shapes(sizes, BGL, 0, random.Random(1)) == [slim_shape(size, BGL) for size in sizes]
    assert choose_shapes(sizes, BGL, 1, random.Random(1)) == [fat_shape(size, BGL) for size in sizes]
    few, many = choose_tori(500, 0.3, random.Random(2)), choose_tori(500, 0.6, random.Random(2))
    assert all(torus or not also for also, torus in zip(few, many, strict=True))
    assert 100 < sum(few) < 200 < sum(many) < 400
    assert not any(choose_tori(100, 0, random.Random(2)))
    assert all(choose_tori(100, 1, random.Random(2)))


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan")])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    with pytest.raises(WorkloadError, match="must be 0 to 1"):
        choose_tori(3, wrong, random.Random(1))


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
