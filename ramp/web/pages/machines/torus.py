"""A torus: a 3D scene, flat slices, the cables of one job or reservation, and a table of everything on it.

Browsers without WebGL have the slices only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np
from nicegui import ui
from nicegui.events import SceneClickEventArguments

from ramp.web.pages import charts, row_tables
from ramp.web.pages.charts import PALETTE, SOLD, Options, plain
from ramp.web.pages.frame import Visit
from ramp.web.pages.machines.torus_map import Kind, Occupant, Place, Point, TorusMap

VIEW_DEGREES: Final = 40.0
"""Vertical field of view of the camera; a narrow one shows distant boxes nearly as large as near ones."""

TOWARDS: Final[Point] = (-0.35, -0.75, 0.45)
"""Direction from the centre of the machine to the camera."""

FILLED: Final = 0.9
"""Share of the picture's width or height that the machine fills."""

EDGE: Final = 0.62
"""Edge of a box, where neighbours are 1 apart."""

FRAME: Final = 0.8
"""Edge of the frame around a unit that the market has sold or holds, now or later."""

BOW: Final = 0.12
"""Bend of a cable for each unit that it skips."""

WIRE: Final = 0.035
"""Radius of a cable."""

HEIGHT_PX: Final = 420

AROUND: Final = 0.9
"""Room around the boxes, where neighbours are 1 apart: for the axes' names and the cables."""

BESIDES_PX: Final = 80
"""Part of the window's width beside the picture."""

RESTS: Final = "rest"
"""Event of a pointer that rests on the scene; the scene reports the boxes under it as for a click."""

KINDS: Final = {Kind.JOB: "job", Kind.SOLD: "sold by the market", Kind.HELD: "held by the market"}

FREE: Final = "(free)"
"""Name of the free units; no job or reservation has brackets in its name."""

NOTHING: Final = "none"
"""The choice of no cables."""

NOTHING_POINTED: Final = "Point at a unit or a row to see its job and cables."


class Paint(NamedTuple):
    """Colour and opacity of a box."""

    color: str
    opacity: float


IDLE: Final = Paint("#8a97a3", 0.25)
"""The paint of a free unit."""


def paint_of(occupant: Occupant, colour: str, chosen: str) -> Paint:
    """Return the paint of an occupant's units; others fade while one is chosen."""
    opacity = 0.55 if occupant.kind is Kind.HELD else 0.95
    if chosen and occupant.name != chosen:
        opacity *= 0.3
    return Paint(SOLD if occupant.kind is not Kind.JOB else colour, opacity)


def colours_of(drawn: TorusMap) -> dict[str, str]:
    """The colour of each occupant by name, which a job keeps as others come and go."""
    found = {}
    for each in drawn.occupants:
        number = int("".join(filter(str.isdecimal, each.name)) or 0)
        found[each.name] = PALETTE[number % len(PALETTE)] if each.kind is Kind.JOB else SOLD
    return found


def bow_of(start: Point, end: Point) -> Point:
    """Return the point that a cable bends towards: up for a horizontal one, sideways for a vertical one."""
    middle = [(a + b) / 2 for a, b in zip(start, end, strict=True)]
    length = sum(abs(a - b) for a, b in zip(start, end, strict=True))
    # a cable back bends to the other side, so that two between the same switches stay apart
    away = BOW * (1 + 2 * length) * (1 if start < end else -1)
    if start[2] == end[2]:
        return middle[0], middle[1], middle[2] + EDGE / 2 + away
    return middle[0] + EDGE / 2 + away, middle[1], middle[2]


def camera_for(low: Point, high: Point, aspect: float) -> tuple[Point, Point]:
    """Return the nearest position of a camera that shows a whole box, and the point that it looks at.

    Args:
        low: the box's corner with the least coordinates.
        high: the corner opposite.
        aspect: width of the picture by its height.
    """
    least, most = np.array(low), np.array(high)
    middle = (least + most) / 2
    back = np.array(TOWARDS) / np.linalg.norm(TOWARDS)
    right = np.cross((0.0, 0.0, 1.0), back)
    right /= np.linalg.norm(right)
    up = np.cross(back, right)
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = signs * (most - least) / 2
    half = math.tan(math.radians(VIEW_DEGREES) / 2) * FILLED
    # a corner is seen where its offset is at most `half` (times the aspect, sideways) of its distance along the view
    needed = corners @ back + np.maximum(np.abs(corners @ right) / aspect, np.abs(corners @ up)) / half
    at = middle + back * needed.max()
    return (float(at[0]), float(at[1]), float(at[2])), (float(middle[0]), float(middle[1]), float(middle[2]))


class MachineScene:
    """The scene of a machine.

    Args:
        choose: called with the name of an occupant on a click, or an empty string for a free unit.
        point: called in the same way while the pointer rests on a unit.
    """

    def __init__(
        self,
        drawn: TorusMap,
        visit: Visit,
        choose: Callable[[str], None],
        point: Callable[[str], None],
    ) -> None:
        self._dark = dark = visit.dark
        self._aspect = max(visit.width_px - BESIDES_PX, HEIGHT_PX / 2) / HEIGHT_PX
        self._choose = choose
        self._point = point
        self._shown: Mapping[Place, Occupant] = {}
        ground = "#1c232b" if dark else "#ffffff"
        self._moment: datetime | None = None
        self._drawn = drawn
        self._chosen = self._pointed = ""
        self._scene = ui.scene(
            height=HEIGHT_PX,
            grid=False,
            background_color=ground,
            camera=ui.scene.perspective_camera(fov=VIEW_DEGREES),
            on_click=self._clicked,
            click_events=["click", RESTS],
        )
        self._scene.on("mousemove", js_handler=f"(event) => ramp.resting(event, '{RESTS}')")
        self._scene.classes("full-width").style(f"height: {HEIGHT_PX}px").props(
            'role="img" aria-label="The machine in 3D, as in the tables"'
        )
        self._place_all(drawn)

    def show(self, drawn: TorusMap, moment: datetime, chosen: str) -> None:
        if drawn.extents != self._extents:
            self._place_all(drawn)
        colours = colours_of(drawn)
        self._shown = drawn.occupied(moment)
        for place, box in self._boxes.items():
            occupant = self._shown.get(place)
            paint = IDLE if occupant is None else paint_of(occupant, colours[occupant.name], chosen)
            if self._paints.get(place) != paint:
                self._paints[place] = paint
                box.material(*paint)
        self._show_frames(drawn, moment)
        self._drawn, self._moment, self._chosen = drawn, moment, chosen
        self._show_cables()

    def light(self, name: str) -> None:
        """Show the cables of an occupant; of the chosen one for an empty name."""
        self._pointed = name
        self._show_cables()

    def _place_all(self, drawn: TorusMap) -> None:
        self._scene.clear()
        self._boxes: dict[Place, Any] = {}
        self._paints: dict[Place, Paint] = {}
        self._frames: dict[Place, Any] = {}
        self._wires: list[Any] = []
        self._extents = drawn.extents
        ink = "color: #c3ced8" if self._dark else "color: #3d4a56"
        with self._scene as scene:
            for place in drawn.places:
                name = ",".join(map(str, place))
                self._boxes[place] = scene.box(EDGE, EDGE, EDGE).move(*drawn.point(place)).with_name(name)
            corner = drawn.point((0,) * len(drawn.extents))
            for axis, name in enumerate("XYZ"[: min(drawn.dimensions, 3)]):
                at = [value - 0.8 for value in corner]
                at[axis] += 1.2
                scene.text(name, ink).move(*at)
            for fixed in drawn.slices if drawn.dimensions > 3 else ():
                x, y, z = drawn.point((*fixed, 0, 0, 0))
                scene.text("slice " + ",".join(map(str, fixed)), ink).move(x, y - 1.2, z)
        length, depth, height = (each - 1 + AROUND for each in drawn.size)
        camera, looks_at = camera_for((-AROUND, -AROUND, -AROUND), (length, depth, height), self._aspect)
        self._scene.move_camera(*camera, *looks_at, duration=0)

    def _show_frames(self, drawn: TorusMap, moment: datetime) -> None:
        booked = drawn.booked(moment)
        for place in [place for place in self._frames if place not in booked]:
            self._frames.pop(place).delete()
        with self._scene as scene:
            for place in booked:
                if place not in self._frames:
                    frame = scene.box(FRAME, FRAME, FRAME, wireframe=True).move(*drawn.point(place))
                    self._frames[place] = frame.material(SOLD, 0.9)

    def _show_cables(self) -> None:
        for wire in self._wires:
            wire.delete()
        self._wires = []
        ink = "#ffffff" if self._dark else "#17222d"
        lit = [
            each
            for each in self._drawn.occupants
            if each.name == (self._pointed or self._chosen) and self._moment and each.has_at(self._moment)
        ]
        with self._scene as scene:
            for start, end in (ends for each in lit for ends in self._drawn.wires(each)):
                wire = scene.quadratic_bezier_tube(
                    list(start),
                    list(bow_of(start, end)),
                    list(end),
                    tubular_segments=12,
                    radius=WIRE,
                    radial_segments=5,
                )
                self._wires.append(wire.material(ink))

    def _clicked(self, event: SceneClickEventArguments) -> None:
        places = {box.id: place for place, box in self._boxes.items()}
        hit = next((places[hit.object_id] for hit in event.hits if hit.object_id in places), None)
        occupant = None if hit is None else self._shown.get(hit)
        name = "" if occupant is None else occupant.name
        if event.click_type == RESTS:
            self._point(name)
        elif hit is not None:
            self._choose(name)


class SlicesChart:
    """The units of a machine by X and Y, with a slice for each Z; the arguments are those of `MachineScene`."""

    def __init__(self, choose: Callable[[str], None], point: Callable[[str], None]) -> None:
        def named(series: object) -> str:
            return "" if series == FREE else str(series)

        label = "Slices of the machine, as in the tables"
        self._chart = charts.draw_chart({}, label, 16, lambda event: choose(named(event.series_name)))
        self._chart.on("chart:mouseover", lambda event: point(named(event.args["seriesName"])), ["seriesName"])
        self._chart.on("chart:globalout", lambda: point(""))

    def show(self, drawn: TorusMap, moment: datetime, chosen: str) -> None:
        charts.redraw(self._chart, slices_chart(drawn, moment, chosen))

    def light(self, name: str) -> None:
        """Bring out the units of an occupant; of none for an empty name."""
        self._chart.run_chart_method("dispatchAction", {"type": "downplay"})
        if name:
            self._chart.run_chart_method("dispatchAction", {"type": "highlight", "seriesName": name})


def slices_chart(drawn: TorusMap, moment: datetime, chosen: str) -> Options:
    """Return the chart of a machine's units: a series of the free ones, and one of each occupant in its colour."""
    occupied, colours = drawn.occupied(moment), colours_of(drawn)
    width, _, depth = drawn.extents[-3:]
    pixels = max(5, min(18, 900 // (len(drawn.slices) * depth * (width + 1))))
    series: dict[str, dict[str, Any]] = {}
    for place in drawn.places:
        occupant = occupied.get(place)
        paint = IDLE if occupant is None else paint_of(occupant, colours[occupant.name], chosen)
        name = FREE if occupant is None else occupant.name
        drawn_as = series.setdefault(
            name,
            {
                "name": name,
                "type": "scatter",
                "symbol": "rect",
                "symbolSize": pixels,
                "itemStyle": {"color": paint.color, "opacity": paint.opacity},
                "emphasis": {"focus": "series", "scale": 1.5},
                "data": [],
            },
        )
        number = drawn.slices.index(place[:-3]) * depth + place[-1]
        value = (number * (width + 1) + place[-3], place[-2])
        drawn_as["data"].append({"value": value, "name": f"{','.join(map(str, place))}: {name}"})
    options = plain(x_name="X, one slice for each Z", y_name="Y", x_type="value")
    options["legend"]["show"] = False
    options["tooltip"] = {"trigger": "item", "confine": True, "formatter": "{b}"}
    options["xAxis"] |= {"axisLabel": {"show": False}, "splitLine": {"show": False}}
    options["series"] = [{**each, "data": tuple(each["data"])} for each in series.values()]
    return options


class PlacesView:
    """Draws places at a moment; `end_text` writes the end of a job or reservation."""

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
        self._views.append(SlicesChart(self._clicked, self._point))
        self._under = ui.label(NOTHING_POINTED).classes("ramp-quiet ramp-number")
        self._table = row_tables.RowTable(
            (
                row_tables.Column("Job or reservation", lambda each: each.name),
                row_tables.Column("Kind", lambda each: KINDS[each.kind]),
                row_tables.Column("Units", lambda each: len(each.places), row_tables.Kind.NUMBER),
                row_tables.Column("Connection", lambda each: ", ".join(each.connection) or "-"),
                row_tables.Column("Cables", lambda each: len(self._drawn.wires(each)), row_tables.Kind.NUMBER),
                row_tables.Column("Expected end", lambda each: "unknown" if each.end is None else end_text(each.end)),
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
        self._table.bring_out(name)
        for view in self._views:
            view.light(name)
