"""Tables of the pages: sortable, a page of rows at a time, numbers to the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nicegui import ui

ROWS: Final = 25
"""Rows that are shown at once."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key in the rows, its heading with the unit, and whether it holds numbers."""

    key: str
    label: str
    right: bool = False


def table(columns: Sequence[Column], rows: Sequence[Mapping[str, object]], key: str, *, empty: str = "") -> ui.table:
    """Draw a table.

    Args:
        columns: from left to right.
        rows: values by column.
        key: whose value tells rows apart.
        empty: what is said in place of no rows.
    """
    if not rows and empty:
        ui.label(empty).classes("ramp-quiet")
    drawn = ui.table(
        columns=[
            {
                "name": each.key,
                "label": each.label,
                "field": each.key,
                "align": "right" if each.right else "left",
                "sortable": True,
            }
            for each in columns
        ],
        rows=[dict(row) for row in rows],
        row_key=key,
        pagination=ROWS if len(rows) > ROWS else None,
    )
    drawn.classes("full-width ramp-number")
    drawn.set_visibility(bool(rows) or not empty)
    return drawn
