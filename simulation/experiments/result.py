"""What every experiment leaves behind: tables, and a summary with the paper's numbers beside ours."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, TypeVar

TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")

COMPARISON_COLUMNS: Final = ("what", "paper", "ours", "unit", "tolerance", "agrees")
"""Of `comparison.csv`, also where a study has no paper beside it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number of a paper beside ours.

    Attributes:
        what: the statement.
        paper: the paper's value, or what it says in words.
        ours: our value.
        unit: of both.
        tolerance: difference up to which they agree, in the same unit; None = it is for the reader to judge.
        at_most: our value agrees when it is not above this; None = `tolerance` decides.
    """

    what: str
    paper: float | str
    ours: float
    unit: str
    tolerance: float | None = None
    at_most: float | None = None

    @property
    def agrees(self) -> bool | None:
        """Whether ours is within the tolerance, or None where none is given."""
        if self.at_most is not None:
            return self.ours <= self.at_most
        if self.tolerance is None or isinstance(self.paper, str):
            return None
        return abs(self.ours - self.paper) <= self.tolerance

    def as_dict(self) -> dict[str, Any]:
        """For `summary.json`."""
        return {
            "what": self.what,
            "paper": self.paper,
            "ours": round(self.ours, 4),
            "unit": self.unit,
            "tolerance": self.tolerance if self.at_most is None else self.at_most,
            "agrees": self.agrees,
        }


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
    """Write a table as CSV.

    Args:
        path: of the file.
        rows: of the table.
        columns: their keys in order; None = the first row's.
    """
    if columns is None:
        columns = list(rows[0]) if rows else []
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=columns)
        writer.writeheader()
        writer.writerows(rows)


def write_summary(
    out: Path,
    *,
    experiment: str,
    seed: int,
    quick: bool,
    parameters: Mapping[str, Any],
    comparisons: Sequence[Comparison],
    findings: Mapping[str, Any],
) -> dict[str, Any]:
    """Write `summary.json` and `comparison.csv`.

    Args:
        out: the experiment's directory.
        experiment: its name.
        seed: of all that was drawn.
        quick: whether this was the small version.
        parameters: everything that decides the result, with definitions in words.
        comparisons: the paper's numbers beside ours.
        findings: further results.

    Returns:
        What was written to `summary.json`.
    """
    table = [comparison.as_dict() for comparison in comparisons]
    summary: dict[str, Any] = {
        "experiment": experiment,
        "seed": seed,
        "quick": quick,
        "parameters": dict(parameters),
        "comparison": table,
        **findings,
        "files": sorted({path.name for path in out.iterdir()} | {"summary.json", "comparison.csv"}),
    }
    write_rows(out / "comparison.csv", table, COMPARISON_COLUMNS)
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return summary


def tell_comparison(summary: Mapping[str, Any]) -> list[str]:
    """The comparison as lines of text."""
    rows = summary["comparison"]
    width = max([len(row["what"]) for row in rows], default=0)
    paper_width = max([len(str(row["paper"])) for row in rows], default=0)
    lines = [f"{'':{width}}  {'paper':>{paper_width}}  {'ours':>9}"]
    for row in rows:
        verdict = {True: "agrees", False: "DIFFERS", None: ""}[row["agrees"]]
        told = f"{row['what']:{width}}  {row['paper']!s:>{paper_width}}  {row['ours']:9.2f}"
        lines.append(f"{told} {row['unit']:7} {verdict}".rstrip())
    return lines


def run_all(
    function: Callable[[TaskT], AnswerT],
    tasks: Sequence[TaskT],
    *,
    processes: int | None,
    on_progress: Callable[[int, int], None] | None,
) -> list[AnswerT]:
    """Answers of a function for all tasks, in their order, computed in several processes.

    Args:
        function: of a module, so that other processes can import it.
        tasks: arguments.
        processes: how many; None = one a core; 1 = this process alone.
        on_progress: told how many of how many tasks are done.
    """
    count = processes if processes is not None else os.cpu_count() or 1
    answers: dict[int, AnswerT] = {}
    if count == 1 or len(tasks) < 2:
        for index, task in enumerate(tasks):
            answers[index] = function(task)
            if on_progress is not None:
                on_progress(len(answers), len(tasks))
        return [answers[index] for index in range(len(tasks))]
    with ProcessPoolExecutor(min(count, len(tasks)), mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(function, task): index for index, task in enumerate(tasks)}
        for future in as_completed(futures):
            answers[futures[future]] = future.result()
            if on_progress is not None:
                on_progress(len(answers), len(tasks))
    return [answers[index] for index in range(len(tasks))]
