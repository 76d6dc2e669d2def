"""Tables of a study in lines of text."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from simulation.experiments.result import Row, Rows

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
