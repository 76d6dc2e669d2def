"""What the 2005 Blue Gene/L study leaves open, and what each reading of it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from simulation.experiments.bluegene_runs import LOGS, PAPER_FULL_LOAD, SLIM_CASES, Setting, log_sizes

SPAN_JOBS: Final = 10_000
"""Jobs of a span; simulations of the time often took about as many of a log."""
AS_USED: Final = "as used"

Row = Mapping[str, Any]
Reading = tuple[str, Setting]


def readings_of_headlines(seed: int, max_jobs: int | None) -> list[Reading]:
    """Other readings of the printed values: full load, fat jobs, all tori.

    Args:
        seed: of the draws.
        max_jobs: jobs of each log; None = all.
    """
    result = []
    for log, machine in PAPER_FULL_LOAD:
        base = Setting(log, machine, 1.0, 1.0, 1.0, seed, max_jobs)
        result += [
            (AS_USED, base),
            ("load counts the log's sizes", replace(base, load_by_log_sizes=True)),
            ("first candidate found instead of fewest links", replace(base, allocator="first-found")),
            ("only the first 5000 jobs", replace(base, max_jobs=min(5000, max_jobs or 5000))),
        ]
        if max_jobs is None:
            result.append((f"only the first {SPAN_JOBS} jobs", replace(base, max_jobs=SPAN_JOBS)))
        if LOGS[log][1] > 1:
            result.append(("sizes rounded down", replace(base, round_down=True)))
    return result


def tabulate_headlines(readings: Sequence[Reading], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The printed values beside ours, a row a reading.

    Args:
        readings: as of `readings_of_headlines`.
        rows: their results.
    """
    table = []
    for (reading, setting), row in zip(readings, rows, strict=True):
        paper = PAPER_FULL_LOAD[setting.log, setting.machine]
        entry = {"log": setting.log, "machine": setting.machine, "paper_percent": paper}
        table.append({**entry, "reading": reading, "ours_percent": round(100 * row["utilisation"], 2)})
        if reading == AS_USED:
            for column, words in (
                ("utilisation_while_arriving", "utilisation only until the last submission"),
                ("utilisation_by_log_sizes", "work counts the log's sizes, not the shapes'"),
            ):
                table.append({**entry, "reading": words, "ours_percent": round(100 * row[column], 2)})
    return table


def readings_of_slim_gaps(seed: int, max_jobs: int | None) -> list[Reading]:
    """The curves of figure 7(a) at full load, over the log and over spans of it one after the other.

    Args:
        seed: of the draws.
        max_jobs: jobs of each log; None = all, and only then are there spans.
    """
    result = []
    for log in LOGS:
        spans: list[tuple[str, int, int | None]] = [("all jobs" if max_jobs is None else "the jobs used", 0, max_jobs)]
        if max_jobs is None:
            whole = len(log_sizes(log)) // SPAN_JOBS
            spans += [
                (f"{SPAN_JOBS} jobs after the first {first}", first, SPAN_JOBS)
                for first in range(0, whole * SPAN_JOBS, SPAN_JOBS)
            ]
        for words, first, jobs in spans:
            for machine, torus in SLIM_CASES:
                result.append((words, Setting(log, machine, 0.0, torus, 1.0, seed, jobs, first_job=first)))
    return result


def tabulate_slim_gaps(readings: Sequence[Reading], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """How far the slim curves lie apart at full load, a row a span and definition of utilisation.

    Args:
        readings: as of `readings_of_slim_gaps`.
        rows: their results.
    """
    table = []
    for first in range(0, len(readings), len(SLIM_CASES)):
        words, setting = readings[first]
        cases = rows[first : first + len(SLIM_CASES)]
        for column, definition in (
            ("utilisation", "until the last end"),
            ("utilisation_while_arriving", "until the last submission"),
        ):
            shares = [round(100 * row[column], 2) for row in cases]
            table.append(
                {
                    "log": setting.log,
                    "jobs": words,
                    "utilisation_counted": definition,
                    "meshes_percent": shares[0],
                    "half_tori_percent": shares[1],
                    "all_tori_percent": shares[2],
                    "all_tori_plain_torus_percent": shares[3],
                    "gap_points": round(max(shares) - min(shares), 2),
                }
            )
    return table


def tell_readings(summary: Mapping[str, Any]) -> list[str]:
    """The two tables, in lines."""
    lines = ["Other readings of what the study leaves open (fat tori, full load):"]
    for row in summary["readings"]:
        numbers = f"paper {row['paper_percent']:4.0f} %  ours {row['ours_percent']:5.1f} %"
        lines.append(f"  {row['log']:4} {row['machine']:8} {numbers}  {row['reading']}")
    lines += ["", "Slim jobs at full load: meshes, half tori, all tori, all tori on the plain torus; the largest gap:"]
    for row in summary["slim_gaps"]:
        columns = ("meshes", "half_tori", "all_tori", "all_tori_plain_torus")
        shares = "  ".join(f"{row[f'{column}_percent']:4.1f} %" for column in columns)
        counted = f"{row['jobs']}, {row['utilisation_counted']}"
        lines.append(f"  {row['log']:4} {shares}  gap {row['gap_points']:4.1f} points  {counted}")
    return lines
