"""Sortable tables with pages of rows; numbers are right-aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from nicegui import ui

ROWS: Final = 25
"""Rows on a page of a table."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key in the rows, its heading with the unit, and whether it holds numbers."""

    key: str
    label: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table and the note that replaces it while it has no rows."""

    drawn: ui.table
    note: ui.label

    def show(self, rows: Sequence[Mapping[str, object]]) -> None:
        # NiceGUI wraps lists and dicts to hear of changes in them, which costs more than the rows do; not so a tuple
        self.drawn.rows = cast("list[dict[str, object]]", tuple(dict(row) for row in rows))
        few = len(rows) <= ROWS
        self.drawn.props("hide-pagination" if few else "", remove="" if few else "hide-pagination")
        self.drawn.update()
        self.drawn.set_visibility(bool(rows))
        self.note.set_visibility(not rows)

    def link(self, column: str, path: str) -> None:
        """Turn the values of a column into links to `path` followed by the row's `id`."""
        self.drawn.add_slot(
            f"body-cell-{column}",
            f'<q-td :props="props"><a :href="\'{path}\' + encodeURIComponent(props.row.id)">'
            "{{ props.value }}</a></q-td>",
        )


def table(
    columns: Sequence[Column], rows: Sequence[Mapping[str, object]], key: str, *, empty: str = "None."
) -> RowTable:
    """Draw a table.

    Args:
        columns: from left to right.
        rows: values by column.
        key: column that identifies a row.
        empty: note for no rows.
    """
    note = ui.label(empty).classes("ramp-quiet")
    with ui.element("div").classes("ramp-scrolled").props('tabindex="0" role="region" aria-label="Table"'):
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
            rows=[],
            row_key=key,
            pagination=ROWS,
        )
    drawn.classes("full-width ramp-number").props("dense")
    found = RowTable(drawn, note)
    found.show(rows)
    return found
