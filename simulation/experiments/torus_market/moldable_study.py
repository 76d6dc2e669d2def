"""A month of market on five live tori in which no, some or all requests leave their size to the seller.

The same requests come at every share; those that are moldable at a share are so at every larger one. Each seed is
compared with itself at share 0. No paper states a number of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from ramp.model.instant import HOUR
from simulation.experiments.means import confidence_interval
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.result import Column, Columns, write_rows, write_summary
from simulation.experiments.torus_market.demand import (
    LARGER,
    PARALLELISM_BITS,
    SERIAL_SHARE_MAX,
    SMALLER,
    VARIANCE_MAX,
    MarketCase,
    request_id,
    requests_of,
)
from simulation.experiments.torus_market.fragmentation import DAYS, MONTH_REQUESTS_A_DAY, MONTH_SIZES, PRICE
from simulation.experiments.torus_market.moldable_plots import draw_moldable
from simulation.experiments.torus_market.runs import OPENING, run_market
from simulation.experiments.worker_processes import run_all

SHARES: Final = (0.0, 0.2, 1.0)
SEEDS: Final = 5
QUICK_SEEDS: Final = 2
QUICK_DAYS: Final = 2
TORUS_SHARE: Final = 0.5

_USE: Final = "share of the machines"
MEASURES: Final[Columns] = {
    "success_rate": Column("share of requests", "that were bought"),
    "refusals_a_request": Column(
        "refusals/request", "offers refused in first rounds; each of five machines may refuse"
    ),
    "price_a_core_hour": Column("credits per core hour", "spent in all over core hours sold"),
    "price_as_asked": Column("credits per core hour", "spent in all over core hours that were asked for by who bought"),
    "background": Column(_USE, "that their own users had, mean over the machines"),
    "market": Column(_USE, "that was sold, mean over the machines"),
    "used": Column(_USE, "background and market"),
    "mean_wait_h": Column("h", "mean wait of the machines' own jobs, mean over the machines"),
    "size_ratio": Column("", "cores sold over cores asked, mean over what was bought; machines sell whole places"),
    "length_ratio": Column("", "length of the slot over wall time asked, mean over what was bought"),
}
"""What is measured of every market."""

_COLUMNS: Final[Columns] = {
    "moldable_share": Column("share of requests", "probability that a request leaves its size to the seller"),
    "seed": Column("", "of all that was drawn"),
    "requests": Column("requests", "that were made"),
    "moldable": Column("requests", "of them that left their size to the seller"),
    "bought": Column("requests", "that were bought"),
    "cpu_s": Column("s", "CPU time of the whole simulation"),
    "code": Column("", "why offers were refused"),
    "refusals": Column("refusals", "of first rounds for that reason"),
    "measure": Column("", "column of runs.csv, or refused_ and the reason, then refusals per request"),
    "mean": Column("as the measure", "over seeds"),
    "mean_half": Column("as the measure", "half of its 95 % interval"),
    "change": Column("as the measure", "against share 0 of the same seed, mean over seeds"),
    "change_half": Column("as the measure", "half of its 95 % interval"),
    "sure": Column("", "yes: the interval of the change leaves out zero"),
    **MEASURES,
}

Row = Mapping[str, Any]


def run_moldable_market(case: MarketCase) -> dict[str, Any]:
    """Run one market; its case and measures as one row, `refusals` being the first rounds' by code."""
    run = run_market(case)
    asked = {request_id(number): unit for number, (_, unit) in enumerate(requests_of(case, OPENING), 1)}
    pairs = [(sale, asked[sale["request_id"]]) for sale in run.sales]
    spent = sum(sale["price"] * sale["cores"] * (sale["end"] - sale["start"]) / HOUR for sale in run.sales)
    wanted = sum(unit.cores.total * (unit.wall_time or 0) / HOUR for _, unit in pairs)
    refusals: dict[str, int] = run.row["refusals_first_round"]
    requests = run.row["requests"]
    return {
        "moldable_share": case.moldable_share,
        "seed": case.seed,
        "requests": requests,
        "moldable": sum(unit.moldable is not None for unit in asked.values()),
        "bought": run.row["bought"],
        **{
            name: run.row[name] for name in ("success_rate", "price_a_core_hour", "background", "market", "mean_wait_h")
        },
        "refusals_a_request": round(sum(refusals.values()) / requests, 4) if requests else 0.0,
        "price_as_asked": round(spent / wanted, 2) if wanted else None,
        "used": round(run.row["background"] + run.row["market"], 4),
        "size_ratio": round(fmean(sale["cores"] / unit.cores.total for sale, unit in pairs), 4) if pairs else None,
        "length_ratio": round(fmean((sale["end"] - sale["start"]) / (unit.wall_time or 1) for sale, unit in pairs), 4)
        if pairs
        else None,
        "cpu_s": run.row["cpu_s"],
        "refusals": refusals,
    }


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Run the study; see `simulation.experiments.discovery.RunExperiment`."""
    seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
    days = QUICK_DAYS if quick else DAYS
    return run_days(out, days=days, seeds=seeds, quick=quick, processes=processes, on_progress=on_progress)


def run_days(
    out: Path,
    *,
    days: int,
    seeds: Sequence[int],
    quick: bool = False,
    processes: int | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Run the study for this number of days and these seeds; all else is as of `run`."""
    cases = [
        MarketCase(
            "torus", MONTH_SIZES, TORUS_SHARE, "ramp", days, MONTH_REQUESTS_A_DAY, PRICE, one, moldable_share=share
        )
        for one in seeds
        for share in SHARES
    ]
    rows = run_all(run_moldable_market, cases, processes=processes, on_progress=on_progress)
    found = changes(rows)
    write_rows(out / "runs.csv", [{key: value for key, value in row.items() if key != "refusals"} for row in rows])
    write_rows(out / "refusals.csv", _refusals(rows), ("moldable_share", "seed", "code", "refusals"))
    write_rows(out / "changes.csv", found)
    draw_moldable(out / "runs.csv", out / "changes.csv", out / "moldable.png", days, quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seeds[0],
        quick=quick,
        parameters=_parameters(days, seeds),
        comparisons=[],
        findings={"changes": found, "notes": notes(found, len(seeds)), "days": days},
        columns=_COLUMNS,
    )


def _parameters(days: int, seeds: Sequence[int]) -> dict[str, Any]:
    return {
        "swarm": "agents_config/swarms/torus.toml",
        "days": days,
        "seeds": list(seeds),
        "requests_a_day": MONTH_REQUESTS_A_DAY,
        "price": PRICE,
        "cores": list(MONTH_SIZES),
        "torus_share": TORUS_SHARE,
        "moldable_share": list(SHARES),
        "request": "one unit; start wished 10 min to 6 h ahead, wall time 1 to 8 h, up to 11 h of slack; 3 rounds",
        "moldable": "any request may be, also one for a torus; a range of cores excludes only a stated shape",
        "sizes": f"from 1/{SMALLER} of the size asked to {LARGER} times it",
        "speed-up": f"half Amdahl, serial share of the run at the size asked U(0, {SERIAL_SHARE_MAX:g}); half Downey, "
        f"average parallelism size x 2^U(0, {PARALLELISM_BITS:g}), variance U(0, {VARIANCE_MAX:g})",
        "wall times": "are at the size asked",
    }


def _refusals(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {"moldable_share": row["moldable_share"], "seed": row["seed"], "code": code, "refusals": count}
        for row in rows
        for code, count in row["refusals"].items()
    ]


def changes(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Means of all measures and what the share changes in them, each seed compared with itself at share 0.

    Args:
        rows: of `run_moldable_market`, every share for every seed.

    Returns:
        A line for each share and measure, and for each reason of refusal as `refused_` and its code, per request. A
        seed in which a measure has no value at one of both shares is left out of it.
    """
    codes = sorted({code for row in rows for code in row["refusals"]})
    values: dict[tuple[str, float, int], float | None] = {}
    for row in rows:
        counted: Counter[str] = Counter(row["refusals"])
        here = {name: row[name] for name in MEASURES}
        here |= {f"refused_{code}": counted[code] / max(row["requests"], 1) for code in codes}
        values |= {(name, row["moldable_share"], row["seed"]): value for name, value in here.items()}
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    found: list[dict[str, Any]] = []
    for share in dict.fromkeys(row["moldable_share"] for row in rows):
        for name in (*MEASURES, *(f"refused_{code}" for code in codes)):
            both = [(values[name, share, one], values[name, 0.0, one]) for one in seeds]
            pairs = [(new, old) for new, old in both if new is not None and old is not None]
            if pairs:
                found.append({"moldable_share": share, "measure": name, **_change(pairs)})
    return found


def _change(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    mean = confidence_interval([new for new, _ in pairs])
    change = confidence_interval([new - old for new, old in pairs])
    return {
        "mean": round(mean.mean, 4),
        "mean_half": round(mean.half_width, 4),
        "change": round(change.mean, 4),
        "change_half": round(change.half_width, 4),
        "sure": "yes" if len(pairs) > 1 and abs(change.mean) > change.half_width else "no",
    }


def notes(found: Sequence[Row], seeds: int) -> list[str]:
    """Which measures surely change at which share, and which do not."""
    told = []
    for share in (one for one in SHARES if one):
        mine = [row for row in found if row["moldable_share"] == share and row["measure"] in MEASURES]
        sure = [
            f"{row['measure']} {row['change']:+.3f} ±{row['change_half']:.3f}" for row in mine if row["sure"] == "yes"
        ]
        rest = [row["measure"] for row in mine if row["sure"] != "yes"]
        told.append(
            f"{share:.0%} moldable against none, the same {seeds} seeds, 95 % intervals: sure are "
            f"{', '.join(sure) or 'none'}; not sure are {', '.join(rest) or 'none'}"
        )
    return told


def _tell(summary: Mapping[str, Any]) -> list[str]:
    heading = f"{'moldable':>8}  {'measure':28} {'mean':>8} {'':>9} {'against none':>12}"
    lines = [
        f"{row['moldable_share']:8.0%}  {row['measure']:28} {row['mean']:8.3f} ±{row['mean_half']:8.3f} "
        f"{row['change']:+12.3f} ±{row['change_half']:.3f}{' sure' if row['sure'] == 'yes' else ''}"
        for row in summary["changes"]
    ]
    return [*(f"Note: {note}" for note in summary["notes"]), "", heading, *lines]


EXPERIMENTS: Final = (
    Experiment(
        "torus-market-malleable",
        "a month of market on live tori with 0, 20 and 100 % of the requests moldable",
        run,
        _tell,
    ),
)
