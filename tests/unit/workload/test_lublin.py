"""The synthetic workload against the published model: distributions by scipy, rules by hand."""

import numpy as np
import pytest
import scipy  # its parts load when they are used

from ramp.errors import WorkloadError
from simulation.workload.generators.lublin import (
    DAY_S,
    arrival_times,
    cycle_weights,
    gaps,
    job_sizes,
    run_times,
    synthetic_log,
)

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
