"""What the 2005 Blue Gene/L study leaves open, and what each reading of it gives at full load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from simulation.experiments.bluegene.runs import (
    EASY,
    FIRST_FIT,
    LOGS,
    MULTI_TOROIDAL,
    PAPER_FULL_LOAD,
    PLAIN,
    SLIM_CASES,
    Setting,
)
from simulation.experiments.bluegene.statements import headline, loss_in_points, slim_gap
from simulation.experiments.comparison import Verdict
from simulation.experiments.result import Column, Columns, Row, Rows
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
