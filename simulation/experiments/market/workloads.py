"""Tables 2 and 3, figures 8, 9 and 10: thirteen requests on twenty machines, three rounds of bidding.

Every repetition is a market of its own, opened at another age of its machines, in which the requests of Table 3 follow
one another, each by a user of its own; what is bought stays reserved. The paper gives no wall times: an hour is taken,
starting exactly at the time asked for. In virtual time the figures over time (8b, 9b) come from a quotation every so
often over two days; over XMPP, where a day takes a day, from the purchases themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol.events import AuctionOptions
from ramp.runtime.configuration.values import ResourceConfig
from simulation.experiments.comparison import Comparison
from simulation.experiments.market.frame import drawn_ages, first_plan, market_study, mode_of, repetitions_of
from simulation.experiments.market.pictures import FIGURES
from simulation.experiments.market.statements import REPETITIONS, ROUNDS, TABLE3, medians, prices_and_sales, statements
from simulation.experiments.result import Column, Columns, grouped
from simulation.experiments.study import Found, Rows, Run, Shown, Study
from simulation.experiments.trials.plan import (
    AuctionResult,
    MarketPlan,
    Mode,
    Submission,
    UnitWish,
    offers_of,
    table2_resources,
    workload_of,
)

SPACING: Final = 2 * SECOND
"""Between two submissions; an auction takes a fraction of it."""

PROBE_HOURS: Final = 48
PROBE_EVERY: Final = 20 * MINUTE
QUICK_PROBE_EVERY: Final = 4 * HOUR
_OF_TABLE3: Final = frozenset(each.name for each in TABLE3)
TABLE3_PART: Final = "Table 3"
OVER_TIME: Final = "over time"
PROBE_WISH: Final = UnitWish(price=70, cores=16, lead=5 * MINUTE)
"""What the figures over time ask for: exp1."""

_PRICE: Final = "credits per core hour"
_COLUMNS: Final[Columns] = {
    "request": Column("", "of Table 3"),
    "price": Column(_PRICE, "that the request asks at most"),
    **{
        f"{name}_offer_{number}": Column(_PRICE, f"{words} offer in round {number}; empty: none was made")
        for number in range(1, ROUNDS + 1)
        for name, words in (("lowest", "lowest"), ("mean", "mean"))
    },
    "winning_price": Column(_PRICE, "at which it was sold; empty: it was not"),
    "round": Column("", "of bidding"),
    "request_price": Column(_PRICE, "that the request asks at most"),
    "asked": Column(_PRICE, "asking price of the round"),
    "offer": Column(_PRICE, "price that the resource offered"),
    "attractiveness": Column(_PRICE, "asking price less the offer"),
    "load": Column("share of the cores", "projected load that the offer was made at"),
    "source": Column("", "what the load was taken from"),
    "hours": Column("h", "running time of the machines at the submission"),
    "wins": Column("requests", "that the resource won"),
    "share_percent": Column("%", "of all requests won"),
    "minimum_price": Column(_PRICE, "of Table 2"),
    "mean_offer": Column(_PRICE, "mean of all its offers; empty: it made none"),
    "start_price": Column(_PRICE, "of Table 2"),
    "offers": Column("", "that it made"),
    "mean_attractiveness": Column(_PRICE, "mean of its attractiveness over time"),
}

PROBE_HEARTBEAT: Final = 3 * MINUTE
"""Of machines over days: fewer messages, and leases within what the directory grants."""


Machines = Callable[[], tuple[ResourceConfig, ...]]


def cases_on(machines: Machines) -> Callable[[Run], Mapping[str, Sequence[MarketPlan]]]:
    """Return what gives the markets of Table 3, and in virtual time one that is asked over two days."""

    def cases(run: Run) -> Mapping[str, Sequence[MarketPlan]]:
        every, resources = run.either(PROBE_EVERY, QUICK_PROBE_EVERY), machines()
        probes = [probe_plan(run.seed, every, resources)] if mode_of(run) is Mode.SIMULATED else []
        return {TABLE3_PART: plans_of(run.seed, repetitions_of(run, REPETITIONS), resources), OVER_TIME: probes}

    return cases


def plans_of(seed: int, repetitions: int, resources: tuple[ResourceConfig, ...]) -> list[MarketPlan]:
    """Return the markets of Table 3, one a repetition; the seed draws the machines' ages."""
    submissions = tuple(
        Submission(
            each.name,
            f"user{number}",
            number * SPACING,
            (UnitWish(each.price, each.cores, each.lead),),
            AuctionOptions(rounds=ROUNDS),
        )
        for number, each in enumerate(TABLE3, 1)
    )
    return [
        MarketPlan(f"repetition {number}", resources, len(TABLE3), submissions, age=age, seed=seed)
        for number, age in enumerate(drawn_ages(seed, repetitions), 1)
    ]


def probe_plan(seed: int, every: int, resources: tuple[ResourceConfig, ...]) -> MarketPlan:
    """A market that is only asked what it would cost, over two days."""
    options = AuctionOptions(rounds=1, quote_only=True)
    submissions = tuple(
        Submission(f"probe-{number}", "user1", number * every, (PROBE_WISH,), options)
        for number in range(PROBE_HOURS * HOUR // every + 1)
    )
    return MarketPlan("over time", resources, 1, submissions, seed=seed, heartbeat=PROBE_HEARTBEAT)


def workloads_of(found: Found) -> dict[str, str]:
    """Kind of each resource's workload."""
    return {each.name: workload_of(each) for each in first_plan(found).resources}


def _auctions(found: Found) -> list[tuple[int, AuctionResult]]:
    results = enumerate(found.answers[TABLE3_PART], 1)
    return [(repetition, auction) for repetition, result in results for auction in result.auctions]


def _requests(found: Found) -> Rows:
    workloads = workloads_of(found)
    rows = []
    for repetition, auction in _auctions(found):
        wish, winner = auction.submission.wishes[0], auction.winner()
        row: dict[str, Any] = {
            "repetition": repetition,
            "request": auction.submission.label,
            "cores": wish.cores,
            "start_in_min": wish.lead // MINUTE,
            "price": wish.price,
            "status": str(auction.outcome.status),
        }
        best: dict[int, list[int]] = {}
        for number, _, offer in offers_of(auction):
            best.setdefault(number, []).append(offer.cpu_hour_cost)
        for number in range(1, ROUNDS + 1):
            row[f"lowest_offer_{number}"] = min(best.get(number, []), default=None)
            row[f"mean_offer_{number}"] = round(fmean(best[number]), 3) if number in best else None
        row["winning_price"] = auction.price()
        row["winner"] = winner or ""
        row["workload"] = "" if winner is None else workloads[winner]
        row["duration_s"] = round(auction.outcome.duration / SECOND, 4)
        rows.append(row)
    return rows


def _offers(found: Found) -> Rows:
    workloads = workloads_of(found)
    return [
        {
            "repetition": repetition,
            "request": auction.submission.label,
            "round": number,
            "resource": offer.resource,
            "workload": workloads[offer.resource],
            "request_price": auction.submission.wishes[0].price,
            "asked": asked,
            "offer": offer.cpu_hour_cost,
            "attractiveness": asked - offer.cpu_hour_cost,
            "load": round(offer.load, 4),
            "source": offer.source,
        }
        for repetition, auction in _auctions(found)
        for number, asked, offer in offers_of(auction)
    ]


def _over_time(found: Found) -> Rows:
    workloads = workloads_of(found)
    return [
        {
            "hours": round((result.plan.age + auction.submission.at) / HOUR, 4),
            "resource": offer.resource,
            "workload": workloads[offer.resource],
            "request": auction.submission.label if auction.submission.label in _OF_TABLE3 else "",
            "asked": asked,
            "offer": offer.cpu_hour_cost,
            "attractiveness": asked - offer.cpu_hour_cost,
            "load": round(offer.load, 4),
        }
        for result in found.answers[OVER_TIME] or found.answers[TABLE3_PART]
        for auction in result.auctions
        for number, asked, offer in offers_of(auction)
        if number == 1
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return round(fmean(given), 2) if given else None


def _by_request(found: Found) -> Rows:
    requests, offers = found["requests"], found["offers"]
    table = []
    for workload in TABLE3:
        rows = [row for row in requests if row["request"] == workload.name]
        entry: dict[str, Any] = {
            "request": workload.name,
            "cores": workload.cores,
            "start_in_min": workload.lead // MINUTE,
            "price": workload.price,
        }
        for number in range(1, ROUNDS + 1):
            made = [each["offer"] for each in offers if (each["request"], each["round"]) == (workload.name, number)]
            entry[f"mean_offer_{number}"] = _mean(made)
        entry["winning_price"] = _mean([row["winning_price"] for row in rows])
        entry["sold"] = sum(row["winning_price"] is not None for row in rows)
        entry["of"] = len(rows)
        entry["winners"] = " ".join(sorted({row["winner"] for row in rows if row["winner"]}))
        table.append(entry)
    return table


def _shares(found: Found) -> Rows:
    """Figure 9a: who won how many."""
    workloads = workloads_of(found)
    wins = Counter(row["winner"] for row in found["requests"] if row["winner"])
    total = sum(wins.values()) or 1
    return [
        {
            "resource": name,
            "workload": workloads[name],
            "wins": count,
            "share_percent": round(100 * count / total, 1),
        }
        for name, count in sorted(wins.items(), key=lambda item: (-item[1], item[0]))
    ]


def _by_resource(found: Found) -> Rows:
    made: dict[str, list[int]] = {}
    for _, auction in _auctions(found):
        for _, _, offer in offers_of(auction):
            made.setdefault(offer.resource, []).append(offer.cpu_hour_cost)
    return [
        {
            "resource": each.name,
            "workload": workload_of(each),
            "minimum_price": each.prices.minimum_price,
            "mean_offer": _mean(list(made.get(each.name, []))),
            "start_price": each.prices.start_price,
            "offers": len(made.get(each.name, [])),
        }
        for each in first_plan(found).resources
    ]


def _attractive(found: Found) -> Rows:
    won = {row["resource"]: row["share_percent"] for row in found["figure9a"]}
    table = [
        {
            "resource": name,
            "mean_attractiveness": round(fmean(row["attractiveness"] for row in rows), 2),
            "share_percent": won.get(name, 0.0),
        }
        for (name,), rows in grouped(found["over_time"], "resource").items()
    ]
    return sorted(table, key=lambda row: -row["mean_attractiveness"])


def _comparisons(found: Found) -> Sequence[Comparison]:
    requests, shares = found["requests"], found["figure9a"]
    return [
        *prices_and_sales(requests, medians(requests, found["offers"]), shares),
        *statements(found["figure8a"], found["figure10"], shares, found["attractive"]),
    ]


def _what_is_over_time(found: Found) -> str:
    if not found.cases.get(OVER_TIME):
        return "the purchases"
    every = found.run.either(PROBE_EVERY, QUICK_PROBE_EVERY) // MINUTE
    return f"a quotation for exp1 at 70 credits every {every} minutes over {PROBE_HOURS} hours"


def study_on(name: str, where: str, machines: Machines) -> Study:
    """Return the study on other machines than Table 2's at its base times; `where` follows their name in its title."""
    return market_study(
        name=name,
        about=f"Table 3's requests on Table 2's machines{where}: prices, winners (RAMP, figures 8 to 10)",
        cases=cases_on(machines),
        tables={
            "requests": _requests,
            "offers": _offers,
            "figure8a": _by_request,
            "over_time": _over_time,
            "figure9a": _shares,
            "figure10": _by_resource,
            "attractive": _attractive,
        },
        columns=_COLUMNS,
        figures=FIGURES,
        comparisons=_comparisons,
        shown=(
            Shown(
                "figure8a",
                "request cores start_in_min price mean_offer_1 mean_offer_2 mean_offer_3 winning_price sold of winners",
            ),
            Shown("figure9a", "resource wins share_percent", "Wins"),
        ),
        parameters=lambda found: {
            "rounds": ROUNDS,
            "repetitions": repetitions_of(found.run, REPETITIONS),
            "wall_time": "one hour, starting exactly at the time asked for (the paper gives none)",
            "over_time": _what_is_over_time(found),
        },
    )


EXPERIMENTS: Final = (study_on("workloads", "", table2_resources),)
