"""The paper's sentences about its workloads, counted in a small world where the answers are plain."""

import pytest

from simulation.experiments.market.statements import LAST_OFFERS, medians, prices_and_sales, statements

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
SHARES = [{"resource": "curie3", "share_percent": 60.0}, {"resource": "atlas1", "share_percent": 40.0}]
ATTRACTIVE = [{"resource": "curie3"}, {"resource": "ricc1"}, {"resource": "curie1"}, {"resource": "atlas1"}]


def judged(requests=REQUESTS) -> dict[str, tuple[float, str]]:
    found = statements(requests, RESOURCES, SHARES, ATTRACTIVE)
    return {each.what: (pytest.approx(each.ours), str(each.verdict)) for each in found}


def test_every_sentence_has_its_number_and_verdict() -> None:
    assert judged() == {
        "share of atlas1": (40, "DIFFERS"),  # curie3 won more
        "our own largest share, of any resource": (60, "no number"),
        "rank of curie1 by attractiveness": (3, "DIFFERS"),
        "rank of curie3 by attractiveness": (1, "agrees"),
        "won by the 2 most attractive resources": (60, "DIFFERS"),
        "resources whose mean offer is between minimum and start price": (50, "DIFFERS"),
        "requests up to 35 credits less those above: rounds with offers": (-1.5, "agrees"),
        "requests up to 35 credits less those above: winning price": (-15, "agrees"),
    }


def test_what_was_never_asked_is_not_told() -> None:
    assert not any(what.startswith("requests up to 35 credits") for what in judged(REQUESTS[:1]))


def request(name: str, price: int, lowest: tuple[float | None, ...], won: float | None) -> dict:
    rows = {f"lowest_offer_{number}": offer for number, offer in enumerate(lowest, 1)}
    return {"repetition": 1, "request": name, "price": price, "winning_price": won, **rows}


def offer(name: str, number: int, resource: str, price: int, made: int) -> dict:
    row = {"repetition": 1, "request": name, "round": number, "resource": resource}
    return row | {"request_price": price, "offer": made}


OFFERS = [
    offer("exp1", 2, "a", 100, 70),
    offer("exp1", 1, "a", 100, 90),
    offer("exp1", 1, "b", 100, 80),
    offer("exp11", 1, "a", 50, 45),
]
ASKED = [request("exp1", 100, (80, 70, None), 70.0), request("exp11", 50, (45, None, None), 45.0)]


def test_each_reading_of_the_median_has_its_own_offers() -> None:
    """All: 90 80 70 90. Last of each resource in each auction: 70 80 90. Best of each round: 80 70 90. Won: 70 90."""
    assert medians(ASKED, OFFERS) == pytest.approx(
        {LAST_OFFERS: 80, "all offers": 85, "the best offer of each round": 80, "the winning offers": 80}
    )


def test_what_was_sold_is_judged() -> None:
    """Two winners are not within one of five, everything was sold, and the request that always failed did not."""
    found = prices_and_sales(ASKED, {LAST_OFFERS: 72.7, "all offers": 82.9}, SHARES)
    told = {each.what.removeprefix("median offer over request price, "): str(each.verdict) for each in found}
    assert told == {
        LAST_OFFERS: "agrees",
        "all offers": "DIFFERS",
        "resources that won everything": "DIFFERS",
        "requests sold": "agrees",
        "exp11 (20480 cores in 5 min) failed": "DIFFERS",
    }
