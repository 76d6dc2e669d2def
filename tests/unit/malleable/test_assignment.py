"""Which jobs are made malleable, with which sizes and laws."""

import numpy as np
import pytest

from ramp.errors import WorkloadError
from simulation.malleable.assignment import assigned_malleability, draw_laws

SIZES = [1, 2, 3, 7, 16, 100, 128] * 100


def made(share: float):
    return assigned_malleability(SIZES, 128, share, np.random.default_rng(3))


def test_sizes_are_a_fourth_to_four_times_within_the_machine() -> None:
    """Rounded up below, cut at the machine above; the log's is preferred."""
    found = [(each.sizes.minimum, each.sizes.preferred, each.sizes.maximum) for each in made(1.0)[:7]]
    expected = [(1, 1, 4), (1, 2, 8), (1, 3, 12), (2, 7, 28), (4, 16, 64), (25, 100, 128), (32, 128, 128)]
    assert found == expected


def test_laws_are_drawn_in_their_bounds_and_fill_them() -> None:
    """Average parallelism one to four times the size, variance 0 to 2."""
    ratios = [each.law.average / size for each, size in zip(made(1.0), SIZES, strict=True)]
    spreads = [each.law.variance for each in made(1.0)]
    assert 1 <= min(ratios) < 1.1
    assert 3.7 < max(ratios) <= 4
    assert 0 <= min(spreads) < 0.1
    assert 1.9 < max(spreads) <= 2


def test_who_is_malleable_at_a_share_is_so_at_every_larger_one_with_the_same_law() -> None:
    """Otherwise two shares would differ in more than the share."""
    few, many = made(0.2), made(0.7)
    assert all(one == other for one, other in zip(few, many, strict=True) if one is not None)
    assert 0.15 < sum(each is not None for each in few) / len(few) < 0.25
    assert 0.65 < sum(each is not None for each in many) / len(many) < 0.75
    assert not any(made(0.0))


def test_a_share_that_is_no_share() -> None:
    """Told with its value."""
    with pytest.raises(WorkloadError, match=r"got 1\.5, expected 0 to 1"):
        draw_laws(np.random.default_rng(1), 5, 1.5)
