"""Beyond the 2005 study: what broken cables cost on the multi-toroidal and on the plain machine.

Aridor and others 2005 name redundancy as another advantage of the extra cables. Here a share of all cables, drawn at
random, is out of service from the start; jobs whose shape no longer fits anywhere are refused. Since starved shapes
stretch the end of a log out of all proportion, utilisation is taken while jobs arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

from simulation.experiments.bluegene.plots_beyond import draw_failed_links
from simulation.experiments.bluegene.runs import (
    FIRST_FIT,
    LOGS,
    MULTI_TOROIDAL,
    PLAIN,
    RUN_COLUMNS,
    Setting,
    run_setting,
)
from simulation.experiments.comparison import Comparison, tell_comparison
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.result import Column, Columns, grouped, write_rows, write_summary
from simulation.experiments.worker_processes import run_all

SHARES: Final = (0.0, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
QUICK_SHARES: Final = (0.0, 0.01, 0.05, 0.2)
JOBS: Final = 20_000
"""First jobs of each log: the effect is large, and seeds matter more than more jobs."""
QUICK_JOBS: Final = 2500
SEEDS: Final = 3
QUICK_SEEDS: Final = 2
LOAD: Final = 1.0

FAILING_SHARE: Final = 0.01
"""Share of broken cables at which the machines are compared; with many more a machine is under repair."""

LEAST_POINTS: Final = 1.0
"""Points of work that the one machine must save beyond the other to count as more tolerant."""

_COLUMNS: Final[Columns] = {
    **RUN_COLUMNS,
    "draws": Column("", "sets of broken cables"),
    "means.csv/utilisation": Column(
        "share", "while jobs arrive, by jobs that still fit somewhere; mean over the draws"
    ),
    "standard_deviation": Column("share", "of utilisation over the draws"),
}

_CASE: Final = ("log", "machine", "fat_probability", "torus_probability", "broken_share")


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Run the sweep; see `simulation.experiments.discovery.RunExperiment`."""
    shares, max_jobs, seeds = (QUICK_SHARES, QUICK_JOBS, QUICK_SEEDS) if quick else (SHARES, JOBS, SEEDS)
    settings = [
        Setting(log, machine, fat, torus, LOAD, draw, max_jobs, broken_share=share, scheduler=FIRST_FIT)
        for log in LOGS
        for machine in (MULTI_TOROIDAL, PLAIN)
        for fat in (0.0, 1.0)
        for torus in (0.0, 1.0)
        for share in shares
        for draw in range(seed, seed + seeds)
    ]
    rows = run_all(run_setting, settings, processes=processes, on_progress=on_progress)
    means = _means(rows)
    write_rows(out / "failed_links.csv", rows)
    write_rows(out / "means.csv", means)
    draw_failed_links(out / "means.csv", out / "failed_links.png", quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters={
            "jobs": f"the first {max_jobs} of each log",
            "load": LOAD,
            "broken_shares": list(shares),
            "draws_of_broken_cables": seeds,
            "scheduler": "first-fit over the whole queue; jobs run as long as the log says",
            "utilisation": "work done until the last submission / (128 midplanes x time from first to last submission)",
        },
        comparisons=_redundancy(means, shares),
        findings={"means": means},
        columns=_COLUMNS,
    )


def _redundancy(means: Sequence[Mapping[str, Any]], shares: Sequence[float]) -> list[Comparison]:
    """The study's one sentence: the extra cables are redundancy, "which leads to increased fault tolerance"."""
    share = FAILING_SHARE
    assert share in shares, "every version breaks that share"
    lost = {
        (row["log"], row["machine"], row["fat_probability"]): 100 * row["refused_work"]
        for row in means
        if row["torus_probability"] == 1.0 and row["broken_share"] == share
    }
    why = "the extra cables are in x; a torus in y or z needs every cable of its lines on both machines"
    what = f"{share:.0%} of the cables broken, work that drops out, {PLAIN} less {MULTI_TOROIDAL}"
    return [
        Comparison(
            f"{log}, {words} tori: {what}", "increased fault tolerance",
            lost[log, PLAIN, fat] - lost[log, MULTI_TOROIDAL, fat], "points",
            at_least=LEAST_POINTS, why=why, picture="failed_links.png",
        )
        for log in LOGS
        for fat, words in ((0.0, "slim"), (1.0, "fat"))
    ]  # fmt: skip


def _means(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    table = []
    for case, draws in grouped(rows, *_CASE).items():
        utilisation = [row["utilisation_while_arriving"] for row in draws]
        table.append(
            {
                **dict(zip(_CASE, case, strict=True)),
                "draws": len(draws),
                "utilisation": round(fmean(utilisation), 5),
                "standard_deviation": round(stdev(utilisation), 5) if len(draws) > 1 else 0.0,
                "refused_work": round(fmean(row["refused_work"] for row in draws), 5),
            }
        )
    return table


def _tell(summary: Mapping[str, Any]) -> list[str]:
    lines = [f"{'log':5} {'machine':8} {'fat':>4} {'tori':>5} {'broken':>7}  utilisation      refused work"]
    lines += [
        f"{row['log']:5} {row['machine']:8} {row['fat_probability']:4.0%} {row['torus_probability']:5.0%} "
        f"{row['broken_share']:7.2%}  {row['utilisation']:6.1%} +- {row['standard_deviation']:5.1%} "
        f"{row['refused_work']:8.1%}"
        for row in summary["means"]
    ]
    return [*tell_comparison(summary), "", *lines]


EXPERIMENTS: Final = (
    Experiment("bluegene-failed-links", "what broken cables cost on Blue Gene/L and on a 3D torus", run, _tell),
)
