"""Sortable tables with pages of rows. Rows hold raw values; their columns format and sort them in the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, cast

from nicegui import ui

ROWS: Final = 25
"""Rows on a page of a table."""


class Kind(StrEnum):
    """What a column holds: texts, numbers, amounts in minor units, shares from 0 to 1, or aware datetimes.

    A curve is points of a line, `x,y x,y ...` within 100 x 24; a verdict is a text that is coloured by its first word.
    """

    TEXT = "text"
    NUMBER = "number"
    CREDITS = "credits"
    SHARE = "share"
    TIME = "time"
    CURVE = "curve"
    VERDICT = "verdict"


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        label: its heading, with the unit.
        value: the value of an item in it, by which it is sorted; None for an unknown one.
        kind: of the values.
        text: what is shown of an item in place of its value.
        link: path that its values link to, followed by the item's key; empty for none.
        picks: whether its values are buttons.
    """

    label: str
    value: Callable[[Any], object]
    kind: Kind = Kind.TEXT
    text: Callable[[Any], str] | None = None
    link: str = ""
    picks: bool = False

    def described(self, number: int) -> dict[str, object]:
        """Return the column as the browser takes it."""
        left = self.kind in (Kind.TEXT, Kind.TIME, Kind.CURVE, Kind.VERDICT)
        return {
            "name": f"c{number}",
            "label": self.label,
            "field": f"c{number}",
            "align": "left" if left else "right",
            "sortable": self.kind is not Kind.CURVE,
            "kind": self.kind,
            "link": self.link,
            "picks": self.picks,
        }

    def cells(self, number: int, item: object) -> dict[str, object]:
        """Return an item's value for the browser, with the text in its place if there is one."""
        value = self.value(item)
        raw = round(value.timestamp() * 1000) if isinstance(value, datetime) else value
        return {f"c{number}": raw} if self.text is None else {f"c{number}": raw, f"tc{number}": self.text(item)}


class RowTable(ui.table, component="row_table.js"):
    """A table of NiceGUI with our cells, and a note that replaces it while it has no rows.

    Args:
        columns: from left to right.
        items: one for each row.
        key: identifies an item; its place if not given.
        empty: note for no rows.
        name: for screen readers.
        on_pick: called with the key of a row whose button was pressed.
        on_point: called with the key of the row under the pointer, and with "" when the pointer has left the table.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        items: Iterable[object] = (),
        *,
        key: Callable[[Any], object] | None = None,
        empty: str = "None.",
        name: str = "Table",
        on_pick: Callable[[str], object] | None = None,
        on_point: Callable[[str], object] | None = None,
    ) -> None:
        self._note = ui.label(empty).classes("ramp-quiet")
        region = ui.element("div").classes("ramp-scrolled").props('tabindex="0" role="region"')
        region.props["aria-label"] = name
        described = [each.described(number) for number, each in enumerate(columns)]
        with region:
            super().__init__(columns=described, rows=[], row_key="id", pagination=ROWS)
        self._shown = columns
        self._key = key
        self.classes("full-width ramp-number").props("dense")
        if on_pick is not None:
            self.on("pick", lambda event: on_pick(str(event.args)))
        if on_point is not None:
            self.props["points"] = True
            self.on("point", lambda event: on_point(str(event.args)))
            region.on("mouseleave", lambda: on_point(""), [])
        self.show(items)

    def bring_out(self, key: str) -> None:
        """Bring out the row of an item; of none for an unknown key."""
        self.props["marked"] = key
        self.update()

    def show(self, items: Iterable[object]) -> None:
        """Show a row for each item."""
        rows = []
        for place, item in enumerate(items):
            row: dict[str, object] = {"id": place if self._key is None else self._key(item)}
            for number, column in enumerate(self._shown):
                row |= column.cells(number, item)
            rows.append(row)
        # NiceGUI wraps lists and dicts to hear of changes in them, which costs more than the rows do; not so a tuple
        self.rows = cast("list[dict[str, object]]", tuple(rows))
        few = len(rows) <= ROWS
        self.props("hide-pagination" if few else "", remove="" if few else "hide-pagination")
        self.update()
        self.set_visibility(bool(rows))
        self._note.set_visibility(not rows)
