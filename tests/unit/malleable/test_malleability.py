"""Speed-up laws against their published definitions, sizes, what a change costs, and which jobs are malleable."""

import itertools

import numpy as np
import pytest

from ramp.errors import WorkloadError
from simulation.malleable.malleability import (
    GADGET_2,
    NAS_FT,
    AmdahlLaw,
    DowneyLaw,
    Malleability,
    Sizes,
    TableLaw,
    amdahl_through,
    assigned_malleability,
    draw_laws,
)


def test_applications_take_what_the_paper_says() -> None:
    """CoreGRID TR-0092, section 6.1: GADGET-2 nearly ten minutes on 2, four at best; FT almost two, one at best."""
    times = [round(GADGET_2.run_time(size)) for size in (2, 4, 8, 16, 32, 46)]
    assert times == [600, 412, 318, 271, 247, 240]
    assert [round(NAS_FT.run_time(size)) for size in (2, 4, 8, 16, 32)] == [120, 88, 72, 64, 60]


def test_amdahl_with_no_serial_part_is_ideal() -> None:
    assert AmdahlLaw(0, 60).run_time(6) == 10


def test_amdahl_goes_through_no_two_points_of_one_size() -> None:
    """And not upwards either: more processors never make it slower."""
    with pytest.raises(WorkloadError, match="two different numbers of processors"):
        amdahl_through((4, 1.0), (4, 2.0))
    with pytest.raises(WorkloadError):
        amdahl_through((2, 1.0), (4, 9.0))


@pytest.mark.parametrize(
    ("average", "variance", "size", "speed_up"),
    [
        (10, 0, 4, 4),  # ideal below the average
        (10, 0, 12, 10),  # and flat above it
        (10, 1, 10, 10 * 10 / (10 + 0.5 * 9)),
        (10, 1, 15, 10 * 15 / (1 * 9.5 + 15 * 0.5)),
        (10, 1, 19, 10),
        (10, 2, 10, 10 * 10 * 3 / (2 * 19 + 10)),
        (10, 2, 28, 10),
        (1, 0, 64, 1),
    ],
)
def test_downeys_model(average: float, variance: float, size: int, speed_up: float) -> None:
    """UC Berkeley CSD-97-933: the two hypotheses, each with its ranges."""
    law = DowneyLaw(average, variance)
    assert law.speed_up(size) == pytest.approx(speed_up)
    assert law.run_time(size) == pytest.approx(1 / speed_up)


@pytest.mark.parametrize("variance", [0, 0.4, 1, 1.5, 3])
def test_downeys_speed_up_only_rises_and_ends_at_the_average(variance: float) -> None:
    values = [DowneyLaw(17, variance).speed_up(size) for size in range(1, 200)]
    assert values[0] == pytest.approx(1)
    assert all(b >= a - 1e-12 and b - a < 1 + 1e-9 for a, b in itertools.pairwise(values))
    assert values[-1] == 17


def test_a_table_has_straight_lines_between_its_points() -> None:
    """Below them the work is shared by fewer, beyond them nothing changes."""
    law = TableLaw((2, 4, 10), (60.0, 40.0, 10.0))
    assert [law.run_time(size) for size in (1, 2, 3, 4, 7, 10, 99)] == [120, 60, 50, 40, 25, 10, 10]


@pytest.mark.parametrize("points", [((), ()), ((2, 2), (1.0, 1.0)), ((0,), (1.0,)), ((1, 2), (1.0, 0.0)), ((1,), ())])
def test_a_table_that_is_none_is_refused(points: tuple) -> None:
    with pytest.raises(WorkloadError):
        TableLaw(*points)


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(2, 2, 46),
        Sizes(2, 2, 32, powers_of_two=True),
        Sizes(5, 9, 40, powers_of_two=True),
        Sizes(7, 7, 7),
    ],
)
def test_the_largest_allowed_size_of_an_offer(sizes: Sizes) -> None:
    powers = {1 << exponent for exponent in range(10)}
    allowed = [size for size in range(sizes.minimum, sizes.maximum + 1) if not sizes.powers_of_two or size in powers]
    for offered in range(60):
        assert sizes.most_of(offered) == max((size for size in allowed if size <= offered), default=None)
        assert (offered in sizes) == (offered in allowed)
    assert sizes.least == allowed[0]


@pytest.mark.parametrize("wrong", [(0, 1, 2), (3, 2, 4), (2, 5, 4), (5, 6, 7, True)])
def test_sizes_that_are_none_are_refused(wrong: tuple) -> None:
    with pytest.raises(WorkloadError):
        Sizes(*wrong)


def test_the_rest_of_the_work_at_another_size() -> None:
    """Half of GADGET-2's ten minutes on 2 machines are two on 46."""
    job = Malleability(Sizes(2, 2, 46), GADGET_2)
    assert job.time_at(300_000_000, 2, 46) == pytest.approx(120_000_000, abs=1)
    assert job.time_at(7, 5, 5) == 7


def test_no_job_gains_time_by_a_change_of_size() -> None:
    with pytest.raises(WorkloadError, match="expected at least 0"):
        Malleability(Sizes(2, 2, 46), GADGET_2, -1)


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
    with pytest.raises(WorkloadError, match=r"got 1\.5, expected 0 to 1"):
        draw_laws(np.random.default_rng(1), 5, 1.5)
