"""Sortable tables with pages of rows. Rows hold raw values; their columns format and sort them in the browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, cast

from nicegui import ui

ROWS: Final = 25
"""Rows on a page of a table."""

PICK: Final = "pick"
"""Event of a button in a cell; its argument is the key of the row's item."""

POINT: Final = "point"
"""Event of a pointer that enters a cell; its argument is the same."""


class Kind(StrEnum):
    """What a column holds: texts, numbers, amounts in minor units, shares from 0 to 1, or aware datetimes."""

    TEXT = "text"
    NUMBER = "number"
    CREDITS = "credits"
    SHARE = "share"
    TIME = "time"


FORMATS: Final = {kind: f"ramp.{kind}" for kind in Kind if kind is not Kind.TEXT}
"""The functions of `pages.js` that write values."""

PLAIN: Final = '<q-td :props="props">{{ props.value }}</q-td>'


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        label: its heading, with the unit.
        value: the value of an item in it, by which it is sorted; None for an unknown one.
        kind: of the values.
        text: what is shown of an item in place of its value.
        link: path that its values link to, followed by the item's key; empty for none.
        picks: whether its values are buttons that send `PICK`.
        curve: whether its values are drawn as points of a line, `x,y x,y ...` within 100 x 24.
    """

    label: str
    value: Callable[[Any], object]
    kind: Kind = Kind.TEXT
    text: Callable[[Any], str] | None = None
    link: str = ""
    picks: bool = False
    curve: bool = False

    def described(self, number: int) -> dict[str, object]:
        """Return the column as Quasar's table takes it."""
        found: dict[str, object] = {"name": f"c{number}", "label": self.label, "field": f"c{number}"}
        found |= {"align": "left" if self.kind in (Kind.TEXT, Kind.TIME) else "right", "sortable": not self.curve}
        if self.kind is Kind.TEXT:
            found[":sort"] = "ramp.naturally"
        else:
            found[":format"] = FORMATS[self.kind]
        return found

    def cells(self, number: int, item: object) -> dict[str, object]:
        value = self.value(item)
        raw = round(value.timestamp() * 1000) if isinstance(value, datetime) else value
        return {f"c{number}": raw} if self.text is None else {f"c{number}": raw, f"t{number}": self.text(item)}

    def slot(self, number: int, *, points: bool) -> str:
        """Return the template of its cells; `points` if they send `POINT` when the pointer enters them."""
        line = "{{ props.value }}" if self.text is None else f"{{{{ props.row.t{number} }}}}"
        if self.curve:
            line = (
                '<svg viewBox="0 0 100 24" width="100" height="24" role="img" :aria-label="props.value ? \'Prices paid'
                ' over 24 hours\' : \'No sales\'"><polyline :points="props.value" fill="none"'
                ' stroke="var(--ramp-mark)" stroke-width="2"/></svg>'
            )
        if self.kind is Kind.TIME:
            line = (
                f'<time v-if="props.row.c{number} != null" :title="new Date(props.row.c{number}).toISOString()'
                f".slice(0, 19).replace('T', ' ') + ' UTC'\">{line}</time>"
            )
        if self.link:
            path = self.link
            line = f"<a :href=\"'{path}' + encodeURIComponent(props.row.id)\">{line}</a>"
        if self.picks:
            line = (
                f'<button v-if="props.value" type="button" class="ramp-pick" @click="$parent.$emit(\'{PICK}\','
                f' props.row.id)">{line}</button>'
            )
        pointed = f" @mouseenter=\"$parent.$emit('{POINT}', props.row.id)\"" if points else ""
        return f'<q-td :props="props"{pointed}>{line}</q-td>'


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table and the note that replaces it while it has no rows."""

    columns: Sequence[Column]
    key: Callable[[Any], object] | None
    drawn: ui.table
    note: ui.label

    def mark(self, key: str) -> None:
        """Bring out the row of an item; of none for an unknown key."""
        self.drawn.props[":table-row-class-fn"] = f"(row) => row.id === {json.dumps(key)} ? 'ramp-marked' : ''"
        self.drawn.update()

    def show(self, items: Iterable[object]) -> None:
        """Show a row for each item."""
        rows = []
        for place, item in enumerate(items):
            row: dict[str, object] = {"id": place if self.key is None else self.key(item)}
            for number, column in enumerate(self.columns):
                row |= column.cells(number, item)
            rows.append(row)
        # NiceGUI wraps lists and dicts to hear of changes in them, which costs more than the rows do; not so a tuple
        self.drawn.rows = cast("list[dict[str, object]]", tuple(rows))
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
    name: str = "Table",
    on_pick: Callable[[str], object] | None = None,
    on_point: Callable[[str], object] | None = None,
) -> RowTable:
    """Draw a table.

    Args:
        columns: from left to right.
        items: one for each row.
        key: identifies an item; its place if not given.
        empty: note for no rows.
        name: for screen readers.
        on_pick: called with the key of a row whose button was pressed.
        on_point: called with the key of the row under the pointer, and with "" when the pointer has left the table.
    """
    note = ui.label(empty).classes("ramp-quiet")
    region = ui.element("div").classes("ramp-scrolled").props('tabindex="0" role="region"')
    region.props["aria-label"] = name
    with region:
        drawn = ui.table(
            columns=[each.described(number) for number, each in enumerate(columns)],
            rows=[],
            row_key="id",
            pagination=ROWS,
        )
    drawn.classes("full-width ramp-number").props("dense")
    for number, each in enumerate(columns):
        cell = each.slot(number, points=on_point is not None)
        if cell != PLAIN:
            drawn.add_slot(f"body-cell-c{number}", cell)
    if on_pick is not None:
        drawn.on(PICK, lambda event: on_pick(str(event.args)))
    if on_point is not None:
        drawn.on(POINT, lambda event: on_point(str(event.args)))
        region.on("mouseleave", lambda: on_point(""), [])
    found = RowTable(columns, key, drawn, note)
    found.show(items)
    return found
