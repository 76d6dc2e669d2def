"""What every experiment leaves behind: tables, what their columns mean, and a summary beside the paper's numbers."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from simulation.experiments.comparison import COMPARISON_COLUMNS, Comparison, count_verdicts

DICTIONARY_FILE: Final = "columns.md"
SUMMARY_FILE: Final = "summary.json"
COMPARISON_FILE: Final = "comparison.csv"


class Column(NamedTuple):
    """What a column of a table holds: its unit (empty for names and plain numbers) and its meaning."""

    unit: str
    meaning: str


Columns = Mapping[str, Column]
"""By the column's name, or by `file/name` where a name means something else in one file."""

COMMON_COLUMNS: Final[Columns] = {
    "what": Column("", "the statement that is compared"),
    "paper": Column("as `unit` says", "what the paper says, a number or words"),
    f"{COMPARISON_FILE}/ours": Column("as `unit` says", "our number"),
    "unit": Column("", "unit of both numbers"),
    "agrees_if": Column("as `unit` says", "when the verdict is `agrees`; empty: nothing to judge"),
    "verdict": Column("", "agrees, DIFFERS or no number; in brackets what it must be read with"),
    "why": Column("", "why ours differs, or why there is nothing to judge"),
    "picture": Column("", "file of the picture that shows it"),
    "seed": Column("", "of all that was drawn"),
}
"""Of columns that mean the same in all experiments."""


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
    columns: Columns,
    stand_ins: str = "",
) -> dict[str, Any]:
    """Write `summary.json`, `comparison.csv` and `columns.md`.

    Args:
        out: the experiment's directory; every CSV of it is there already.
        experiment: its name.
        seed: of all that was drawn.
        quick: whether this was the small version.
        parameters: everything that decides the result, with definitions in words.
        comparisons: the paper's numbers beside ours.
        findings: further results.
        columns: what the columns of its tables mean, beside `COMMON_COLUMNS`.
        stand_ins: which of the workloads are synthetic in place of logs; verdicts say so. Empty = none.

    Returns:
        What was written to `summary.json`.
    """
    marks = [mark for mark in (stand_ins, "quick" if quick else "") if mark]
    table = [comparison.as_dict(marks) for comparison in comparisons]
    write_rows(out / COMPARISON_FILE, table, COMPARISON_COLUMNS)
    (out / DICTIONARY_FILE).write_text(_data_dictionary(out, {**COMMON_COLUMNS, **columns}), encoding="utf-8")
    summary: dict[str, Any] = {
        "experiment": experiment,
        "seed": seed,
        "quick": quick,
        "parameters": dict(parameters),
        "verdicts": count_verdicts(comparisons),
        "comparison": table,
        **findings,
        "files": sorted({path.name for path in out.iterdir()} | {SUMMARY_FILE}),
    }
    (out / SUMMARY_FILE).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return summary


def _data_dictionary(out: Path, columns: Columns) -> str:
    """Name, unit and meaning of every column of every table in a directory, as Markdown."""
    lines = ["# Columns of the tables", ""]
    for path in sorted(out.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            names = next(csv.reader(stream), [])
        lines += [f"## {path.name}", "", "| column | unit | meaning |", "|---|---|---|"]
        for name in names:
            column = columns.get(f"{path.name}/{name}") or columns.get(name)
            assert column is not None, f"nobody says what the column {name} of {path.name} means"
            lines.append(f"| `{name}` | {column.unit} | {column.meaning} |")
        lines.append("")
    return "\n".join(lines)
