"""Slim and fat shapes: the examples and rules of Aridor and others 2005."""

import itertools
import random

import pytest

from ramp.errors import WorkloadError
from simulation.workload.shapes import choose_shapes, choose_tori, fat_shape, slim_shape

BGL = (8, 4, 4)


@pytest.mark.parametrize(
    ("size", "extents"), [(6, (1, 1, 6)), (8, (1, 1, 8)), (16, (1, 2, 8)), (27, (3, 3, 3)), (1, (1, 1, 1))]
)
def test_slim_shapes_of_the_study(size: int, extents: tuple[int, ...]) -> None:
    """The study's own examples, whatever the order in which it writes the extents."""
    shape = slim_shape(size, BGL)
    assert shape is not None
    assert sorted(shape) == sorted(extents)


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
    """129 midplanes are more than 8x4x4."""
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
    """The error names the value and what would be right."""
    with pytest.raises(WorkloadError, match="must be 0 to 1"):
        choose_tori(3, wrong, random.Random(1))
