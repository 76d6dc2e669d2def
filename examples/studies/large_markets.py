"""Markets beyond the paper's: how their cost grows, what it goes into, and which requests are too large.

`SCALE`: 20 to 1000 resources and 1 to 1000 users who ask at the same moment, one unit each, with one round of bidding.
Messages take a millisecond and processing nothing: what is measured is the CPU time of parties, prices, machines and
message passing, without XML and XMPP.
`PROFILE`: what the CPU time of thirty users goes into, by function.
`VERY_LARGE`: from which size an immediate request fails; the paper's immediate one for 20 480 cores did.

ramp experiment run examples/studies/large_markets.py:SCALE --out results --quick
"""

import cProfile
import gc
import pstats
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psutil

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol.events import AuctionOptions
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.market.frame import MARKET_COLUMNS, drawn_ages, first_plan, market_study, mean_and_deviation
from simulation.experiments.market.users import plans_of
from simulation.experiments.measuring import one_by_one
from simulation.experiments.result import Column, grouped
from simulation.experiments.study import Comparison, Shown, Study, rows_of
from simulation.experiments.trials.plan import (
    STAND_IN,
    MarketPlan,
    Submission,
    UnitWish,
    table2_resources,
    workload_of,
)
from simulation.experiments.trials.simulated import run_simulated

# -- growing markets ---------------------------------------------------------------------------------------------------

SHIFT_S = 7_919
"""Seconds of the log between two copies of a machine; a prime, so that copies do not share a rhythm."""
WISH = UnitWish(price=70, cores=16, lead=5 * MINUTE, slack=24 * HOUR)
"""With a day of slack: a thousand users must not fail for want of cores at one minute."""
AUCTION = AuctionOptions(rounds=1, round_time=5 * MINUTE)


def many_resources(count):
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


def row_of(plan):
    """Run one market; only its row is kept, for the largest makes a million offers."""
    result = run_simulated(plan)
    gc.collect()  # else the next market's CPU time would have the sweeping up of this one before it
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


def growing_markets(run):
    """Every number of resources with every number of users."""
    (age,) = drawn_ages(run.seed, 1)
    return [
        MarketPlan(
            f"{count} resources, {users} users",
            many_resources(count),
            users,
            tuple(
                Submission(f"by-user{user}", f"user{user}", SECOND, (WISH,), AUCTION) for user in range(1, users + 1)
            ),
            age=age,
            seed=run.seed,
            heartbeat=MINUTE,
            round_trips_cost=False,
        )
        for count in run.either((20, 50, 100, 200, 500, 1000), (20, 100))
        for users in run.either((1, 10, 100, 1000), (1, 10, 100))
    ]


SCALE = Study(
    name="scale",
    about="cost of an auction with 20 to 1000 resources and 1 to 1000 users (beyond the paper)",
    cases=growing_markets,
    measure=row_of,
    perform=one_by_one,
    tables={"scale": rows_of()},
    columns={
        **MARKET_COLUMNS,
        "answers": Column("", "of resources to calls"),
        "called_again": Column("", "calls that were sent again"),
        "messages": Column("", "between agents, heartbeats left out"),
        "cpu_s": Column("s", "CPU time while requests were running"),
        "cpu_us_per_answer": Column("us", "CPU time over answers"),
        "mean_purchase_s": Column("s", "from the submission to the end of the purchase, mean"),
        "wall_s": Column("s", "wall time from the opening to the end of the last request"),
        "launch_s": Column("s", "wall time until everybody was ready"),
        "memory_mb": Column("MiB", "resident memory"),
    },
    figures={
        "scale.png": Figure(
            title="Beyond Zasada and Coveney: growing markets",
            size=(11, 5.2),
            draw=Curves(
                table="scale",
                x=Axis("resources", "resources in the market"),
                y=(
                    Axis("cpu_ms_per_auction", "CPU time of one auction (ms)"),
                    Axis("cpu_us_per_answer", "CPU time for one resource's answer (us)"),
                ),
                lines=("users",),
                title=lambda panel: panel[0],
            ),
            legend=4,
            note="All users ask at once, one unit each, one round of bidding.",
        )
    },
    shown=(Shown("scale", "resources users sold cpu_ms_per_auction cpu_us_per_answer cpu_s memory_mb"),),
)

# -- what the time goes into -------------------------------------------------------------------------------------------

BUILT_IN = "~"
"""What the profiler gives as the file of functions written in C."""
AREAS = {
    "signatures": ("signxml", "cryptography", "rfql/signing"),
    "XML": ("ramp/rfql", "lxml", "xml/"),
    "machines (quotes, reservations)": ("simulation/workload", "simulation/resource"),
    "the protocol": ("ramp/protocol", "ramp/model", "ramp/runtime", "ramp/ledger"),
    "the simulator itself": ("simulation/",),
}
"""What files are for, by parts of their paths; the first that fits counts."""

ROOT = Path(__file__).resolve().parents[2]


def profile_of(plan):
    """CPU time of a market in virtual time, XML and signatures included, by function."""
    run_simulated(replace(plan, submissions=plan.submissions[:1]), as_text=True)  # fills caches outside the profile
    profiler = cProfile.Profile()
    run_simulated(plan, as_text=True, profiler=profiler)
    return pstats.Stats(profiler).stats


def area(file):
    """What the code of a file is for."""
    return next((area for area, parts in AREAS.items() if any(part in file for part in parts)), "the rest")


def functions(found):
    """The functions that take most of the time."""
    (statistics,) = found.answers["runs"]
    whole = sum(entry[2] for entry in statistics.values()) or 1.0
    return [
        {
            "function": name,
            "place": f"{Path(file).relative_to(ROOT) if Path(file).is_relative_to(ROOT) else Path(file).name}:{line}",
            "calls": entry[1],
            "own_ms": round(1000 * entry[2], 2),
            "own_percent": round(100 * entry[2] / whole, 1),
        }
        for (file, line, name), entry in sorted(statistics.items(), key=lambda item: -item[1][2])[:25]
    ]


def areas(found):
    """What the time is for; that of functions written in C counts for their callers."""
    (statistics,) = found.answers["runs"]
    spent = Counter()
    for (file, _, _), (_, _, own, _, callers) in statistics.items():
        if file == BUILT_IN:
            for (caller, _, _), times in callers.items():
                spent[area(caller)] += times[2]
        else:
            spent[area(file)] += own
    whole = sum(spent.values()) or 1.0
    return [{"area": name, "percent": round(100 * time / whole, 1)} for name, time in spent.most_common()]


PROFILE = Study(
    name="profile",
    about="what the CPU time of many simultaneous users goes into",
    cases=lambda run: plans_of(run.seed, 1, (run.either(30, 5),), table2_resources()),
    measure=profile_of,
    perform=one_by_one,
    tables={"functions": functions, "areas": areas},
    columns={
        "function": Column("", "name of the function"),
        "place": Column("", "its file and line"),
        "calls": Column("", "how often it was called"),
        "own_ms": Column("ms", "CPU time of the function itself"),
        "own_percent": Column("%", "of all CPU time"),
        "area": Column("", "what functions are for"),
        "percent": Column("%", "of all CPU time"),
    },
    shown=(Shown("areas", "area percent"), Shown("functions", "function place calls own_ms own_percent")),
)

# -- very large requests -----------------------------------------------------------------------------------------------

EXP11_CORES = 20_480
CORES = tuple(range(EXP11_CORES, 8 * EXP11_CORES + 1, EXP11_CORES))
"""The first is that of the paper's exp11, the last is the largest machine of all."""


def quotations(run):
    """Quotations for more and more cores, now and in twelve hours; they change nothing."""
    asked = [(cores, lead) for cores in CORES for lead in (5 * MINUTE, 12 * HOUR)]
    submissions = tuple(
        Submission(
            f"{cores}-{lead // MINUTE}", "user1", number * 2 * SECOND, (UnitWish(80, cores, lead),),
            AuctionOptions(rounds=1, quote_only=True),
        )
        for number, (cores, lead) in enumerate(asked, 1)
    )  # fmt: skip
    ages = enumerate(drawn_ages(run.seed, run["repeat"] or run.either(3, 1)), 1)
    return [
        MarketPlan(f"repetition {number}", table2_resources(), 1, submissions, age=age, seed=run.seed)
        for number, age in ages
    ]


def very_large(found):
    """One row a quotation."""
    workloads = {each.name: workload_of(each) for each in first_plan(found).resources}
    return [
        {
            "repetition": repetition,
            "cores": auction.submission.wishes[0].cores,
            "start_in_min": auction.submission.wishes[0].lead // MINUTE,
            "sold": auction.sold,
            "able": " ".join(sorted(auction.able())),
            "able_real_log": " ".join(sorted(name for name in auction.able() if workloads[name] != STAND_IN)),
        }
        for repetition, result in enumerate(found.answers["runs"], 1)
        for auction in result.auctions
    ]


def served(found):
    """In how many repetitions a request of each size would be served."""
    return [
        {
            "cores": cores,
            "start_in_min": minutes,
            "served": sum(row["sold"] for row in rows),
            "served_by_real_logs": sum(bool(row["able_real_log"]) for row in rows),
        }
        for (cores, minutes), rows in grouped(found["very_large"], "cores", "start_in_min").items()
    ]


def smallest_refused(found):
    """The size from which an immediate request fails, beside that of the paper."""
    refused = [row["cores"] for row in found["very_large"] if row["start_in_min"] == 5 and not row["able_real_log"]]
    what = "size from which immediate requests fail, machines with real logs"
    why = "Intrepid's log is not at hand, and Curie's is the cleaned one, so that these machines are emptier"
    return [Comparison(what, EXP11_CORES, min(refused), "cores", tolerance=EXP11_CORES / 2, why=why)] if refused else []


VERY_LARGE = market_study(
    name="very-large",
    about="from which size an immediate request fails, where the same one in twelve hours does not",
    cases=quotations,
    tables={"very_large": very_large, "served": served},
    columns={
        "very_large.csv/sold": Column("", "whether somebody would have served it"),
        "able": Column("", "resources that would have"),
        "able_real_log": Column("", "of these, those with real logs"),
        "served": Column("", "repetitions in which it would have been served"),
        "served_by_real_logs": Column("", "the same by machines with real logs"),
    },
    comparisons=smallest_refused,
    shown=(Shown("served", "cores start_in_min served served_by_real_logs"),),
)
