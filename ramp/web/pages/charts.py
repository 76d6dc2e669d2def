"""Options of the pages' charts (Apache ECharts), in the browser's scheme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui import ui
from nicegui.events import EChartPointClickEventArguments as Picked

from ramp.control.auction_story import AuctionStory
from ramp.model.instant import Instant

Options = dict[str, Any]
"""A chart's options. Points are tuples: NiceGUI wraps every list and dict to observe changes, which is slow for
thousands of points, but not tuples; in JSON they are the same."""

LIGHT = {"ink": "#3d4a56", "line": "#d7dee5", "asked": "#b3541e", "best": "#1d5f8a", "offers": "#5d8f3a"}
DARK = {"ink": "#c3ced8", "line": "#35414d", "asked": "#f0a065", "best": "#7fc1ea", "offers": "#a5d47e"}


def colours(dark: bool) -> dict[str, str]:
    """The colours of lines and text on a dark or light page."""
    return DARK if dark else LIGHT


def draw_chart(
    options: Options, label: str, height_rem: int = 18, on_pick: Callable[[Picked], object] | None = None
) -> ui.echart:
    """Draw a chart.

    Args:
        options: what it shows.
        label: for screen readers.
        height_rem: its height in `rem`, the unit of CSS.
        on_pick: called when a point is clicked.
    """
    chart = ui.echart(options, on_point_click=on_pick).style(f"height: {height_rem}rem").props('role="img"')
    chart.props["aria-label"] = label
    return chart


def redraw(chart: ui.echart, options: Options) -> None:
    """Replace everything that a chart shows."""
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def plain(dark: bool, *, x_name: str, y_name: str, x_type: str = "category") -> Options:
    """Return the common options of charts: two axes with units, a legend above, and a tooltip.

    They are readable on a telephone: labels do not overlap.
    """
    shown = colours(dark)
    text = {"color": shown["ink"]}
    axis: Options = {
        "nameTextStyle": text,
        "axisLabel": {**text, "hideOverlap": True},
        "axisLine": {"lineStyle": {"color": shown["ink"]}},
        "splitLine": {"lineStyle": {"color": shown["line"]}},
    }
    return {
        "animation": False,
        "aria": {"enabled": True},
        "textStyle": text,
        "legend": {"textStyle": text, "top": 0},
        "tooltip": {"trigger": "axis", "confine": True},
        "grid": {"left": 56, "right": 24, "top": 60, "bottom": 46},
        "xAxis": {**axis, "type": x_type, "name": x_name, "nameLocation": "middle", "nameGap": 28},
        "yAxis": {
            **axis,
            "axisLabel": {**axis["axisLabel"], ":formatter": "ramp.number"},
            "type": "value",
            "name": y_name,
            "minInterval": 1,
            "scale": True,
        },
        "series": [],
    }


def auction_chart(story: AuctionStory, unit: int, dark: bool) -> Options:
    """Return the chart of asking price, best price and offers of a unit by round."""
    shown = colours(dark)
    rounds = [story.rounds[number] for number in sorted(story.rounds) if unit in story.rounds[number].asked]
    names = [each.name for each in rounds]
    options = plain(dark, x_name="round", y_name="credits/core-hour")
    options["xAxis"]["data"] = names
    offers = tuple(
        (each.name, bid.cpu_hour_cost)
        for each in rounds
        for bid in (each.record.bids if each.record is not None else ())
        if bid.unit == unit
    )
    best = [each.best[unit].cpu_hour_cost if unit in each.best else None for each in rounds]
    options["series"] = [
        {
            "name": "asking price",
            "type": "line",
            "step": "middle",
            "data": [each.asked[unit] for each in rounds],
            "color": shown["asked"],
            "lineStyle": {"type": "dashed", "width": 2},
            "symbol": "none",
        },
        {
            "name": "best offer",
            "type": "line",
            "step": "middle",
            "data": best,
            "color": shown["best"],
            "lineStyle": {"width": 3},
            "symbolSize": 8,
        },
        {"name": "offers", "type": "scatter", "data": offers, "color": shown["offers"], "symbolSize": 7},
    ]
    return options


def balance_chart(points: Sequence[tuple[Instant, int]], dark: bool) -> Options:
    """Return the chart of a balance after every posting; amounts in minor units."""
    shown = colours(dark)
    options = plain(dark, x_name="", y_name="credits", x_type="time")
    options["grid"]["left"] = 90
    options["series"] = [
        {
            "name": "balance",
            "type": "line",
            "step": "end",
            "data": tuple((at // 1000, amount / 100) for at, amount in points),
            "color": shown["best"],
            "symbolSize": 6,
        }
    ]
    return options
