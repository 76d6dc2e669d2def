"""Beyond the 2005 study: sets of midplanes with gaps, joined through the switches between them.

Aridor and others 2005 leave non-contiguous allocation to future research, and say that the extra cables of Blue Gene/L
should help there. Here the same jobs run with contiguous sets and with any sets, on both machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from simulation.experiments.bluegene_runs import LOGS, MULTI_TOROIDAL, PLAIN, Setting, run_setting
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.result import run_all, write_rows, write_summary
from simulation.plots.bluegene_beyond import draw_noncontiguous

LOADS: Final = (0.7, 1.0)
QUICK_LOADS: Final = (1.0,)
QUICK_JOBS: Final = 3000
CONTIGUOUS: Final = "two-phase"
NONCONTIGUOUS: Final = "noncontiguous"

_CASE: Final = ("log", "machine", "fat_probability", "torus_probability", "load")


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Run the comparison; see `simulation.experiments.discovery.RunExperiment`."""
    loads, max_jobs = (QUICK_LOADS, QUICK_JOBS) if quick else (LOADS, None)
    settings = [
        Setting(log, machine, fat, torus, load, seed, max_jobs, allocator=allocator)
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
    draw_noncontiguous(out / "gains.csv", out / "noncontiguous.png")
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
        comparisons=[],
        findings={"gains": gains},
    )


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
    return lines


EXPERIMENTS: Final = (
    Experiment(
        "bluegene-noncontiguous", "what sets of midplanes with gaps gain on Blue Gene/L and a 3D torus", run, _tell
    ),
)
