"""What every experiment leaves behind: tables, what their columns mean, and a summary beside the paper's numbers.

Means have 95 % confidence intervals.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean, pstdev, stdev
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from simulation.experiments.comparison import COMPARISON_COLUMNS, Comparison, count_verdicts

if TYPE_CHECKING:
    from simulation.experiments.study import Found

DICTIONARY_FILE: Final = "columns.md"
SUMMARY_FILE: Final = "summary.json"
COMPARISON_FILE: Final = "comparison.csv"
_STAND_INS: Final = re.compile(r"(?P<some>\d+) of (?P<all>\d+) stand-ins")


class Column(NamedTuple):
    """What a column of a table holds: its unit (empty for names and plain numbers) and its meaning."""

    unit: str
    meaning: str


Columns = Mapping[str, Column]
"""By the column's name, or by `file/name` where a name means something else in one file."""

Row = Mapping[str, Any]
Rows = Sequence[Row]

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


def grouped(rows: Rows, *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by their values in some columns, both in the order of the rows."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def write_rows(path: Path, rows: Rows, columns: Sequence[str] | None = None) -> None:
    """Write a table as CSV; `columns` are the keys in order (None = those of the first row)."""
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
    instead = _why_no_measure(stand_ins, quick)
    table = [comparison.as_dict(marks, instead) for comparison in comparisons]
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


def _why_no_measure(stand_ins: str, quick: bool) -> str:
    """Why a run is no measure of the paper's numbers, and what would be; empty for a whole run on real logs.

    What a study says of its differences was found with whole runs. In a small one, or where every log has a stand-in,
    it may even contradict the row that it stands beside.
    """
    found = _STAND_INS.fullmatch(stand_ins)
    is_all = stand_ins != "" and (found is None or found["some"] == found["all"])
    if not quick and not is_all:
        return ""
    reasons, steps = [], []
    if found is not None:
        reasons.append(f"{found['some']} of {found['all']} machines have stand-ins for their logs")
    elif stand_ins:
        reasons.append(f"workloads are stand-ins ({stand_ins})")
    if stand_ins:
        steps.append("fetch the logs (`ramp logs --fetch all`)")
    if quick:
        reasons.append("this is the quick version")
        steps.append("run without --quick")
    return f"{' and '.join(reasons)}: to compare, {' and '.join(steps)}"


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


_T_975: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""97.5 % quantiles of Student's t with 1 to 30 degrees of freedom; beyond, the last one is a little too wide."""


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A mean and how sure it is.

    Attributes:
        mean: of the values.
        half_width: half of the 95 % confidence interval of the mean; 0 for a single value.
        deviation: standard deviation of the values; 0 for a single value.
        count: how many values.
    """

    mean: float
    half_width: float
    deviation: float
    count: int


def confidence_interval(values: Sequence[float]) -> ConfidenceInterval:
    """The mean of independent values, one a seed, with Student's t interval."""
    if len(values) < 2:
        return ConfidenceInterval(fmean(values), 0.0, 0.0, 1)
    deviation = stdev(values)
    quantile = _T_975[min(len(values) - 1, len(_T_975)) - 1]
    return ConfidenceInterval(fmean(values), quantile * deviation / sqrt(len(values)), deviation, len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """A table of means over the rows that agree in some columns; rows without a value are left out of its mean.

    Attributes:
        table: whose rows they are.
        by: columns in which rows must agree.
        of: columns whose means are taken.
        digits: to which means and spreads are rounded.
        spread: ending of the column beside each mean: `_half` of its 95 % interval, or `_sd`, the standard deviation of
            the values; empty: no such column.
    """

    table: str = "runs"
    by: tuple[str, ...]
    of: tuple[str, ...]
    digits: int = 3
    spread: str = "_half"

    def __call__(self, found: Found) -> Rows:
        """The table."""
        return self.over(found[self.table])

    def over(self, rows: Rows) -> list[dict[str, Any]]:
        """The table of the means of these rows."""
        table = []
        for group, mine in grouped(rows, *self.by).items():
            line: dict[str, Any] = dict(zip(self.by, group, strict=True))
            for measure in self.of:
                line |= self._entry(measure, [row[measure] for row in mine if row[measure] not in (None, "")])
            table.append(line)
        return table

    def _entry(self, measure: str, values: Sequence[float]) -> dict[str, float | None]:
        entry: dict[str, float | None] = {measure: round(fmean(values), self.digits) if values else None}
        if self.spread and values:
            spread = pstdev(values) if self.spread == "_sd" else confidence_interval(values).half_width
            entry[measure + self.spread] = round(spread, self.digits)
        elif self.spread:
            entry[measure + self.spread] = None
        return entry
