"""A torus as flat slices side by side, for browsers without WebGL."""

from __future__ import annotations

from datetime import datetime

from nicegui import ui

from ramp.web.machines.torus_map import TorusMap
from ramp.web.pages.charts import Options, plain, redraw
from ramp.web.pages.machines.scene import colours_of, idle, paint_of
from ramp.web.pages.visit import Visit


class SlicesChart:
    """The units of a machine by X and Y, with a slice for each Z; it is shown like `MachineScene`."""

    def __init__(self, visit: Visit) -> None:
        self._dark = visit.dark
        self._chart = ui.echart({}).style("height: 20rem")
        self._chart.props('role="img" aria-label="Slices of the machine, as in the tables"')

    def show(self, drawn: TorusMap, moment: datetime, chosen: str) -> None:
        redraw(self._chart, slices_chart(drawn, moment, chosen, self._dark))


def slices_chart(drawn: TorusMap, moment: datetime, chosen: str, dark: bool) -> Options:
    """Return the chart of a machine's units: free ones, and those of each occupant in its colour."""
    occupied, colours = drawn.occupied(moment), colours_of(drawn)
    width, _, depth = drawn.extents[-3:]
    points = []
    for place in drawn.places:
        occupant = occupied.get(place)
        paint = idle(dark) if occupant is None else paint_of(occupant, colours[occupant.name], chosen)
        number = drawn.slices.index(place[:-3]) * depth + place[-1]
        points.append(
            {
                "value": (number * (width + 1) + place[-3], place[-2]),
                "name": f"{','.join(map(str, place))}: {'free' if occupant is None else occupant.name}",
                "itemStyle": {"color": paint.color, "opacity": paint.opacity},
            }
        )
    options = plain(dark, x_name="X, one slice for each Z", y_name="Y", x_type="value")
    options["legend"]["show"] = False
    options["tooltip"] = {"trigger": "item", "confine": True, "formatter": "{b}"}
    options["xAxis"] |= {"axisLabel": {"show": False}, "splitLine": {"show": False}}
    options["series"] = [{"type": "scatter", "symbol": "rect", "symbolSize": 9, "data": tuple(points)}]
    return options
