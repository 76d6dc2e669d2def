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
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from simulation.experiments.bluegene.pictures import FIGURES
from simulation.experiments.bluegene.runs import (
    EASY,
    FIRST_FIT,
    LOGS,
    MULTI_TOROIDAL,
    PAPER_FULL_LOAD,
    PLAIN,
    RUN_COLUMNS,
    SLIM_CASES,
    Setting,
    fat_sizes,
    log_sizes,
    run_setting,
)
from simulation.experiments.bluegene.statements import TOGETHER_POINTS, headline, loss_in_points, slim_gap, statements
from simulation.experiments.comparison import Verdict
from simulation.experiments.result import Column, Columns, Row, Rows
from simulation.experiments.study import Found, Run, Shown, Study, rows_of
from simulation.machines.bluegene.cable_policy import Merit

MAIN_JOBS: Final = 10_000
"""Jobs of each log in the main reading; simulations of the time often took about as many."""

SPANS: Final = (10_000, 20_000, 30_000, 40_000)
"""Where further spans of `MAIN_JOBS` jobs begin."""

MAKESPAN: Final = "makespan"
ARRIVING: Final = "until the last submission"
_COUNTED: Final = {MAKESPAN: "utilisation", ARRIVING: "utilisation_while_arriving"}

READING_COLUMNS: Final[Columns] = {
    "jobs_read": Column("", "which jobs of the log"),
    "counted": Column("", "time over which utilisation is taken"),
    "fat_percent": Column("%", "utilisation of Blue Gene/L, fat jobs, all tori, full load"),
    "fat_plain_percent": Column("%", "the same on the plain 3D torus"),
    "slim_curves_apart_points": Column("points", "largest gap between the four slim curves at full load"),
    "slim_machines_apart_points": Column("points", "gap between the two machines, slim tori, full load"),
    "loss_points": Column("points", "utilisation lost from slim to fat shapes at equal sizes, all tori, full load"),
    "loss_percent": Column("%", "the same relative to slim"),
    "variant": Column("", "what is read otherwise"),
    "paper_percent": Column("%", "utilisation that the study prints"),
    "ours_percent": Column("%", "our utilisation, fat jobs, all tori, full load"),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A way of reading the study.

    Attributes:
        scheduler: the scheduler taken for its aggressive backfilling.
        first_job: number of jobs of each log left out at the beginning.
        jobs: number of jobs taken after those; None = all.
    """

    scheduler: str
    first_job: int
    jobs: int | None

    @property
    def jobs_read(self) -> str:
        """In words."""
        if self.jobs is None:
            return "whole log"
        last = self.first_job + self.jobs
        return f"first {last} jobs" if self.first_job == 0 else f"jobs {self.first_job} to {last}"

    @property
    def name(self) -> str:
        """Of the part of the study that its simulations are."""
        return f"{self.scheduler}, {self.jobs_read}"


def readings(max_jobs: int, *, whole_logs: bool) -> list[Reading]:
    """The main reading first, then first-fit beside it; over whole logs also both over everything, and the spans."""
    found = [Reading(EASY, 0, max_jobs), Reading(FIRST_FIT, 0, max_jobs)]
    if whole_logs:
        found += [Reading(EASY, 0, None), Reading(FIRST_FIT, 0, None)]
        found += [Reading(EASY, first, MAIN_JOBS) for first in SPANS]
    return found


def settings_of(reading: Reading, seed: int) -> list[Setting]:
    """Return a reading's simulations of each log: fat tori on both machines, slim curves, both shapes of figure 8."""
    result = []
    for log in LOGS:
        base = Setting(
            log, MULTI_TOROIDAL, 1.0, 1.0, 1.0, seed, reading.jobs, first_job=reading.first_job,
            scheduler=reading.scheduler,
        )  # fmt: skip
        result += [base, replace(base, machine=PLAIN)]
        result += [
            replace(base, machine=machine, fat_probability=0.0, torus_probability=p) for machine, p in SLIM_CASES
        ]
        result += [replace(base, fat_probability=fat, sizes_as_fat=True) for fat in (0.0, 1.0)]
    return result


def reading_table(reading: Reading, rows: Rows) -> Rows:
    """A row for each log and way to count."""
    table = []
    each = len(rows) // len(LOGS)
    for counted, column in _COUNTED.items():
        for number, log in enumerate(LOGS):
            percent = [100 * row[column] for row in rows[number * each : (number + 1) * each]]
            fat, fat_plain, *slim, slim_shapes, fat_shapes = percent
            row = {
                "scheduler": reading.scheduler,
                "jobs_read": reading.jobs_read,
                "counted": counted,
                "log": log,
                "fat_percent": round(fat, 2),
                "fat_plain_percent": round(fat_plain, 2),
                "slim_curves_apart_points": round(max(slim) - min(slim), 2),
                "slim_machines_apart_points": round(abs(slim[-1] - slim[-2]), 2),
                "loss_points": round(slim_shapes - fat_shapes, 2),
                "loss_percent": round(100 * (1 - fat_shapes / slim_shapes), 2),
            }
            table.append({**row, **_judged(row)})
    return table


def _judged(row: Row) -> dict[str, str]:
    log = row["log"]
    checked = {
        "fat": headline(log, MULTI_TOROIDAL, row["fat_percent"]),
        "fat, 3D torus": headline(log, PLAIN, row["fat_plain_percent"]),
        "slim curves": slim_gap(log, "four curves", row["slim_curves_apart_points"]),
        "slim machines": slim_gap(log, "machines", row["slim_machines_apart_points"]),
        "loss": loss_in_points(row["loss_points"]),
    }
    differing = [words for words, one in checked.items() if one.verdict is Verdict.DIFFERS]
    return {"verdict": str(Verdict.DIFFERS if differing else Verdict.AGREES), "why": ", ".join(differing)}


VARIANTS: Final[Mapping[str, dict[str, Any]]] = {
    "load counts the log's sizes": {"load_by_log_sizes": True},
    "first candidate found instead of fewest links": {"allocator": "first-found"},
    "place nearest to the first midplane": {"merit": Merit.CORNER},
    "place that leaves the largest free box": {"merit": Merit.FRAGMENTATION},
    "sizes rounded down": {"round_down": True},
}
"""Smaller things that the study leaves open, for its printed values."""


def variants(seed: int, max_jobs: int) -> list[Setting]:
    """Each printed value under each variant; sizes are rounded only where they are divided."""
    return [
        replace(Setting(log, machine, 1.0, 1.0, 1.0, seed, max_jobs), **change)
        for log, machine in PAPER_FULL_LOAD
        for change in VARIANTS.values()
        if "round_down" not in change or LOGS[log][1] > 1
    ]


def variant_table(measured: Sequence[tuple[Setting, Row]]) -> Rows:
    """The printed values beside ours, a row a variant."""
    table = []
    for setting, row in measured:
        ours = 100 * row["utilisation"]
        table.append(
            {
                "log": setting.log,
                "machine": setting.machine,
                "variant": next(words for words, change in VARIANTS.items() if replace(setting, **change) == setting),
                "paper_percent": PAPER_FULL_LOAD[setting.log, setting.machine],
                "ours_percent": round(ours, 2),
                "verdict": str(headline(setting.log, setting.machine, ours).verdict),
            }
        )
    return table


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
