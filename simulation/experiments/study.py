"""Studies are declared, and run by one engine.

A `Study` names its cases, what is measured of each, its tables with the meaning of their columns, its pictures, and the
numbers of a paper that stand beside ours. The engine runs the cases in several processes or where `executors` says,
writes tables, pictures, `columns.md` and `summary.json`, and prints what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from simulation.experiments.comparison import Comparison, tell_comparison
from simulation.experiments.figures import Figure
from simulation.experiments.measuring import Perform, Progress, in_processes
from simulation.experiments.result import Columns, Row, Rows, write_rows, write_summary

SPREADS: Final = ("_half", "_half_width", "_ci", "_sd")
"""Endings of columns that say how far the value of the column without that ending is off."""


class Shown(NamedTuple):
    """A table that is printed.

    Attributes:
        table: its name.
        columns: those that are printed, with spaces between; how far one is off is in the same place.
        title: of the table.
    """

    table: str
    columns: str
    title: str = ""


def print_table(shown: Shown, rows: Rows) -> list[str]:
    """The lines of a table, as wide as its widest cells."""
    columns = shown.columns.split()
    cells = [[_cell(row, column) for column in columns] for row in rows]
    words = [any(isinstance(row.get(column), str) and row[column] for row in rows) for column in columns]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    lines = [shown.title or shown.table.replace("_", " ")]
    for line in (columns, *cells):
        placed = [
            text.ljust(width) if of_words else text.rjust(width)
            for text, width, of_words in zip(line, widths, words, strict=True)
        ]
        lines.append("  ".join(placed).rstrip())
    return lines


def _cell(row: Row, column: str) -> str:
    spread = next((row[column + ending] for ending in SPREADS if column + ending in row), None)
    return _number(row.get(column)) + (f" ±{_number(spread)}" if isinstance(spread, int | float) else "")


def _number(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3f}".rstrip("0").rstrip(".")
    return str(value)


ValueT = TypeVar("ValueT")

RUNS: Final = "runs"
"""Name of the only part of a study whose cases have no parts."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a study is run.

    Attributes:
        quick: a small version, in under a minute.
        seed: of all that is drawn.
        options: the study's own options, those that were not given with their defaults.
    """

    quick: bool
    seed: int
    options: Mapping[str, Any]

    def __getitem__(self, option: str) -> Any:
        """Value of an option."""
        return self.options[option]

    def either(self, whole: ValueT, quick: ValueT) -> ValueT:
        """The first in a whole run, the second in a small one."""
        return quick if self.quick else whole

    def seeds(self, whole: int, quick: int) -> range:
        """So many seeds, beginning with that of the run."""
        return range(self.seed, self.seed + self.either(whole, quick))


@dataclass(slots=True)
class Found:
    """What has come out of a run so far.

    Attributes:
        run: how the study is run.
        cases: by part.
        answers: what was measured of them, by part, in the same order.
        tables: rows by the table's name; the tables before the one that is being made.
    """

    run: Run
    cases: Mapping[str, Sequence[Any]]
    answers: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    tables: dict[str, Rows] = field(default_factory=dict)

    def __getitem__(self, table: str) -> Rows:
        """Rows of a table."""
        return self.tables[table]

    def pairs(self, part: str = RUNS) -> list[tuple[Any, Any]]:
        """Each case with what was measured of it."""
        return list(zip(self.cases[part], self.answers[part], strict=True))


MakeCases = Callable[[Run], Sequence[Any] | Mapping[str, Sequence[Any]]]
"""Gives the cases, in one list or in several parts by name; a case that comes up twice is measured once."""


def rows_of(*parts: str) -> Callable[[Found], Rows]:
    """A table of all that was measured, where that is a row for each case; of some parts or of the only one."""
    return lambda found: [row for part in parts or (RUNS,) for row in found.answers[part]]


Tables = Mapping[str, Callable[[Found], Rows]]
"""How tables are made, by their names."""


def _nothing(_: Found) -> Sequence[Any]:
    return ()


def _no_stand_ins(_: Found) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study that `ramp experiment run` knows.

    What may be a function of `Found` is one where it depends on what was measured.

    Attributes:
        name: on the command line.
        about: one line.
        cases: says what is measured.
        measure: takes a case; a function of a module or of the study's file, as other processes call it.
        columns: what the columns of the tables mean.
        tables: by the names of their CSV files; each may use those before it.
        figures: pictures, by their files.
        comparisons: what papers say, beside ours.
        shown: tables that are printed and are in `summary.json`.
        findings: what else is in `summary.json`, by its name there.
        parameters: everything that decides the result, with definitions in words.
        notes: what a reader should know.
        stand_ins: which workloads are synthetic in place of logs; empty: none.
        options: of the command line, with their defaults: `mode` (`simulated` or `xmpp`), `repeat`, `whole_logs`,
            `rule`, `pricing`, `requests`, `swarm`, `log`.
        order: sort key of the cases; the longest go first, so that no process is left alone with one at the end.
        together: cases for which it gives the same are measured one after another by one process.
        perform: measures the cases.
    """

    name: str
    about: str
    cases: MakeCases
    measure: Callable[[Any], Any]
    columns: Columns
    tables: Tables | Callable[[Found], Tables] = field(default_factory=lambda: {RUNS: rows_of()})
    figures: Mapping[str, Figure] = field(default_factory=dict)
    comparisons: Callable[[Found], Sequence[Comparison]] = _nothing
    shown: Sequence[Shown] = ()
    findings: Mapping[str, Callable[[Found], Any]] = field(default_factory=dict)
    parameters: Mapping[str, Any] | Callable[[Found], Mapping[str, Any]] = field(default_factory=dict)
    notes: Sequence[str] | Callable[[Found], Sequence[str]] = ()
    stand_ins: Callable[[Found], str] = _no_stand_ins
    options: Mapping[str, Any] = field(default_factory=dict)
    order: Callable[[Any], Any] | None = None
    together: Callable[[Any], Any] | None = None
    perform: Perform = in_processes

    def run(
        self, out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None, **given: Any
    ) -> dict[str, Any]:
        """Run the study.

        Args:
            out: existing empty directory for CSV, PNG, `columns.md` and `summary.json`.
            quick: a small version.
            seed: of all that is drawn.
            processes: processes to use; None = one a core.
            on_progress: told how many of how many cases are done.
            given: some of the study's options.

        Returns:
            The contents of `summary.json`.
        """
        found = self.found(Run(quick, seed, {**self.options, **given}), processes, on_progress)
        for name, table in (self.tables(found) if callable(self.tables) else self.tables).items():
            found.tables[name] = table(found)
            write_rows(out / f"{name}.csv", found[name])
        for name, figure in self.figures.items():
            figure.save(found, out / name)
        notes = self.notes(found) if callable(self.notes) else self.notes
        return write_summary(
            out,
            experiment=self.name,
            seed=seed,
            quick=quick,
            parameters=self.parameters(found) if callable(self.parameters) else self.parameters,
            comparisons=self.comparisons(found),
            findings={
                **{one.table: found[one.table] for one in self.shown},
                **{name: make(found) for name, make in self.findings.items()},
                "notes": list(notes),
            },
            columns=self.columns,
            stand_ins=self.stand_ins(found),
        )

    def found(self, run: Run, processes: int | None = 1, on_progress: Progress | None = None) -> Found:
        """The cases of a run and what was measured of them."""
        made = self.cases(run)
        parts = dict(made) if isinstance(made, Mapping) else {RUNS: made}
        every = [case for cases in parts.values() for case in cases]
        answers = iter(self.perform(self, run, every, processes, on_progress))
        return Found(run, parts, {part: [next(answers) for _ in cases] for part, cases in parts.items()})

    def tell(self, summary: Mapping[str, Any]) -> list[str]:
        """Lines for people about a summary that `run` returned."""
        mode = summary["parameters"].get("mode")
        lines = [*([f"{self.about}; {mode}:"] if mode else []), *tell_comparison(summary)]
        lines += [line for note in summary["notes"] for line in ("", f"Note: {note}")]
        for one in self.shown:
            lines += ["", *print_table(one, summary[one.table])]
        return lines


__all__ = ["RUNS", "Comparison", "Figure", "Found", "Row", "Rows", "Run", "Shown", "Study", "rows_of"]
