"""Table 4 and figure 11a: one unit, one to ten rounds of bidding, the same request each time.

The paper does not give the request; its exp1 (16 cores in five minutes at 70 credits) is taken. Every repetition is a
market of its own, opened at another age of its machines, in which the ten auctions follow one another. The paper's
rounds last a fixed 15 s; ours close as soon as all answers are in. Beyond the paper: how far the sale price stays above
the best price that any seller able to serve the request would have accepted, its minimum price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any, Final

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol.events import AuctionOptions
from simulation.experiments.market_paper import FLAT_FROM_ROUNDS, REPETITIONS, TABLE4
from simulation.experiments.market_plan import (
    SYNTHETIC_NOTE,
    MarketPlan,
    MarketResult,
    Submission,
    UnitWish,
    marked_names,
    table2_resources,
)
from simulation.experiments.market_study import Study, market_experiment
from simulation.experiments.market_tables import drawn_ages, straight_line
from simulation.experiments.result import Comparison, write_rows
from simulation.plots.market_rounds import draw_rounds

WISH: Final = UnitWish(price=70, cores=16, lead=5 * MINUTE)
MOST_ROUNDS: Final = 10
SPACING: Final = 2 * SECOND
"""Between two submissions; an auction takes a fraction of it."""

FLAT_POINTS: Final = 2.0
"""Credits by which the price may still fall after a round that counts as the begin of the flat part."""


def run(study: Study) -> dict[str, Any]:
    """Run the experiment; returns its summary.

    Args:
        study: its options.
    """
    repetitions = study.repetitions(REPETITIONS)
    plans = plans_of(study.seed, repetitions)
    results = study.run(plans)
    auctions = [row for number, result in enumerate(results, 1) for row in _auction_rows(number, result)]
    table = _table(auctions)
    write_rows(study.out / "auctions.csv", auctions)
    write_rows(study.out / "table4.csv", table)
    draw_rounds(study.out / "table4.csv", study.out / "figure11a.png", study.mode, SYNTHETIC_NOTE)
    return study.summary(
        plans,
        parameters={
            "request": "16 cores for an hour, starting in 5 minutes, at most 70 credits per core hour",
            "repetitions": repetitions,
            "best_acceptable": "least minimum price of the resources that had the slot",
        },
        comparisons=_comparisons(table),
        findings={"table": table},
    )


def plans_of(seed: int, repetitions: int, most_rounds: int = MOST_ROUNDS) -> list[MarketPlan]:
    """The markets of the study, one a repetition.

    Args:
        seed: draws the machines' ages.
        repetitions: how many.
        most_rounds: auctions of 1 to so many rounds.
    """
    submissions = tuple(
        Submission(f"rounds-{rounds}", "user1", rounds * SPACING, (WISH,), AuctionOptions(rounds=rounds))
        for rounds in range(1, most_rounds + 1)
    )
    resources = table2_resources()
    return [
        MarketPlan(f"repetition {number}", resources, 1, submissions, age=age, seed=seed)
        for number, age in enumerate(drawn_ages(seed, repetitions), 1)
    ]


def _auction_rows(repetition: int, result: MarketResult) -> list[dict[str, Any]]:
    minimum = {each.name: each.prices.minimum_price for each in result.plan.resources}
    names = marked_names(result.plan.resources)
    rows = []
    for auction in result.auctions:
        price, winner = auction.price(), auction.winner()
        best = min((minimum[name] for name in auction.able()), default=None)
        rows.append(
            {
                "repetition": repetition,
                "age_hours": result.plan.age / HOUR,
                "rounds": auction.submission.options.rounds,
                "status": str(auction.outcome.status),
                "price": price,
                "winner": "" if winner is None else names[winner],
                "best_acceptable": best,
                "gap": None if price is None or best is None else price - best,
                "duration_s": round(auction.outcome.duration / SECOND, 4),
                "mean_round_s": round(fmean(auction.round_durations) / SECOND, 4),
                "negotiation_s": round(auction.negotiation / SECOND, 4),
            }
        )
    return rows


def _table(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Table 4 with the paper's columns and ours."""
    table = []
    for rounds in sorted({row["rounds"] for row in rows}):
        sold = [row for row in rows if row["rounds"] == rounds and row["price"] is not None]
        if not sold:
            continue
        prices = [row["price"] for row in sold]
        durations = [row["duration_s"] for row in sold]
        table.append(
            {
                "rounds": rounds,
                "paper_price": TABLE4[rounds][0],
                "price": round(fmean(prices), 2),
                "price_sd": round(pstdev(prices), 2),
                "best_acceptable": round(fmean(row["best_acceptable"] for row in sold), 2),
                "gap": round(fmean(row["gap"] for row in sold), 2),
                "paper_duration_s": TABLE4[rounds][1],
                "duration_s": round(fmean(durations), 3),
                "duration_sd_s": round(pstdev(durations), 3),
                "winners": " ".join(sorted({row["winner"] for row in sold})),
                "sold": len(sold),
            }
        )
    return table


def flat_from(prices: Mapping[int, float]) -> int:
    """First number of rounds after which no further rounds bring the price down by more than `FLAT_POINTS`."""
    least = min(prices.values())
    return min(rounds for rounds, price in prices.items() if price - least <= FLAT_POINTS)


def _comparisons(table: Sequence[Mapping[str, Any]]) -> list[Comparison]:
    ours = {row["rounds"]: row["price"] for row in table}
    paper = {rounds: TABLE4[rounds][0] for rounds in ours}
    first, last = min(ours), max(ours)
    result = [
        Comparison("rounds from which the price is flat", FLAT_FROM_ROUNDS, flat_from(ours), "rounds", tolerance=1)
    ]
    rises = max((ours[more] - ours[fewer] for fewer in ours for more in ours if more == fewer + 1), default=0.0)
    rise_of_paper = max((paper[more] - paper[more - 1] for more in paper if more - 1 in paper), default=0.0)
    result.append(Comparison("largest rise of price by one more round", round(rise_of_paper, 2), rises, "credits"))
    fall = 100 * (1 - ours[last] / ours[first])
    fall_of_paper = 100 * (1 - paper[last] / paper[first])
    what = f"price falls from {first} to {last} rounds by"
    result.append(Comparison(what, round(fall_of_paper, 1), fall, "%"))
    result += [
        Comparison(f"{row['rounds']} rounds: sale price", row["paper_price"], row["price"], "credits") for row in table
    ]
    for row in table:
        # the paper's rounds last a fixed time and ours close with the last answer, so neither can confirm the other
        what, paper_s = f"{row['rounds']} rounds: duration", row["paper_duration_s"]
        result.append(Comparison(what, paper_s, row["duration_s"], "s"))
    _, _, fit = straight_line([(row["rounds"], row["duration_s"]) for row in table])
    _, _, fit_of_paper = straight_line([(row["rounds"], row["paper_duration_s"]) for row in table])
    result.append(Comparison("duration over rounds: R² of a line", round(fit_of_paper, 4), fit, ""))
    return result


def _tell(summary: Mapping[str, Any]) -> list[str]:
    lines = [f"Table 4 again, {summary['parameters']['mode']}:"]
    lines.append("rounds   paper price   our price (sd)   best acceptable    gap   paper duration s   our duration s")
    lines += [
        f"{row['rounds']:6}   {row['paper_price']:11.2f}   {row['price']:9.2f} ({row['price_sd']:.2f}) "
        f"{row['best_acceptable']:15.2f} {row['gap']:8.2f}   {row['paper_duration_s']:16.2f}   "
        f"{row['duration_s']:14.3f}   {row['winners']}"
        for row in summary["table"]
    ]
    return lines


EXPERIMENTS: Final = (
    market_experiment(
        "rounds",
        "sale price and duration over 1 to 10 rounds of bidding (RAMP, Table 4 and figure 11a)",
        run,
        _tell,
    ),
)
