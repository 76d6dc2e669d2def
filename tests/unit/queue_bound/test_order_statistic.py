"""The order statistic of BMBP against another library's binomial distribution, and recent values by brute force."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr  # the binomial distribution; scipy.stats takes a second to load

from ramp.queue_bound.order_statistic import RecentValues, fewest, rank


def test_59_waits_are_needed_for_95_per_cent() -> None:
    """Brevik, Nurmi and Wolski, PPoPP 2006, section 3.2."""
    assert fewest(0.95, 0.95) == 59
    assert rank(58, 0.95, 0.95) is None
    assert rank(59, 0.95, 0.95) == 59


@pytest.mark.parametrize("count", [59, 60, 93, 500, 1_000, 10_000])
@pytest.mark.parametrize(("quantile", "confidence"), [(0.95, 0.95), (0.5, 0.95), (0.9, 0.8)])
def test_the_rank_is_the_smallest_that_holds(count: int, quantile: float, confidence: float) -> None:
    place = rank(count, quantile, confidence)
    assert place is not None
    assert bdtr(place - 1, count, quantile) >= confidence
    assert bdtr(place - 2, count, quantile) < confidence


@given(st.lists(st.integers(0, 9), min_size=1), st.integers(1, 5), st.integers(0, 9))
def test_recent_values(values: list[int], most: int, other: int) -> None:
    recent: RecentValues[int] = RecentValues(most)
    for value in values:
        recent.add(value)
    kept = sorted(values[-most:])
    assert [recent.smallest(place + 1) for place in range(len(recent))] == kept
    assert recent.not_above(other) == sum(value <= other for value in kept)
    recent.keep_last(2)
    assert [recent.smallest(place + 1) for place in range(len(recent))] == sorted(values[-most:][-2:])
