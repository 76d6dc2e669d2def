"""Options of the charts of machines and prices (Apache ECharts), in the browser's scheme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isnan
from typing import Final

from ramp.client.machine_state import MachineState
from ramp.web.machines.core_rows import Bar
from ramp.web.machines.price_history import PricePoint
from ramp.web.pages.charts import Options, colours, plain

PALETTE: Final = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#edc948", "#76b7b2", "#9c755f", "#6b7fd7", "#8cd17d",
)  # fmt: skip
"""Colours of jobs and resources, in rotation."""

SOLD: Final = "#d6006c"
"""Colour of slots that the market has sold; jobs do not use it. Held slots are half transparent."""

KINDS: Final = {"running": "#4e79a7", "waiting": "#8a97a3", "sold": SOLD, "held": "#e58bb5"}
"""Colours of bars of cores."""

_DRAW_BAR: Final = """(params, api) => {
  const from = api.coord([api.value(0), api.value(2)]), to = api.coord([api.value(1), api.value(3)]);
  const shape = {x: from[0], y: to[1], width: Math.max(to[0] - from[0], 1), height: Math.max(from[1] - to[1] - 1, 1)};
  return {type: 'rect', shape, style: api.style()};
}"""
"""The function with which ECharts draws a rectangle from times and cores."""


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _over_time(dark: bool, y_name: str) -> Options:
    options = plain(dark, x_name="", y_name=y_name, x_type="time")
    options["grid"] |= {"top": 64, "bottom": 30}
    return options


def load_chart(state: MachineState, dark: bool) -> Options:
    """Return the chart of the projected load in per cent."""
    options = _over_time(dark, "% of the cores")
    options["yAxis"] |= {"min": 0, "max": 100}
    options["legend"]["show"] = False
    options["grid"]["top"] = 40
    data = [(_ms(each.time), _per_cent(each.load)) for each in state.projected_load]
    if len(data) > 1:
        data.append((2 * data[-1][0] - data[-2][0], data[-1][1]))  # the last part is as long as the one before
    shown = colours(dark)
    options["series"] = [
        {
            "name": "projected load",
            "type": "line",
            "step": "end",
            "symbol": "none",
            "data": tuple(data),
            "color": shown["best"],
            "areaStyle": {"opacity": 0.15},
        }
    ]
    return options


def _per_cent(share: float) -> float:
    return 0.0 if isnan(share) else round(100 * min(max(share, 0.0), 1.0), 1)


def core_chart(
    bars: Sequence[Bar],
    cores: int,
    begin: datetime,
    until: datetime,
    dark: bool,
    kinds: Mapping[str, str] = KINDS,
    units: str = "cores",
) -> Options:
    """Return the chart of a flat machine: occupied cores over time as rectangles.

    Args:
        bars: the occupations.
        cores: of the machine.
        begin: left end of the picture.
        until: right end of the picture.
        dark: whether the page is dark.
        kinds: colours of bars by their kind.
        units: name of the units of the machine.
    """
    options = _over_time(dark, units)
    options["xAxis"] |= {"min": _ms(begin), "max": _ms(until)}
    options["yAxis"] |= {"min": 0, "max": cores}
    options["grid"]["left"] = 72
    options["tooltip"] = {"trigger": "item", "confine": True}
    options["series"] = [
        {
            "name": kind,
            "type": "custom",
            ":renderItem": _DRAW_BAR,
            "itemStyle": {"color": colour, "borderColor": "#ffffff", "borderWidth": 0.5},
            "encode": {"x": [0, 1], "y": [2, 3], "tooltip": [4]},
            "dimensions": ["from", "to", "lowest", "highest", units],
            "data": tuple(
                {
                    "name": f"{kind} {bar.name}",
                    "value": (
                        _ms(bar.start),
                        _ms(bar.end),
                        bar.first_core,
                        bar.first_core + bar.cores,
                        bar.cores_in_all,
                    ),
                }
                for bar in bars
                if bar.kind == kind
            ),
        }
        for kind, colour in kinds.items()
    ]
    return options


def price_series(points: Sequence[PricePoint]) -> dict[str, list[PricePoint]]:
    """Return the series of the chart of prices by name: offers and start prices of each resource."""
    found: dict[str, list[PricePoint]] = {}
    for each in points:
        name = each.resource if each.request_id else f"{each.resource} (start price)"
        found.setdefault(name, []).append(each)
    return dict(sorted(found.items()))


def price_chart(series: dict[str, list[PricePoint]], dark: bool) -> Options:
    """Return the chart of prices: offers as points, start prices as dashed steps, a colour for each resource."""
    options = _over_time(dark, "credits/core-hour")
    options["legend"] |= {"type": "scroll"}
    options["tooltip"] = {"trigger": "item", "confine": True}
    resources = sorted({points[0].resource for points in series.values()})
    options["series"] = []
    for name, points in series.items():
        colour = PALETTE[resources.index(points[0].resource) % len(PALETTE)]
        data = tuple((each.at // 1000, each.price) for each in points)
        if points[0].request_id:
            drawn: Options = {"type": "scatter", "symbolSize": 9}
        else:
            drawn = {"type": "line", "step": "end", "symbolSize": 6, "lineStyle": {"type": "dashed", "width": 2}}
        options["series"].append({"name": name, "data": data, "color": colour, **drawn})
    return options
