"""A torus with the cables of one job or reservation, and a table of everything on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from nicegui import ui

from ramp.web.machines.torus_map import TorusMap
from ramp.web.pages.machines.scene import KINDS, MachineScene
from ramp.web.pages.machines.slices import SlicesChart
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit

NOTHING: Final = "none"
"""The choice of no cables."""

NOTHING_POINTED: Final = "Point at a unit or a row to see its job and cables."


class PlacesView:
    """Draws places at a moment.

    Args:
        visit: of the page.
        drawn: the machine.
        end_text: writes the end of a job or reservation.
        note: explains the picture.
    """

    def __init__(self, visit: Visit, drawn: TorusMap, end_text: Callable[[datetime], str], note: str) -> None:
        self._drawn = drawn
        self._moment: datetime | None = None
        self._choice = ui.select([NOTHING], value=NOTHING, label="Cables of", on_change=self._draw)
        self._choice.style("width: 14rem; max-width: 100%")
        self._pointed = ""
        self._views: list[MachineScene | SlicesChart] = []
        if visit.webgl:
            self._views.append(MachineScene(drawn, visit, self._clicked, self._point))
            ui.label(note).classes("ramp-quiet")
        self._views.append(SlicesChart(visit, self._clicked, self._point))
        self._under = ui.label(NOTHING_POINTED).classes("ramp-quiet ramp-number")
        self._table = table(
            (
                Column("Job or reservation", lambda each: each.name),
                Column("Kind", lambda each: KINDS[each.kind]),
                Column("Units", lambda each: len(each.places), Kind.NUMBER),
                Column("Connection", lambda each: ", ".join(each.connection) or "-"),
                Column("Cables", lambda each: len(self._drawn.wires(each)), Kind.NUMBER),
                Column("Expected end", lambda each: "unknown" if each.end is None else end_text(each.end)),
            ),
            key=lambda each: each.name,
            empty="All units are free.",
            name="Jobs and reservations",
            on_point=self._point,
        )

    def show(self, drawn: TorusMap, moment: datetime) -> None:
        self._drawn, self._moment = drawn, moment
        names = [NOTHING, *(each.name for each in drawn.occupants)]
        if self._choice.options != names:
            self._choice.set_options(names, value=self._choice.value if self._choice.value in names else NOTHING)
        self._draw()

    def _clicked(self, name: str) -> None:
        self._choice.set_value(name or NOTHING)

    def _draw(self) -> None:
        moment = self._moment
        if moment is None:
            return
        chosen = "" if self._choice.value == NOTHING else str(self._choice.value)
        for view in self._views:
            view.show(self._drawn, moment, chosen)
        self._table.show(each for each in self._drawn.occupants if each.has_at(moment))

    def _point(self, name: str) -> None:
        """Show everywhere what is under the pointer in one of the pictures or in the table."""
        if name == self._pointed:
            return
        self._pointed = name
        told = NOTHING_POINTED
        for each in self._drawn.occupants:
            if each.name == name:
                units, cables = len(each.places), len(self._drawn.wires(each))
                told = f"Under the pointer: {name}, {KINDS[each.kind]}, units: {units}, cables: {cables}"
        self._under.set_text(told)
        self._table.mark(name)
        for view in self._views:
            view.light(name)
