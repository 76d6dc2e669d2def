"""The paper's sentences about its workloads, counted in a small world where the answers are plain."""

from __future__ import annotations

import pytest

from simulation.experiments.market_statements import statements

NAMES = {"atlas1": "atlas1", "curie1": "curie1", "curie3": "curie3*"}
REQUESTS = [
    {"price": 70, "winning_price": 40.0, "mean_offer_1": 60.0, "mean_offer_2": 50.0, "mean_offer_3": 45.0},
    {"price": 35, "winning_price": 25.0, "mean_offer_1": 30.0, "mean_offer_2": 27.0, "mean_offer_3": None},
    {"price": 25, "winning_price": 25.0, "mean_offer_1": 25.0, "mean_offer_2": None, "mean_offer_3": None},
    {"price": 80, "winning_price": None, "mean_offer_1": None, "mean_offer_2": None, "mean_offer_3": None},
]
RESOURCES = [
    {"minimum_price": 25, "mean_offer": 30.0, "start_price": 33},
    {"minimum_price": 25, "mean_offer": 40.0, "start_price": 33},
    {"minimum_price": 25, "mean_offer": None, "start_price": 33},
]
SHARES = [{"resource": "curie3*", "share_percent": 60.0}, {"resource": "atlas1", "share_percent": 40.0}]
ATTRACTIVE = [{"resource": "curie3*"}, {"resource": "ricc1"}, {"resource": "curie1"}, {"resource": "atlas1"}]


def ours(requests=REQUESTS) -> dict[str, float]:
    return {each.what: each.ours for each in statements(requests, RESOURCES, SHARES, ATTRACTIVE, NAMES)}


def test_every_sentence_has_its_number() -> None:
    assert ours() == pytest.approx(
        {
            "share of atlas1": 40,
            "largest share": 60,
            "rank of curie1 by attractiveness": 3,
            "rank of curie3 by attractiveness": 1,
            "won by the 2 most attractive resources": 60,
            "mean offers between minimum and start price": 50,
            "rounds with offers, requests up to 35 credits": 1.5,
            "rounds with offers, requests above 35 credits": 3,
        }
    )


def test_what_was_never_asked_is_not_told() -> None:
    assert "rounds with offers, requests up to 35 credits" not in ours(REQUESTS[:1])
