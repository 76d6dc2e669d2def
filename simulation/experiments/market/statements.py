"""What the RAMP paper says in numbers and words (its sections 10 to 12), as tables and as rows with verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

from ramp.model.instant import HOUR, MINUTE, Duration
from simulation.experiments.comparison import Comparison
from simulation.experiments.result import Rows


@dataclass(frozen=True, slots=True)
class Workload:
    """One line of Table 3: cores, time until the start, price in credits per core hour."""

    name: str
    cores: int
    lead: Duration
    price: int


TABLE3: Final = (
    Workload("exp1", 16, 5 * MINUTE, 70),
    Workload("exp2", 16, 60 * MINUTE, 55),
    Workload("exp3", 16, 12 * HOUR, 35),
    Workload("exp4", 256, 5 * MINUTE, 50),
    Workload("exp5", 256, 60 * MINUTE, 30),
    Workload("exp6", 256, 12 * HOUR, 25),
    Workload("exp7", 1024, 60 * MINUTE, 55),
    Workload("exp8", 1024, 12 * HOUR, 35),
    Workload("exp9", 4096, 60 * MINUTE, 55),
    Workload("exp10", 4096, 12 * HOUR, 35),
    Workload("exp11", 20480, 5 * MINUTE, 80),
    Workload("exp12", 20480, 60 * MINUTE, 55),
    Workload("exp13", 20480, 12 * HOUR, 35),
)

TABLE4: Final = {
    1: (66.00, 18.81),
    2: (60.00, 31.91),
    3: (51.83, 46.19),
    4: (41.83, 61.15),
    5: (37.40, 76.18),
    6: (35.40, 91.18),
    7: (37.83, 106.21),
    8: (37.83, 121.24),
    9: (34.75, 136.26),
    10: (36.50, 151.26),
}
"""Mean sale price in credits per core hour and mean duration in seconds by number of rounds."""

TABLE4_SALES: Final = {3: 6, 4: 6, 5: 5, 6: 5, 7: 6, 8: 6, 9: 4}
"""Sales that the decimals of a mean of whole prices allow (51.83 = 311/6, 37.40 = 187/5, 34.75 = 139/4), by rounds."""

ROUNDS: Final = 3
"""Rounds of bidding in section 10."""

REPETITIONS: Final = 3
MEDIAN_OFFER_PERCENT: Final = 71.1
"""Median offer price over request price."""

WINNERS: Final = 5
"""Resources that won all of the jobs."""

FLAT_FROM_ROUNDS: Final = 5
"""Section 11.1: the price falls with the rounds, with a tail-off at five."""


BIGGEST_WINNER: Final = "atlas1"
MOST_ATTRACTIVE: Final = ("curie1", "curie3")
LOW_PRICE: Final = 35
"""Requests up to this price, in credits per core hour, are close to the minimum prices of most machines."""

LAST_OFFERS: Final = "each resource's last offer (reading found afterwards)"
"""The reading of the paper's median that fits; it was found afterwards."""

MEDIAN_TOLERANCE: Final = 2.0
"""Points; the readings of the median are 4 and more apart."""

VERY_LARGE: Final = 20_480
"""Cores of the paper's exp11, which failed."""

_LOGS: Final = (
    "Intrepid's log is not at hand, and Table 2's times are of other copies of Curie's and Atlas's logs than the "
    "archive's, which begin later"
)
_OTHER_READING: Final = "another reading: the paper does not say of which offers its median is"


def medians(requests: Rows, offers: Rows) -> dict[str, float]:
    """Median of offer over request price in per cent, by what counts as offer."""
    last: dict[tuple[Any, ...], float] = {}
    for row in sorted(offers, key=lambda row: row["round"]):
        last[row["repetition"], row["request"], row["resource"]] = 100 * row["offer"] / row["request_price"]
    best = [
        100 * row[f"lowest_offer_{number}"] / row["price"]
        for row in requests
        for number in range(1, ROUNDS + 1)
        if row[f"lowest_offer_{number}"] is not None
    ]
    return {
        LAST_OFFERS: median(last.values()),
        "all offers": median(100 * row["offer"] / row["request_price"] for row in offers),
        "the best offer of each round": median(best),
        "the winning offers": median(
            100 * row["winning_price"] / row["price"] for row in requests if row["winning_price"] is not None
        ),
    }


def prices_and_sales(requests: Rows, ours: Mapping[str, float], shares: Rows) -> list[Comparison]:
    """Offers over request prices, what was sold and who won, beside the paper."""
    sold = sum(row["winning_price"] is not None for row in requests)
    immediate = [row for row in requests if row["request"] == "exp11"]
    failed = sum(row["winning_price"] is None for row in immediate)
    result = [
        Comparison(
            f"median offer over request price, {words}",
            MEDIAN_OFFER_PERCENT, value, "%", MEDIAN_TOLERANCE, picture="figure8a.png",
            why=_LOGS if words == LAST_OFFERS else _OTHER_READING,
        )
        for words, value in ours.items()
    ]  # fmt: skip
    result += [
        Comparison(
            "resources that won everything", WINNERS, len(shares), "", tolerance=1, why=_LOGS, picture="figure9a.png"
        ),
        Comparison(
            "requests sold", "a majority", 100 * sold / len(requests), "%", at_least=50.0, why=_LOGS,
            picture="figure8a.png",
        ),
        Comparison(
            f"exp11 ({VERY_LARGE} cores in 5 min) failed", "always", 100 * failed / len(immediate), "%", at_least=100.0,
            why=_LOGS, picture="figure8a.png",
        ),
    ]  # fmt: skip
    return result


def statements(by_request: Rows, by_resource: Rows, shares: Rows, attractive: Rows) -> list[Comparison]:
    """Compare the paper's sentences with our numbers; `attractive` begins with the most attractive resource."""
    return [*_winners(shares, attractive), *_offers(by_resource), *_low_prices(by_request)]


def _winners(shares: Rows, attractive: Rows) -> list[Comparison]:
    won = {row["resource"]: row["share_percent"] for row in shares}
    largest = max(won.values(), default=0.0)
    result = [
        Comparison(
            f"share of {BIGGEST_WINNER}", "the largest", won.get(BIGGEST_WINNER, 0.0), "%", at_least=largest, why=_LOGS,
            picture="figure9a.png",
        ),
        Comparison(
            "our own largest share, of any resource", "not told", largest, "%",
            why="the paper draws it without a number",
        ),
    ]  # fmt: skip
    ranks = {row["resource"]: rank for rank, row in enumerate(attractive, 1)}
    result += [
        Comparison(
            f"rank of {resource} by attractiveness", "1 or 2", ranks[resource], "", at_most=2, why=_LOGS,
            picture="figure8b.png",
        )
        for resource in MOST_ATTRACTIVE
        if resource in ranks
    ]  # fmt: skip
    shares_of_best = sum(won.get(row["resource"], 0.0) for row in attractive[: len(won)])
    what = f"won by the {len(won)} most attractive resources"
    why = "who wins is decided in the last round, by the minimum price, and attractiveness is of the first"
    result.append(
        Comparison(what, "in general all", shares_of_best, "%", at_least=80.0, why=why, picture="figure8b.png")
    )
    return result


def _offers(by_resource: Rows) -> list[Comparison]:
    between = [
        row["minimum_price"] <= row["mean_offer"] <= row["start_price"]
        for row in by_resource
        if row["mean_offer"] is not None
    ]
    what = "resources whose mean offer is between minimum and start price"
    why = "nothing bounds an offer by the start price: a high request is answered just below it"
    return [
        Comparison(what, "roughly all", 100 * fmean(between), "%", at_least=80.0, why=why, picture="figure10.png"),
    ]


def _low_prices(by_request: Rows) -> list[Comparison]:
    """Requests close to the minimum prices "resulted in fewer rounds of bidding, but achieved better prices"."""
    rounds, prices = {}, {}
    for low in (True, False):
        chosen = [row for row in by_request if (row["price"] <= LOW_PRICE) is low and row["winning_price"] is not None]
        if not chosen:
            return []
        rounds[low] = fmean(
            sum(row[f"mean_offer_{number}"] is not None for number in range(1, ROUNDS + 1)) for row in chosen
        )
        prices[low] = fmean(row["winning_price"] for row in chosen)
    what = f"requests up to {LOW_PRICE} credits less those above"
    return [
        Comparison(
            f"{what}: rounds with offers", "fewer", rounds[True] - rounds[False], "rounds", at_most=-0.25,
            why="enough machines are cheap enough for a third round", picture="figure8a.png",
        ),
        Comparison(
            f"{what}: winning price", "better", prices[True] - prices[False], "credits", at_most=-1.0,
            why="the winner's minimum price decides, whatever was asked", picture="figure8a.png",
        ),
    ]  # fmt: skip
