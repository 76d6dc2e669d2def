"""Beyond the paper: what an auction costs when the market grows, 20 to 1000 resources and 1 to 1000 users.

The machines are Table 2's over and over, each copy standing at another place of its log. All users ask at the same
moment, one unit each, with one round of bidding. In virtual time messages take a millisecond and processing nothing, so
that the CPU time of the simulation itself is what is measured: that of parties, prices, machines and message passing,
without XML and XMPP. Over XMPP the market grows as far as this machine carries it: a size whose market does not come
up, or whose requests cannot be followed to their end, ends the series and is part of the result.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import psutil

from ramp.errors import TransportError
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol.events import AuctionOptions
from ramp.runtime.configuration.values import ResourceConfig
from simulation.experiments.comparison import Comparison
from simulation.experiments.discovery import Progress
from simulation.experiments.market.experiment_frame import Study, market_experiment, run_plans
from simulation.experiments.market.plots.scale import draw_scale
from simulation.experiments.market.statistics import drawn_ages, mean_and_deviation
from simulation.experiments.result import Column, Columns, write_rows
from simulation.experiments.trials.plan import (
    MarketPlan,
    MarketResult,
    Mode,
    Submission,
    UnitWish,
    table2_resources,
)

Row = dict[str, Any]
SIZES: Final[Mapping[Mode, tuple[tuple[int, int], ...]]] = {
    Mode.SIMULATED: tuple(
        (resources, users) for resources in (20, 50, 100, 200, 500, 1000) for users in (1, 10, 100, 1000)
    ),
    Mode.XMPP: ((20, 1), (20, 10), (20, 30), (20, 100), (50, 10), (100, 10), (200, 10), (200, 50)),
}
"""(resources, users), growing."""

QUICK_SIZES: Final[Mapping[Mode, tuple[tuple[int, int], ...]]] = {
    Mode.SIMULATED: ((20, 1), (20, 10), (20, 100), (100, 1), (100, 10), (100, 100)),
    Mode.XMPP: ((20, 1), (20, 10), (40, 10)),
}
_BEYOND: Final = "beyond the paper, which has 20 resources and up to 30 users"
_COLUMNS: Final[Columns] = {
    "answers": Column("", "of resources to calls"),
    "called_again": Column("", "calls that were sent again"),
    "messages": Column("", "between agents, heartbeats left out"),
    "cpu_s": Column("s", "CPU time of all processes while requests were running"),
    "cpu_us_per_answer": Column("us", "CPU time over answers"),
    "mean_purchase_s": Column("s", "from the submission to the end of the purchase, mean"),
    "wall_s": Column("s", "wall time from the opening to the end of the last request"),
    "launch_s": Column("s", "wall time until everybody was ready"),
    "memory_mb": Column("MiB", "resident memory of all processes"),
}
WISH: Final = UnitWish(price=70, cores=16, lead=5 * MINUTE, slack=24 * HOUR)
"""With a day of slack: a thousand users must not fail for want of cores at one minute."""

OPTIONS: Final = AuctionOptions(rounds=1, round_time=5 * MINUTE)
BEGIN: Final = 1 * SECOND
SHIFT_S: Final = 7_919
"""Seconds of the log between two copies of a machine; a prime, so that copies do not share a rhythm."""


def run(study: Study) -> dict[str, Any]:
    """Run the experiment; returns its summary."""
    repetitions = study.repetitions(1)
    sizes = (QUICK_SIZES if study.quick else SIZES)[study.mode]
    plans = plans_of(study.seed, repetitions, sizes)
    table, ended = _run_growing(study.mode, plans, study.on_progress)
    write_rows(study.out / "scale.csv", table)
    draw_scale(study.out / "scale.csv", study.out / "scale.png", study.mode, study.footnote(plans), quick=study.quick)
    return study.summary(
        plans,
        parameters={
            "sizes": [list(size) for size in sizes],
            "repetitions": repetitions,
            "rounds": 1,
            "request": "16 cores for an hour within a day, at most 70 credits per core hour",
        },
        comparisons=_comparisons(table),
        findings={"table": table, "ended": ended},
        columns=_COLUMNS,
    )


def _run_growing(mode: Mode, plans: Sequence[MarketPlan], on_progress: Progress | None) -> tuple[list[Row], str]:
    """A row for each of the sizes that the machine carries, and what ended the series.

    One size after another, for CPU times of markets that share the machine would mean little; and only the row is kept,
    for the largest market makes a million offers.
    """
    rows: list[Row] = []
    if on_progress is not None:
        on_progress(0, len(plans))
    for plan in plans:
        try:
            (result,) = run_plans(mode, [plan], processes=1, on_progress=None)
        except TransportError as error:
            return rows, f"{plan.label}: {str(error).splitlines()[0][:300]}"
        rows.append(_row(result))
        del result
        gc.collect()  # else a small market's CPU time would have the sweeping up of the large one before it
        if on_progress is not None:
            on_progress(len(rows), len(plans))
    return rows, ""


def plans_of(seed: int, repetitions: int, sizes: Sequence[tuple[int, int]]) -> list[MarketPlan]:
    """Return one market for each size (resources, users) and repetition; the seed draws the machines' ages."""
    return [
        MarketPlan(
            f"{count} resources, {users} users",
            many_resources(count),
            users,
            tuple(Submission(f"by-user{user}", f"user{user}", BEGIN, (WISH,), OPTIONS) for user in range(1, users + 1)),
            age=age,
            seed=seed,
            heartbeat=MINUTE,
            resources_per_process=max(10, count // 4),
            round_trips_cost=False,
        )
        for count, users in sizes
        for age in drawn_ages(seed, repetitions)
    ]


def many_resources(count: int) -> tuple[ResourceConfig, ...]:
    """Table 2's machines, repeated with other base times."""
    table2 = table2_resources()
    found = []
    for number in range(count):
        original, copy = table2[number % len(table2)], number // len(table2)
        if copy == 0:
            found.append(original)
            continue
        base = int(original.options["base_time_s"]) + copy * SHIFT_S
        options = {**original.options, "base_time_s": base}
        found.append(replace(original, name=f"{original.name}-{copy}", options=options))
    return tuple(found)


def _row(result: MarketResult) -> Row:
    auctions = result.auctions
    memory_mb = sum(each.memory_mb for each in result.processes) or psutil.Process().memory_info().rss / 2**20
    answers = sum(len(each) for auction in auctions for each in auction.answered)
    return {
        "resources": len(result.plan.resources),
        "users": result.plan.users,
        "sold": sum(auction.sold for auction in auctions),
        "answers": answers,
        "called_again": sum(auction.called_again for auction in auctions),
        "messages": result.messages,
        "cpu_s": round(result.cpu_s, 3),
        "cpu_ms_per_auction": round(1000 * result.cpu_s / len(auctions), 3),
        "cpu_us_per_answer": round(1e6 * result.cpu_s / max(answers, 1), 2),
        "mean_purchase_s": mean_and_deviation([each.outcome.duration / SECOND for each in auctions])[0],
        "wall_s": round(result.wall_s, 3),
        "launch_s": round(result.launch_s, 2),
        "memory_mb": round(memory_mb, 1),
        "foreign_cores": result.foreign_cores,
    }


def _comparisons(table: Sequence[Mapping[str, Any]]) -> list[Comparison]:
    """No paper to compare with: what growth costs, relative to the smallest and the busiest small market."""
    by_size = {(row["resources"], row["users"]): row for row in table}
    most_users = max(users for _, users in by_size)
    counts = sorted(resources for resources, users in by_size if users == most_users)
    result = []
    if len(counts) > 1:
        few, many = (by_size[count, most_users] for count in (counts[0], counts[-1]))
        what = f"CPU per answer, {counts[-1]} over {counts[0]} resources, {most_users} users"
        ratio = many["cpu_us_per_answer"] / few["cpu_us_per_answer"]
        result.append(Comparison(what, "not studied", ratio, "times", why=_BEYOND, picture="scale.png"))
    smallest = min(resources for resources, _ in by_size)
    users = sorted(users for resources, users in by_size if resources == smallest)
    if len(users) > 1:
        few, many = (by_size[smallest, count] for count in (users[0], users[-1]))
        what = f"CPU per auction, {users[-1]} over {users[0]} users, {smallest} resources"
        ratio = many["cpu_ms_per_auction"] / few["cpu_ms_per_auction"]
        result.append(Comparison(what, "not studied", ratio, "times", why=_BEYOND, picture="scale.png"))
    answers = table[-1]["answers"]
    result.append(Comparison("largest market: answers to calls", "600", answers, "", why=_BEYOND, picture="scale.png"))
    return result


def _tell(summary: Mapping[str, Any]) -> list[str]:
    lines = [f"Growing markets, one round, {summary['parameters']['mode']}:"]
    lines.append(
        "resources  users   sold   called again   CPU ms an auction   CPU us an answer   mean purchase s   CPU s   "
        "memory MB   foreign cores"
    )
    lines += [
        f"{row['resources']:9} {row['users']:6} {row['sold']:6}   {row['called_again']:12}   "
        f"{row['cpu_ms_per_auction']:17.2f}   "
        f"{row['cpu_us_per_answer']:16.1f}   {row['mean_purchase_s']:15.3f} {row['cpu_s']:7.2f}   "
        f"{row['memory_mb']:9.0f}   {row['foreign_cores']:13.2f}"
        for row in summary["table"]
    ]
    if summary["ended"]:
        lines.append(f"ended at {summary['ended']}")
    return lines


EXPERIMENTS: Final = (
    market_experiment(
        "scale",
        "cost of an auction with 20 to 1000 resources and 1 to 1000 users (beyond the paper)",
        run,
        _tell,
    ),
)
