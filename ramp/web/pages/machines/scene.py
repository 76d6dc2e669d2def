"""A torus as a 3D scene: a box for each midplane or node, and the cables of the chosen job."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
from nicegui import ui
from nicegui.events import SceneClickEventArguments

from ramp.web.machines.torus_map import Kind, Occupant, Place, Point, TorusMap
from ramp.web.pages.machines.charts import PALETTE, SOLD
from ramp.web.pages.visit import Visit

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


@dataclass(frozen=True, slots=True)
class Paint:
    """Colour and opacity of a box."""

    color: str
    opacity: float


def idle(dark: bool) -> Paint:
    """Return the paint of a free unit."""
    return Paint("#5b6873" if dark else "#b9c3cc", 0.25)


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
        drawn: the machine.
        visit: the open page.
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
        self._boxes: dict[Place, Any] = {}
        self._paints: dict[Place, Paint] = {}
        self._frames: dict[Place, Any] = {}
        self._wires: list[Any] = []
        self._shown: Mapping[Place, Occupant] = {}
        self._extents: Place = ()
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
            paint = idle(self._dark) if occupant is None else paint_of(occupant, colours[occupant.name], chosen)
            if self._paints.get(place) != paint:
                self._paints[place] = paint
                box.material(paint.color, paint.opacity)
        self._show_frames(drawn, moment)
        self._drawn, self._moment, self._chosen = drawn, moment, chosen
        self._show_cables()

    def light(self, name: str) -> None:
        """Show the cables of an occupant; of the chosen one for an empty name."""
        self._pointed = name
        self._show_cables()

    def _place_all(self, drawn: TorusMap) -> None:
        self._scene.clear()
        self._boxes, self._paints, self._frames, self._wires = {}, {}, {}, []
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
        for each in self._drawn.occupants:
            if each.name == (self._pointed or self._chosen) and self._moment and each.has_at(self._moment):
                self._show_wires(self._drawn, each)

    def _show_wires(self, drawn: TorusMap, occupant: Occupant) -> None:
        ink = "#ffffff" if self._dark else "#17222d"
        with self._scene as scene:
            for start, end in drawn.wires(occupant):
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
