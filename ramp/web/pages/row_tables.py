"""Sortable tables with pages of rows; numbers are right-aligned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from nicegui import ui

ROWS: Final = 25
"""Rows on a page of a table."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        label: its heading, with the unit.
        value: the value of an item in it; None for an unknown one.
        right: whether it holds numbers.
        link: path that its values link to, followed by the item's key; empty for none.
    """

    label: str
    value: Callable[[Any], object]
    right: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table and the note that replaces it while it has no rows."""

    columns: Sequence[Column]
    key: Callable[[Any], object] | None
    drawn: ui.table
    note: ui.label

    def show(self, items: Iterable[object]) -> None:
        """Show a row for each item."""
        rows = tuple(
            {"id": number if self.key is None else self.key(item)}
            | {f"c{at}": column.value(item) for at, column in enumerate(self.columns)}
            for number, item in enumerate(items)
        )
        # NiceGUI wraps lists and dicts to hear of changes in them, which costs more than the rows do; not so a tuple
        self.drawn.rows = cast("list[dict[str, object]]", rows)
        few = len(rows) <= ROWS
        self.drawn.props("hide-pagination" if few else "", remove="" if few else "hide-pagination")
        self.drawn.update()
        self.drawn.set_visibility(bool(rows))
        self.note.set_visibility(not rows)


def table(
    columns: Sequence[Column],
    items: Iterable[object] = (),
    *,
    key: Callable[[Any], object] | None = None,
    empty: str = "None.",
) -> RowTable:
    """Draw a table.

    Args:
        columns: from left to right.
        items: one for each row.
        key: identifies an item; its place if not given.
        empty: note for no rows.
    """
    note = ui.label(empty).classes("ramp-quiet")
    with ui.element("div").classes("ramp-scrolled").props('tabindex="0" role="region" aria-label="Table"'):
        drawn = ui.table(
            columns=[
                {
                    "name": f"c{at}",
                    "label": each.label,
                    "field": f"c{at}",
                    "align": "right" if each.right else "left",
                    "sortable": True,
                }
                for at, each in enumerate(columns)
            ],
            rows=[],
            row_key="id",
            pagination=ROWS,
        )
    drawn.classes("full-width ramp-number").props("dense")
    for number, path in enumerate(each.link for each in columns):
        if path:
            drawn.add_slot(
                f"body-cell-c{number}",
                f'<q-td :props="props"><a :href="\'{path}\' + encodeURIComponent(props.row.id)">'
                "{{ props.value }}</a></q-td>",
            )
    found = RowTable(columns, key, drawn, note)
    found.show(items)
    return found
