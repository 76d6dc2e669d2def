"""Tables 2 and 3, figures 8, 9 and 10: thirteen requests on twenty machines, three rounds of bidding.

Every repetition is a market of its own, opened at another age of its machines, in which the requests of Table 3 follow
one another, each by a user of its own; what is bought stays reserved. The paper gives no wall times: an hour is taken,
starting exactly at the time asked for. In virtual time the figures over time (8b, 9b) come from a quotation every so
often over two days; over XMPP, where a day takes a day, from the purchases themselves.

The paper's immediate request for 20 480 cores failed for want of free cores. Whether ours does depends on the logs at
hand (Intrepid's is missing, Curie's is the cleaned one), so quotations for more and more cores follow the purchases:
they find the size from which an immediate request fails while the same one in twelve hours does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol.events import AuctionOptions
from simulation.experiments.market.experiment_frame import Study, market_experiment
from simulation.experiments.market.paper import MEDIAN_OFFER_PERCENT, REPETITIONS, ROUNDS, TABLE3
from simulation.experiments.market.plots.workloads import (
    draw_figure8a,
    draw_figure8b,
    draw_figure9a,
    draw_figure9b,
    draw_figure10,
)
from simulation.experiments.market.statements import medians, prices_and_sales, statements
from simulation.experiments.market.statistics import drawn_ages
from simulation.experiments.market.very_large import (
    quotations,
    very_large_lines,
    very_large_rows,
    very_large_table,
    without_quotations,
)
from simulation.experiments.result import Column, Columns, write_rows
from simulation.experiments.trials.plan import (
    MarketPlan,
    MarketResult,
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
PROBE_WISH: Final = UnitWish(price=70, cores=16, lead=5 * MINUTE)
"""What the figures over time ask for: exp1."""

FOUR_RESOURCES: Final = ("atlas1", "curie1", "curie3", "thunder3")
"""Shown in figure 9b; the paper does not say which four it shows."""

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
    "very_large.csv/sold": Column("", "whether somebody would have served it"),
    "sold_by_real_log": Column("", "whether a machine with a real log would have"),
    "able": Column("", "resources that would have"),
    "able_real_log": Column("", "of these, those with real logs"),
}

PROBE_HEARTBEAT: Final = 3 * MINUTE
"""Of machines over days: fewer messages, and leases within what the directory grants."""


def run(study: Study) -> dict[str, Any]:
    """Run the experiment; returns its summary."""
    out, repetitions = study.out, study.repetitions(REPETITIONS)
    plans = plans_of(study.seed, repetitions)
    simulated = study.mode is Mode.SIMULATED
    probes = [probe_plan(study.seed, QUICK_PROBE_EVERY if study.quick else PROBE_EVERY)] if simulated else []
    everything = study.run([*plans, *probes])
    very_large = [
        row for number, each in enumerate(everything[:repetitions], 1) for row in very_large_rows(number, each)
    ]
    results = [without_quotations(each) for each in everything[:repetitions]]
    requests = [row for number, result in enumerate(results, 1) for row in _request_rows(number, result)]
    offers = [row for number, result in enumerate(results, 1) for row in _offer_rows(number, result)]
    over_time = [row for result in everything[repetitions:] or results for row in _time_rows(result)]
    workloads = {each.name: workload_of(each) for each in plans[0].resources}
    by_request, shares, by_resource = _by_request(requests, offers), _shares(requests, workloads), _by_resource(results)
    attractive = _attractive(over_time, shares)
    for name, rows in (
        ("requests.csv", requests),
        ("offers.csv", offers),
        ("figure8a.csv", by_request),
        ("over_time.csv", over_time),
        ("very_large.csv", very_large),
        ("figure9a.csv", shares),
        ("figure10.csv", by_resource),
    ):
        write_rows(out / name, rows)
    over_time_is = f"a quotation for exp1 at 70 credits every {_every(study.quick)}" if simulated else "the purchases"
    note, quick, mode = study.footnote(plans), study.quick, study.mode
    ours = medians(requests, offers)
    draw_figure8a(out / "figure8a.csv", out / "figure8a.png", mode, (MEDIAN_OFFER_PERCENT, ours), note, quick=quick)
    draw_figure8b(out / "over_time.csv", out / "figure8b.png", workloads, mode, note, quick=quick)
    draw_figure9a(out / "figure9a.csv", out / "figure9a.png", mode, note, quick=quick)
    draw_figure9b(out / "over_time.csv", out / "figure9b.png", FOUR_RESOURCES, mode, note, quick=quick)
    draw_figure10(out / "figure10.csv", out / "figure10.png", mode, note, quick=quick)
    return study.summary(
        plans,
        parameters={
            "rounds": ROUNDS,
            "repetitions": repetitions,
            "wall_time": "one hour, starting exactly at the time asked for (the paper gives none)",
            "over_time": over_time_is,
        },
        comparisons=[
            *prices_and_sales(requests, ours, shares, very_large),
            *statements(by_request, by_resource, shares, attractive),
        ],
        findings={
            "requests": by_request,
            "shares": shares,
            "resources": by_resource,
            "very_large": very_large_table(very_large),
            "attractive": attractive,
        },
        columns=_COLUMNS,
    )


def plans_of(seed: int, repetitions: int) -> list[MarketPlan]:
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
    resources = table2_resources()
    return [
        MarketPlan(
            f"repetition {number}",
            resources,
            len(TABLE3),
            submissions + quotations(len(submissions) + 1, SPACING),
            age=age,
            seed=seed,
        )
        for number, age in enumerate(drawn_ages(seed, repetitions), 1)
    ]


def probe_plan(seed: int, every: int) -> MarketPlan:
    """A market that is only asked what it would cost, over two days."""
    options = AuctionOptions(rounds=1, quote_only=True)
    submissions = tuple(
        Submission(f"probe-{number}", "user1", number * every, (PROBE_WISH,), options)
        for number in range(PROBE_HOURS * HOUR // every + 1)
    )
    return MarketPlan("over time", table2_resources(), 1, submissions, seed=seed, heartbeat=PROBE_HEARTBEAT)


def _every(quick: bool) -> str:
    return f"{(QUICK_PROBE_EVERY if quick else PROBE_EVERY) // MINUTE} minutes over {PROBE_HOURS} hours"


def _request_rows(repetition: int, result: MarketResult) -> list[dict[str, Any]]:
    workloads = {each.name: workload_of(each) for each in result.plan.resources}
    rows = []
    for auction in result.auctions:
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


def _offer_rows(repetition: int, result: MarketResult) -> list[dict[str, Any]]:
    workloads = {each.name: workload_of(each) for each in result.plan.resources}
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
        for auction in result.auctions
        for number, asked, offer in offers_of(auction)
    ]


def _time_rows(result: MarketResult) -> list[dict[str, Any]]:
    """Offers of first rounds over the machines' age."""
    workloads = {each.name: workload_of(each) for each in result.plan.resources}
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
        for auction in result.auctions
        for number, asked, offer in offers_of(auction)
        if number == 1
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return round(fmean(given), 2) if given else None


def _by_request(requests: Sequence[Mapping[str, Any]], offers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Figure 8a: means over the repetitions."""
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


def _shares(requests: Sequence[Mapping[str, Any]], workloads: Mapping[str, str]) -> list[dict[str, Any]]:
    """Figure 9a: who won how many."""
    wins = Counter(row["winner"] for row in requests if row["winner"])
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


def _by_resource(results: Sequence[MarketResult]) -> list[dict[str, Any]]:
    """Figure 10: mean offer of every resource beside its minimum and start price."""
    made: dict[str, list[int]] = {}
    for result in results:
        for auction in result.auctions:
            for _, _, offer in offers_of(auction):
                made.setdefault(offer.resource, []).append(offer.cpu_hour_cost)
    resources = results[0].plan.resources
    return [
        {
            "resource": each.name,
            "workload": workload_of(each),
            "minimum_price": each.prices.minimum_price,
            "mean_offer": _mean(list(made.get(each.name, []))),
            "start_price": each.prices.start_price,
            "offers": len(made.get(each.name, [])),
        }
        for each in resources
    ]


def _attractive(over_time: Sequence[Mapping[str, Any]], shares: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mean attractiveness beside the share of wins: do the most attractive resources win?"""
    won = {row["resource"]: row["share_percent"] for row in shares}
    by_resource: dict[str, list[int]] = {}
    for row in over_time:
        by_resource.setdefault(row["resource"], []).append(row["attractiveness"])
    table = [
        {"resource": name, "mean_attractiveness": round(fmean(values), 2), "share_percent": won.get(name, 0.0)}
        for name, values in by_resource.items()
    ]
    return sorted(table, key=lambda row: -row["mean_attractiveness"])


def _tell(summary: Mapping[str, Any]) -> list[str]:
    lines = [f"Table 3 on Table 2, {ROUNDS} rounds, means over repetitions, {summary['parameters']['mode']}:"]
    lines.append("request  cores  start min  price   offers in round 1, 2, 3    won at   sold  winners")
    for row in summary["requests"]:
        offers = "".join(_number(row[f"mean_offer_{number}"]) for number in range(1, ROUNDS + 1))
        lines.append(
            f"{row['request']:7} {row['cores']:6} {row['start_in_min']:10} {row['price']:6} {offers}   "
            f"{_number(row['winning_price'])}   {row['sold']}/{row['of']}   {row['winners']}"
        )
    lines.append("wins: " + ", ".join(f"{row['resource']} {row['share_percent']:g} %" for row in summary["shares"]))
    lines += very_large_lines(summary["very_large"])
    return lines


def _number(value: float | None) -> str:
    return f"{'-' if value is None else format(value, '.2f'):>8}"


EXPERIMENTS: Final = (
    market_experiment(
        "workloads",
        "Table 3's requests on Table 2's machines: prices, winners, attractiveness (RAMP, figures 8 to 10)",
        run,
        _tell,
    ),
)
