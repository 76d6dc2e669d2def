"""What the paper's sections 10 and 11 say in words of its workloads, as numbers of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from simulation.experiments.market_paper import ROUNDS
from simulation.experiments.result import Comparison

Rows = Sequence[Mapping[str, Any]]

BIGGEST_WINNER: Final = "atlas1"
MOST_ATTRACTIVE: Final = ("curie1", "curie3")
LOW_PRICE: Final = 35
"""Requests up to this price, in credits per core hour, are close to the minimum prices of most machines."""


def statements(
    by_request: Rows, by_resource: Rows, shares: Rows, attractive: Rows, names: Mapping[str, str]
) -> list[Comparison]:
    """The statements beside our numbers.

    Args:
        by_request: rows of `figure8a.csv`.
        by_resource: rows of `figure10.csv`.
        shares: rows of `figure9a.csv`.
        attractive: resources by mean attractiveness, most attractive first.
        names: of the resources as the rows have them.
    """
    won = {row["resource"]: row["share_percent"] for row in shares}
    result = [
        Comparison(f"share of {BIGGEST_WINNER}", "the largest", won.get(names[BIGGEST_WINNER], 0.0), "%"),
        Comparison("largest share", "not told", max(won.values(), default=0.0), "%"),
    ]
    ranks = {row["resource"]: rank for rank, row in enumerate(attractive, 1)}
    for resource in MOST_ATTRACTIVE:
        if names[resource] in ranks:
            rank = ranks[names[resource]]
            result.append(Comparison(f"rank of {resource} by attractiveness", "1 or 2", rank, "", at_most=2))
    shares_of_best = sum(won.get(row["resource"], 0.0) for row in attractive[: len(won)])
    what = f"won by the {len(won)} most attractive resources"
    result.append(Comparison(what, "in general all", shares_of_best, "%"))
    between = [
        row["minimum_price"] <= row["mean_offer"] <= row["start_price"]
        for row in by_resource
        if row["mean_offer"] is not None
    ]
    what = "mean offers between minimum and start price"
    result.append(Comparison(what, "roughly all", 100 * fmean(between), "%"))
    for low, words, said in ((True, "up to", "fewer"), (False, "above", "more")):
        chosen = [row for row in by_request if (row["price"] <= LOW_PRICE) is low and row["winning_price"] is not None]
        if chosen:
            rounds = fmean(
                sum(row[f"mean_offer_{number}"] is not None for number in range(1, ROUNDS + 1)) for row in chosen
            )
            what = f"rounds with offers, requests {words} {LOW_PRICE} credits"
            result.append(Comparison(what, said, rounds, "rounds"))
    return result
