"""The market on live torus machines: what request size and torus share do, and what a price for fragmentation does.

`torus-market` sends requests of growing size, and growing share of tori, to the swarm `quickstart`, which has Table 2's
flat machines and four live tori.
`torus-market-fragmentation` runs the same streams on tori alone, priced by the paper's formula and by `fragmentation`.
`torus-market-month` is one of those markets by itself, day by day, with the time that it takes.
The paper of the market (2014) had flat machines only, so there are no figures of its to compare with.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.result import Column, Columns, write_rows, write_summary
from simulation.experiments.torus_market.demand import MarketCase
from simulation.experiments.torus_market.plots import draw_fragmentation, draw_month, draw_torus_market
from simulation.experiments.torus_market.runs import MarketRun, run_market, swarm_resources
from simulation.experiments.trials.plan import STAND_IN_NOTE, stand_ins, workload_of
from simulation.experiments.worker_processes import run_all

SIZES: Final = (256, 1024, 4096, 16_384, 32_768, 65_536)
QUICK_SIZES: Final = (256, 16_384)
TORUS_SHARES: Final = (0.0, 0.5, 1.0)
QUICK_TORUS_SHARES: Final = (0.0, 1.0)
MIXED_SIZES: Final = (1024, 2048, 4096, 8192, 16_384)
"""Sizes of the streams of the pricing study: one to sixteen midplanes, eight to all nodes of the largest Angara."""
PRICINGS: Final = ("ramp", "fragmentation")
PRICE: Final = 80
"""What users pay at most; no machine starts higher, so price excludes nobody by itself."""
REQUESTS_A_DAY: Final = 12.0
DAYS: Final = 30
QUICK_DAYS: Final = 5
FRAGMENTATION_SEEDS: Final = 4
FRAGMENTATION_RATES: Final = (10.0, 30.0)
MONTH_SIZES: Final = (64, 256, 1024, 4096, 16_384)
"""Sizes of the month's requests; on each of the five machines some of them fit."""
MONTH_REQUESTS_A_DAY: Final = 48.0
_SHARE: Final = "share of the machine"
_COLUMNS: Final[Columns] = {
    "cores": Column("cores", "of each request; in sales.csv of the sale"),
    "request_cores": Column("cores", "sizes of the requests of the market"),
    "torus_share": Column("share of requests", "that want a torus"),
    "pricing": Column("", "strategy: ramp (the paper's formula) or fragmentation"),
    "requests_a_day": Column("1/day", "mean rate of requests"),
    "requests": Column("requests", "that were made"),
    "bought": Column("requests", "that were bought"),
    "success_rate": Column("share of requests", "that were bought"),
    "mean_price": Column("credits per core hour", "mean price of the sales"),
    "price_a_core_hour": Column("credits per core hour", "spent in all over core hours sold"),
    "mean_load": Column("share of the cores", "mean projected load at the offers that were bought"),
    "background": Column(_SHARE, "that its own users had; in tables of markets the mean over live machines"),
    "market": Column(_SHARE, "that was sold; in tables of markets the mean over live machines"),
    "mean_wait_h": Column("h", "mean wait of the machine's own jobs"),
    "refusals_first_round": Column("", "how many offers were refused for which reason in first rounds"),
    "days": Column("days", "for how long requests came"),
    "cpu_s": Column("s", "CPU time of the whole simulation"),
    "resource": Column("", "name of the seller"),
    "workload": Column("", "real log, stand-in (synthetic in place of a missing log) or generated"),
    "machine": Column("", "its machine file"),
    "sales": Column("", "units that it sold"),
    "background_jobs": Column("jobs", "of its own users that began"),
    "request_id": Column("", "of the request"),
    "price": Column("credits per core hour", "of the sale"),
    "load": Column("share of the cores", "projected load that the offer was made at"),
    "start": Column("us", "begin of the slot, since 1970"),
    "end": Column("us", "end of the slot, since 1970"),
    "placement": Column("", "where on the machine; empty on flat machines"),
    "day": Column("", "number of the day"),
}

_MEASURES: Final = ("success_rate", "mean_price", "mean_load", "background", "market", "mean_wait_h")


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Run `torus-market`; see `simulation.experiments.discovery.RunExperiment`."""
    sizes, shares = (QUICK_SIZES, QUICK_TORUS_SHARES) if quick else (SIZES, TORUS_SHARES)
    days = QUICK_DAYS if quick else DAYS
    cases = [
        MarketCase("quickstart", (size,), share, "ramp", days, REQUESTS_A_DAY, PRICE, seed)
        for size in sizes
        for share in shares
    ]
    runs = run_all(run_market, cases, processes=processes, on_progress=on_progress)
    rows = [{"cores": case.cores[0], "torus_share": case.torus_share, **_flat(run)} for case, run in _both(cases, runs)]
    write_rows(out / "torus_market.csv", rows)
    write_rows(out / "machines.csv", _labelled(cases, runs, "machines"))
    write_rows(out / "sales.csv", _labelled(cases, runs, "sales"))
    found = stand_ins(swarm_resources("quickstart"))
    note = f"{found}: {STAND_IN_NOTE.split(': ')[1]}" if found else ""
    draw_torus_market(out / "torus_market.csv", out / "sales.csv", out / "torus_market.png", note, quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters=_parameters(cases[0])
        | {"cores": list(sizes), "torus_share": list(shares), "pricing": "ramp, the paper's formula"},
        comparisons=[],
        findings={
            "markets": [{key: row[key] for key in ("cores", "torus_share", *_MEASURES)} for row in rows],
            "note": STAND_IN_NOTE,
        },
        columns=_COLUMNS,
    )


def run_fragmentation(
    out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None
) -> dict[str, Any]:
    """Run `torus-market-fragmentation`; see `simulation.experiments.discovery.RunExperiment`."""
    seeds = range(seed, seed + (1 if quick else FRAGMENTATION_SEEDS))
    days = QUICK_DAYS if quick else DAYS
    rates = FRAGMENTATION_RATES[-1:] if quick else FRAGMENTATION_RATES
    cases = [
        MarketCase("torus", MIXED_SIZES, 0.5, pricing, days, rate, PRICE, one)
        for rate in rates
        for one in seeds
        for pricing in PRICINGS
    ]
    runs = run_all(run_market, cases, processes=processes, on_progress=on_progress)
    rows = [
        {"pricing": case.pricing, "requests_a_day": case.requests_a_day, "seed": case.seed, **_flat(run)}
        for case, run in _both(cases, runs)
    ]
    write_rows(out / "fragmentation.csv", rows)
    write_rows(out / "machines.csv", _labelled(cases, runs, "machines"))
    draw_fragmentation(out / "fragmentation.csv", out / "fragmentation.png", quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[1].name,
        seed=seed,
        quick=quick,
        parameters=_parameters(cases[0])
        | {"cores": list(MIXED_SIZES), "torus_share": 0.5, "requests_a_day": list(rates), "seeds": list(seeds)},
        comparisons=[],
        findings={"differences": differences(rows)},
        columns=_COLUMNS,
    )


def run_month(
    out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None
) -> dict[str, Any]:
    """Run `torus-market-month`, which is one market and so takes one core, whatever `processes` says.

    See `simulation.experiments.discovery.RunExperiment`.
    """
    days = QUICK_DAYS if quick else DAYS
    case = MarketCase("torus", MONTH_SIZES, 0.5, "ramp", days, MONTH_REQUESTS_A_DAY, PRICE, seed)
    begun = time.perf_counter()
    (run,) = run_all(run_market, [case], processes=1, on_progress=on_progress)
    wall_s = round(time.perf_counter() - begun, 2)
    write_rows(out / "days.csv", run.days)
    write_rows(out / "machines.csv", run.machines)
    write_rows(out / "sales.csv", run.sales)
    draw_month(out / "days.csv", out / "month.png", quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[2].name,
        seed=seed,
        quick=quick,
        parameters=_parameters(case) | {"cores": list(MONTH_SIZES), "torus_share": 0.5},
        comparisons=[],
        findings={"market_wall_s": wall_s, "market": run.row, "machines": run.machines},
        columns=_COLUMNS,
    )


def differences(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the second strategy changes against the first, each seed compared with itself.

    Args:
        rows: with `pricing`, `requests_a_day`, `seed` and the measures; both strategies for every seed.

    Returns:
        For each rate and measure: mean under either strategy, mean difference, and its standard deviation over seeds.
    """
    found = []
    for rate in dict.fromkeys(row["requests_a_day"] for row in rows):
        for measure in _MEASURES:
            values: dict[str, list[float]] = {pricing: [] for pricing in PRICINGS}
            for row in rows:
                if row["requests_a_day"] == rate and row[measure] is not None:
                    values[row["pricing"]].append(row[measure])
            first, second = (values[pricing] for pricing in PRICINGS)
            if not first or len(first) != len(second):
                continue
            changes = [new - old for old, new in zip(first, second, strict=True)]
            found.append(
                {
                    "requests_a_day": rate,
                    "measure": measure,
                    PRICINGS[0]: round(fmean(first), 4),
                    PRICINGS[1]: round(fmean(second), 4),
                    "difference": round(fmean(changes), 4),
                    "deviation": round(stdev(changes), 4) if len(changes) > 1 else None,
                }
            )
    return found


def _both(cases: Sequence[MarketCase], runs: Sequence[MarketRun]) -> list[tuple[MarketCase, MarketRun]]:
    return list(zip(cases, runs, strict=True))


def _flat(run: MarketRun) -> dict[str, Any]:
    """Totals as one row of a table: refusals by code in a single column."""
    row = dict(run.row)
    row["refusals_first_round"] = " ".join(f"{code}:{count}" for code, count in row["refusals_first_round"].items())
    return row


def _labelled(cases: Sequence[MarketCase], runs: Sequence[MarketRun], part: str) -> list[dict[str, Any]]:
    """Rows of all runs behind what tells the cases apart, with each resource's kind of workload."""
    labels = ("pricing", "requests_a_day", "torus_share", "seed")
    workloads = {
        (swarm, each.name): workload_of(each)
        for swarm in {case.swarm for case in cases}
        for each in swarm_resources(swarm)
    }
    return [
        {
            "request_cores": " ".join(map(str, case.cores)),
            **{name: asdict(case)[name] for name in labels},
            **row,
            "workload": workloads[case.swarm, row["resource"]],
        }
        for case, run in _both(cases, runs)
        for row in getattr(run, part)
    ]


def _parameters(case: MarketCase) -> dict[str, Any]:
    return {
        "swarm": f"agents_config/swarms/{case.swarm}.toml",
        "days": case.days,
        "requests_a_day": case.requests_a_day,
        "price": case.price,
        "request": "one unit; start wished 10 min to 6 h ahead, wall time 1 to 8 h, up to 11 h of slack; 3 rounds",
        "success_rate": "share of requests that were bought",
        "mean_load": "mean projected load at the offers that were bought",
        "background": "share of the live machines that their own users had, mean over the machines",
        "market": "share of the live machines that was sold, mean over the machines",
        "mean_wait_h": "mean wait of the machines' own jobs, hours",
    }


def _tell_markets(summary: Mapping[str, Any]) -> list[str]:
    lines = ["  cores   tori  bought   price   load  own users  market  own wait"]
    lines += [
        f"{row['cores']:7d} {row['torus_share']:6.0%} {row['success_rate']:7.1%} {_number(row['mean_price'])} "
        f"{_number(row['mean_load'], 6, 2)} {row['background']:10.1%} {row['market']:7.1%} {row['mean_wait_h']:7.2f} h"
        for row in summary["markets"]
    ]
    return [*lines, f"sales.csv, torus_market.png: {summary['note']}"]


def _number(value: float | None, width: int = 7, places: int = 1) -> str:
    return "-".rjust(width) if value is None else f"{value:{width}.{places}f}"


def _tell_differences(summary: Mapping[str, Any]) -> list[str]:
    lines = [f"requests/day  {'measure':13} {PRICINGS[0]:>9} {PRICINGS[1]:>13}  difference"]
    for row in summary["differences"]:
        spread = "" if row["deviation"] is None else f" +- {row['deviation']:.4f} (over seeds)"
        lines.append(
            f"{row['requests_a_day']:12g}  {row['measure']:13} {row[PRICINGS[0]]:9.4f} {row[PRICINGS[1]]:13.4f}  "
            f"{row['difference']:+.4f}{spread}"
        )
    return lines


def _tell_month(summary: Mapping[str, Any]) -> list[str]:
    row, machines = summary["market"], summary["machines"]
    lines = ["machine     own users  sold  sales   price   load  own wait"]
    lines += [
        f"{each['resource']:10s} {each['background']:10.1%} {each['market']:5.1%} {each['sales']:6d} "
        f"{_number(each['mean_price'])} {_number(each['mean_load'], 6, 2)} {each['mean_wait_h']:7.2f} h"
        for each in machines
    ]
    lines.append(
        f"{row['days']} days on {len(machines)} live machines, {row['requests']} requests, {row['bought']} of them "
        f"bought: {summary['market_wall_s']:.1f} s ({row['cpu_s']:.1f} s of one core)"
    )
    return lines


EXPERIMENTS: Final = (
    Experiment(
        "torus-market",
        "requests of growing size and torus share against a mixed swarm of flat machines and live tori",
        run,
        _tell_markets,
    ),
    Experiment(
        "torus-market-fragmentation",
        "what a price for fragmentation does to utilisation and prices on live tori",
        run_fragmentation,
        _tell_differences,
    ),
    Experiment(
        "torus-market-month",
        "a month of market on five live torus machines, and how long it takes on one core",
        run_month,
        _tell_month,
    ),
)
