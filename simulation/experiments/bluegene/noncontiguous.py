"""Beyond the 2005 study: sets of midplanes with gaps, joined through the switches between them.

Aridor and others 2005 leave non-contiguous allocation to future research, and say that the extra cables of Blue Gene/L
should help there. Here the same jobs run with contiguous sets and with any sets, on both machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from simulation.experiments.bluegene.plots_beyond import draw_noncontiguous
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
from simulation.experiments.result import Column, Columns, write_rows, write_summary
from simulation.experiments.worker_processes import run_all

LOADS: Final = (0.7, 1.0)
QUICK_LOADS: Final = (1.0,)
QUICK_JOBS: Final = 3000
CONTIGUOUS: Final = "two-phase"
NONCONTIGUOUS: Final = "noncontiguous"

LEAST_POINTS: Final = 1.0
"""Points that the one machine must gain beyond the other to count as advantage."""

_COLUMNS: Final[Columns] = {
    **RUN_COLUMNS,
    "contiguous_percent": Column("%", "utilisation with sets without gaps"),
    "noncontiguous_percent": Column("%", "utilisation with any sets"),
    "gain_points": Column("points", "the second less the first"),
}

_CASE: Final = ("log", "machine", "fat_probability", "torus_probability", "load")


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Run the comparison; see `simulation.experiments.discovery.RunExperiment`."""
    loads, max_jobs = (QUICK_LOADS, QUICK_JOBS) if quick else (LOADS, None)
    settings = [
        Setting(log, machine, fat, torus, load, seed, max_jobs, allocator=allocator, scheduler=FIRST_FIT)
        for log in LOGS
        for machine in (MULTI_TOROIDAL, PLAIN)
        for fat in (0.0, 0.5, 1.0)
        for torus in (0.0, 1.0)
        for load in loads
        for allocator in (CONTIGUOUS, NONCONTIGUOUS)
    ]
    rows = run_all(run_setting, settings, processes=processes, on_progress=on_progress)
    gains = _gains(rows)
    write_rows(out / "noncontiguous.csv", rows)
    write_rows(out / "gains.csv", gains)
    draw_noncontiguous(out / "gains.csv", out / "noncontiguous.png", quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters={
            "jobs": "all" if max_jobs is None else f"the first {max_jobs} of each log",
            "loads": list(loads),
            "scheduler": "first-fit over the whole queue; jobs run as long as the log says",
            "allocators": {CONTIGUOUS: "boxes without gaps", NONCONTIGUOUS: "any coordinates in each dimension"},
            "utilisation": "volume of the shapes x run time / (128 midplanes x makespan)",
        },
        comparisons=_suggested(gains, max(loads)),
        findings={"gains": gains},
        columns=_COLUMNS,
    )


def _suggested(gains: Sequence[Mapping[str, Any]], load: float) -> list[Comparison]:
    """The study's one sentence: its topology suggests advantages for sets with gaps."""
    result = []
    for log in LOGS:
        means = [
            fmean(
                row["gain_points"]
                for row in gains
                if (row["log"], row["machine"], row["load"], row["torus_probability"]) == (log, machine, load, 1.0)
            )
            for machine in (MULTI_TOROIDAL, PLAIN)
        ]
        result.append(
            Comparison(
                f"{log}: gain of tori by gaps at full load, {MULTI_TOROIDAL} beyond {PLAIN}", "suggests advantages",
                means[0] - means[1], "points", at_least=LEAST_POINTS, picture="noncontiguous.png",
                why="gaps gain room, on both machines alike; the cables that are short are those of y and z",
            )
        )  # fmt: skip
    return result


def _gains(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Utilisation of both allocators, in per cent, and what gaps gain, in points, for each case."""
    by_case: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows:
        case = tuple(row[key] for key in _CASE)
        by_case.setdefault(case, {})[row["allocator"]] = 100 * row["utilisation"]
    return [
        {
            **dict(zip(_CASE, case, strict=True)),
            "contiguous_percent": round(both[CONTIGUOUS], 2),
            "noncontiguous_percent": round(both[NONCONTIGUOUS], 2),
            "gain_points": round(both[NONCONTIGUOUS] - both[CONTIGUOUS], 2),
        }
        for case, both in by_case.items()
    ]


def _tell(summary: Mapping[str, Any]) -> list[str]:
    lines = [f"{'log':5} {'machine':8} {'fat':>4} {'tori':>5} {'load':>5}  contiguous  with gaps   gain"]
    lines += [
        f"{row['log']:5} {row['machine']:8} {row['fat_probability']:4.0%} {row['torus_probability']:5.0%} "
        f"{row['load']:5.2f}  {row['contiguous_percent']:8.1f} % {row['noncontiguous_percent']:8.1f} % "
        f"{row['gain_points']:+6.1f} points"
        for row in summary["gains"]
    ]
    return [*tell_comparison(summary), "", *lines]


EXPERIMENTS: Final = (
    Experiment(
        "bluegene-noncontiguous", "what sets of midplanes with gaps gain on Blue Gene/L and a 3D torus", run, _tell
    ),
)
