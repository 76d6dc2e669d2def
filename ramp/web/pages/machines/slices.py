"""A torus as flat slices side by side, beside the scene and in browsers without WebGL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from ramp.web.machines.torus_map import TorusMap
from ramp.web.pages import charts
from ramp.web.pages.charts import Options, plain
from ramp.web.pages.machines.scene import colours_of, idle, paint_of
from ramp.web.pages.visit import Visit

FREE: Final = "(free)"
"""Name of the free units; no job or reservation has brackets in its name."""


class SlicesChart:
    """The units of a machine by X and Y, with a slice for each Z; the arguments are those of `MachineScene`."""

    def __init__(self, visit: Visit, choose: Callable[[str], None], point: Callable[[str], None]) -> None:
        def named(series: object) -> str:
            return "" if series == FREE else str(series)

        self._dark = visit.dark
        label = "Slices of the machine, as in the tables"
        self._chart = charts.draw_chart({}, label, 16, lambda event: choose(named(event.series_name)))
        self._chart.on("chart:mouseover", lambda event: point(named(event.args["seriesName"])), ["seriesName"])
        self._chart.on("chart:globalout", lambda: point(""))

    def show(self, drawn: TorusMap, moment: datetime, chosen: str) -> None:
        charts.redraw(self._chart, slices_chart(drawn, moment, chosen, self._dark))

    def light(self, name: str) -> None:
        """Bring out the units of an occupant; of none for an empty name."""
        self._chart.run_chart_method("dispatchAction", {"type": "downplay"})
        if name:
            self._chart.run_chart_method("dispatchAction", {"type": "highlight", "seriesName": name})


def slices_chart(drawn: TorusMap, moment: datetime, chosen: str, dark: bool) -> Options:
    """Return the chart of a machine's units: a series of the free ones, and one of each occupant in its colour."""
    occupied, colours = drawn.occupied(moment), colours_of(drawn)
    width, _, depth = drawn.extents[-3:]
    pixels = max(5, min(18, 900 // (len(drawn.slices) * depth * (width + 1))))
    series: dict[str, dict[str, Any]] = {}
    for place in drawn.places:
        occupant = occupied.get(place)
        paint = idle(dark) if occupant is None else paint_of(occupant, colours[occupant.name], chosen)
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
    options = plain(dark, x_name="X, one slice for each Z", y_name="Y", x_type="value")
    options["legend"]["show"] = False
    options["tooltip"] = {"trigger": "item", "confine": True, "formatter": "{b}"}
    options["xAxis"] |= {"axisLabel": {"show": False}, "splitLine": {"show": False}}
    options["series"] = [{**each, "data": tuple(each["data"])} for each in series.values()]
    return options
