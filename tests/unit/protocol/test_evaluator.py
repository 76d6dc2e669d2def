"""Ranking of offers: cost, then deadline, then arrival (paper section 6.1); one offer a resource."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from ramp.model.instant import HOUR
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.shortcoming import shortcoming
from ramp.protocol.events import Preference
from ramp.protocol.user.evaluator import Ranking

UNIT = RequestUnit(1, 70, 10 * HOUR, TotalCores(16), not_before=2 * HOUR, wall_time=HOUR)


def offer(resource: str, price: int = 60, start: int = 2, hours: int = 1, cores: int = 16) -> Offer:
    return Offer(
        f"{resource}-{price}-{start}", "r", 1, resource, price, start * HOUR, (start + hours) * HOUR, cores, 0.5, HOUR
    )


def ranked(preference: Preference, *offers: Offer) -> list[str]:
    ranking = Ranking(preference)
    for each in offers:
        ranking.add(each)
    return [each.resource for each in ranking.offers]


def test_cheapest_first_whatever_the_order_of_arrival() -> None:
    offers = (offer("a", 60), offer("b", 58), offer("c", 61))
    for order in itertools.permutations(offers):
        assert ranked(Preference.CHEAPEST, *order) == ["b", "a", "c"]


def test_equal_cost_is_decided_by_the_deadline_then_by_arrival() -> None:
    late, early, also_early = offer("late", start=4), offer("early", start=3), offer("also", start=3)
    assert ranked(Preference.CHEAPEST, late, early, also_early) == ["early", "also", "late"]
    assert ranked(Preference.CHEAPEST, also_early, late, early) == ["also", "early", "late"]


def test_cost_counts_not_the_price() -> None:
    whole_nodes = offer("nodes", 50, cores=32)
    assert ranked(Preference.CHEAPEST, whole_nodes, offer("cores", 60)) == ["cores", "nodes"]


def test_soonest_puts_the_deadline_before_the_cost() -> None:
    assert ranked(Preference.SOONEST, offer("cheap", 40, start=5), offer("soon", 60, start=3)) == ["soon", "cheap"]


def test_one_offer_a_resource_its_best() -> None:
    assert ranked(Preference.CHEAPEST, offer("a", 60), offer("b", 59), offer("a", 58)) == ["a", "b"]
    assert ranked(Preference.CHEAPEST, offer("a", 58), offer("b", 59), offer("a", 60)) == ["a", "b"]


def test_an_equal_offer_later_keeps_the_first_and_its_place() -> None:
    ranking = Ranking(Preference.CHEAPEST)
    first = offer("a", 60)
    for each in (
        first,
        offer("b", 60),
        replace(first, offer_id="again"),
    ):
        ranking.add(each)
    assert [each.offer_id for each in ranking.offers] == ["a-60-2", "b-60-2"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (offer("a", 71), "got 1 136.00 credits for 16 cores, expected at most 1 120.00 (16 cores asked at 70"),
        (offer("a", cores=15), "too few cores: got 15, expected at least 16"),
        (offer("a", start=1), "before"),
        (offer("a", start=10), "after"),
        (offer("a", hours=0), "shorter than the wall time"),
    ],
)
def test_shortcomings(bad: Offer, words: str) -> None:
    assert words in shortcoming(UNIT, bad)


def test_what_meets_the_request_has_none() -> None:
    assert shortcoming(UNIT, offer("a", 70, start=9)) == ""


def test_without_a_wall_time_an_offer_must_still_last() -> None:
    unit = RequestUnit(1, 70, 10 * HOUR, TotalCores(16))
    assert shortcoming(unit, offer("a", hours=0)) == "it ends before it starts"
