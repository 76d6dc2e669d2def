"""Sizes of a moldable unit in time and money, against the published laws worked out by hand and by brute force."""

from dataclasses import replace

import pytest

from ramp.errors import WorkloadError
from ramp.model import money
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Offer
from ramp.model.request import MoldableTerms, Nodes, RequestUnit, TorusTerms, TotalCores
from ramp.model.shortcoming import shortcoming
from ramp.model.sizes.moldable import (
    CANDIDATES_MAX,
    as_offered,
    candidates,
    cost_cap,
    price_for,
    price_with,
    run_time_with,
    size_problem,
)
from ramp.model.sizes.speed_up import law_of

UNIT = RequestUnit(
    1, 70, 6 * HOUR, TotalCores(64), not_before=HOUR, wall_time=HOUR, moldable=MoldableTerms(64, 512, "amdahl:0.05")
)


def offer(cores: int, length: int, price: int, start: int = HOUR) -> Offer:
    return Offer("o1", "r1", 1, "res", price, start, start + length, cores, 0.0, MINUTE)


@pytest.mark.parametrize(
    ("cores", "seconds"),
    # Amdahl with a serial share of 0.05, an hour on 64: 3600 * (0.05 + 0.95 / p) / (0.05 + 0.95 / 64), rounded up
    [(64, 3600), (128, 3188), (256, 2982), (512, 2879), (1024, 2879)],
)
def test_the_run_takes_as_long_as_amdahl_says(cores: int, seconds: int) -> None:
    assert run_time_with(UNIT, cores) == seconds * SECOND


def test_a_unit_without_a_range_keeps_its_wall_time() -> None:
    fixed = replace(UNIT, moldable=None)
    assert run_time_with(fixed, 999) == HOUR
    assert candidates(fixed) == (fixed,)
    assert size_problem(fixed, 1, 1) == ""


@pytest.mark.parametrize(
    ("law", "cores", "relative"),
    [
        ("amdahl:0", 4, 1 / 4),
        ("downey:10:0", 4, 1 / 4),  # ideal below the average parallelism
        ("downey:10:0", 40, 1 / 10),  # and flat above it
        ("downey:10:1", 15, (1 * 9.5 + 15 * 0.5) / (10 * 15)),
        ("table:1=100,4=40,8=30", 6, 0.35),  # half way between two measurements
        ("table:1=100,4=40,8=30", 99, 0.3),
    ],
)
def test_laws_in_words_are_the_published_ones(law: str, cores: int, relative: float) -> None:
    found = law_of(law)
    assert float(found.run_time(cores) / found.run_time(1)) == pytest.approx(relative)


@pytest.mark.parametrize(
    "law",
    ["", "amdahl", "amdahl:", "amdahl:1.01", "amdahl:-1", "amdahl:5e-2", "amdahl:nan", "downey:10", "downey:0.5:1",
     "table:4=1,2=9", "table:1=1,2=2", "table:1=0", "table:x=1", "gustafson:0.1",
     "table:" + ",".join(f"{n}=1" for n in range(1, 40))],
)  # fmt: skip
def test_what_is_no_law_is_refused_with_what_would_be_right(law: str) -> None:
    with pytest.raises(WorkloadError, match="; use amdahl:"):
        law_of(law)


@pytest.mark.parametrize("law", ["amdahl:0.3", "downey:100:0.5", "downey:20:2.5", "table:32=9,64=7,300=1"])
def test_more_cores_never_take_longer(law: str) -> None:
    unit = replace(UNIT, moldable=MoldableTerms(8, 600, law))
    times = [run_time_with(unit, cores) or 0 for cores in range(8, 700)]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(("least", "most", "reference"), [(64, 512, 64), (1, 10**6, 1000), (7, 7, 7), (3, 20, 19)])
def test_candidates_are_few_and_have_the_ends_and_the_reference(least: int, most: int, reference: int) -> None:
    unit = replace(UNIT, cores=TotalCores(reference), moldable=MoldableTerms(least, most, "amdahl:0.05"))
    sizes = [each.cores.total for each in candidates(unit)]
    assert {least, most, reference} <= set(sizes)
    assert sizes == sorted(set(sizes))
    assert len(sizes) <= CANDIDATES_MAX
    assert all(least <= size <= most for size in sizes)


def test_no_candidate_may_cost_more_than_the_reference() -> None:
    cap = money.cost(70, 64, HOUR)
    for each in candidates(UNIT):
        assert each.wall_time is not None
        assert each.moldable is None
        assert money.cost(each.cpu_hour_cost, each.cores.total, each.wall_time) <= cap
        assert money.cost(each.cpu_hour_cost + 1, each.cores.total, each.wall_time) > cap  # and no price is higher


def test_prices_at_a_size_and_at_the_reference_are_brute_force_s() -> None:
    for cores, length in ((64, HOUR), (100, 3333 * SECOND), (512, 2879 * SECOND), (513, 7)):
        cap = money.cost(70, 64, HOUR)
        if cores != 513:
            assert price_with(UNIT, cores, length) == max(p for p in range(200) if money.cost(p, cores, length) <= cap)
        for price in (0, 1, 9, 33, 70):
            cost = money.cost(price, cores, length)
            least = min(q for q in range(2000) if money.cost(q, 64, HOUR) >= cost)
            assert price_for(UNIT, offer(cores, length, price), price) == least


ASKED = replace(UNIT, moldable=None, cores=TotalCores(16), cpu_hour_cost=25)
"""16 cores for an hour at 25: at most 400 credits."""


@pytest.mark.parametrize("cores", [TotalCores(16), Nodes(4, 4)])
@pytest.mark.parametrize(
    ("charged", "length", "price"), [(16, HOUR, 25), (17, HOUR, 23), (1024, HOUR, 0), (16, 2 * HOUR, 12)]
)
def test_the_limit_is_about_the_cores_and_the_time_asked(
    cores: TotalCores | Nodes, charged: int, length: int, price: int
) -> None:
    unit = replace(ASKED, cores=cores, torus=TorusTerms((8, 8, 8), connection="torus", node_use="virtual"))
    assert cost_cap(unit, length) == 40_000
    assert price_with(unit, charged, length) == price
    assert shortcoming(unit, offer(charged, length, price)) == ""
    assert "at most 400.00 (16 cores asked at 25" in shortcoming(unit, offer(charged, length, price + 1))


def test_without_a_wall_time_the_slot_s_length_is_asked() -> None:
    unit = replace(ASKED, wall_time=None)
    assert cost_cap(unit, 5 * HOUR) == 200_000
    assert price_with(unit, 32, 5 * HOUR) == 12
    assert price_for(unit, offer(32, 5 * HOUR, 13), 13) == 26


def test_a_midplane_s_price_in_the_buyer_s_unit_is_the_least_that_serves() -> None:
    assert price_for(ASKED, offer(1024, HOUR, 20), 20) == 1280
    assert price_with(replace(ASKED, cpu_hour_cost=1280), 1024, HOUR) == 20
    assert price_with(replace(ASKED, cpu_hour_cost=1279), 1024, HOUR) == 19


@pytest.mark.parametrize("cores", [1, 3, 16])
@pytest.mark.parametrize("length", [SECOND, 7 * SECOND, MINUTE, HOUR])
def test_prices_are_the_greatest_and_the_least_that_fit_however_small_the_slot(cores: int, length: int) -> None:
    """Costs are whole minor units, so several prices of a tiny slot may have one cost."""
    unit = replace(ASKED, cores=TotalCores(cores), wall_time=length)
    cap = money.cost(25, cores, length)
    for charged in (cores, cores + 1, 5 * cores):
        assert price_with(unit, charged, length) == max(p for p in range(99) if money.cost(p, charged, length) <= cap)
        paid = offer(charged, length, 7)
        assert price_for(unit, paid, 7) == min(p for p in range(99) if money.cost(p, cores, length) >= paid.cost)
    if cores * length > MINUTE:
        least = price_for(unit, offer(cores, length, 25), 25)
        assert price_with(unit, cores, length) == least == 25, "as asked: the same price"


def test_a_larger_size_meets_the_request_only_where_its_run_costs_no_more() -> None:
    length = run_time_with(UNIT, 512) or 0
    dearest = price_with(UNIT, 512, length)
    assert dearest == 10  # 4 480 credits over 512 cores for 2879 s
    assert shortcoming(UNIT, offer(512, length, dearest)) == ""
    assert "expected at most 4 480.00 (64 cores asked at 70" in shortcoming(UNIT, offer(512, length, dearest + 1))
    assert cost_cap(UNIT, length) == cost_cap(UNIT, HOUR) == 448_000


def test_a_size_whose_time_is_too_short_is_told() -> None:
    length = run_time_with(UNIT, 256) or 0
    assert size_problem(UNIT, 256, length) == ""
    assert "amdahl:0.05" in shortcoming(UNIT, offer(256, length - 1, 1))
    assert "expected at least 64" in shortcoming(UNIT, offer(63, 5 * HOUR, 1))


def test_the_machine_is_asked_for_what_was_offered() -> None:
    """A machine that rounds up to whole nodes charges for more; the run has no use for more than its greatest size."""
    for cores, used in ((64, 64), (256, 256), (640, 512)):
        asked = as_offered(UNIT, offer(cores, run_time_with(UNIT, cores) or 0, 1))
        assert (asked.cores, asked.wall_time) == (TotalCores(used), run_time_with(UNIT, used))
