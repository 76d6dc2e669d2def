"""Options of the pages' charts (Apache ECharts), in the colours of the pages, which the browser finds.

Cores of a flat machine have no coordinates, so each bar is placed as low as possible, in pieces if no gap fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isnan
from typing import Any, Final, NamedTuple

from nicegui import ui
from nicegui.events import EChartPointClickEventArguments as Picked

from ramp.client.machine_state import MachineState
from ramp.control.auction_story import AuctionStory
from ramp.model.instant import HOUR, Instant
from ramp.web.live import Sale, mean_price

Options = dict[str, Any]
"""A chart's options. Points are tuples: NiceGUI wraps every list and dict to observe changes, which is slow for
thousands of points, but not tuples; in JSON they are the same."""

PALETTE: Final = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#edc948", "#76b7b2", "#9c755f", "#6b7fd7", "#8cd17d",
)  # fmt: skip
"""Colours of jobs and resources, in rotation."""

SOLD: Final = "#d6006c"
"""Colour of slots that the market has sold; jobs do not use it. Held slots are half transparent."""

MARGIN: Final = timedelta(hours=1)
"""How far a Gantt chart reaches before and after the present at least."""

INTERVALS: Final = 48
"""Intervals of the chart of prices."""

KINDS: Final = {"running": "#4e79a7", "waiting": "#8a97a3", "sold": SOLD, "held": "#e58bb5"}
"""Colours of bars of cores."""

NOW: Final = "#e0902a"
"""Colour of the line at the present."""

BARS_MAX: Final = 600
"""Maximum number of bars of cores."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Cores that are occupied for a while.

    Attributes:
        name: of the job or reservation.
        kind: `running`, `waiting`, `sold` or `held`; of a simulation's past and future further ones.
        first_core: the lowest core of this piece, from 0.
        cores: of this piece.
        cores_in_all: of all its pieces.
        start: when it begins.
        end: when it is expected to end.
    """

    name: str
    kind: str
    first_core: int
    cores: int
    cores_in_all: int
    start: datetime
    end: datetime


class Taken(NamedTuple):
    """An occupation: its name, kind, number of cores, start and end."""

    name: str
    kind: str
    cores: int
    start: datetime
    end: datetime


def lowest_bars(taken: Iterable[Taken], cores: int, begin: datetime, until: datetime) -> tuple[Bar, ...]:
    """Return the bars of occupations between two times, each as low as possible.

    Args:
        taken: in the order in which places are given.
        cores: of the machine; those above are left out.
        begin: left end of the picture.
        until: right end of the picture.
    """
    found: list[Bar] = []
    for each in taken:
        first, last = max(each.start, begin), min(each.end, until)
        wanted = each.cores if first < last else 0
        for low, high in _gaps(found, cores, first, last):
            if wanted <= 0 or len(found) == BARS_MAX:
                break
            piece = min(high - low, wanted)
            found.append(Bar(each.name, each.kind, low, piece, each.cores, first, last))
            wanted -= piece
    return tuple(found)


def taken_in(state: MachineState) -> Iterator[Taken]:
    """Return the occupations of a machine's snapshot, the lowest first: running jobs, reservations, waiting jobs."""
    for running in state.running:
        yield Taken(str(running.job), "running", running.cores, running.start, running.end)
    for booked in sorted(state.reservations, key=lambda each: each.start):
        kind = "sold" if booked.firm else "held"
        yield Taken(booked.reservation_id, kind, booked.cores, booked.start, booked.end)
    for waiting in sorted(state.queued, key=lambda each: each.start):
        yield Taken(str(waiting.job), "waiting", waiting.cores, waiting.start, waiting.end)


def _gaps(bars: list[Bar], cores: int, start: datetime, end: datetime) -> list[tuple[int, int]]:
    """Return the ranges of cores that are free between two times, the lowest first."""
    free = []
    low = 0
    for each in sorted(
        (each for each in bars if each.start < end and start < each.end), key=lambda bar: bar.first_core
    ):
        if each.first_core > low:
            free.append((low, each.first_core))
        low = max(low, each.first_core + each.cores)
    if low < cores:
        free.append((low, cores))
    return free


def colour(name: str) -> dict[str, str]:
    """Return the option of a colour of the pages (`pages.css`), in the browser's scheme."""
    return {":color": f"ramp.colour('{name}')"}


def draw_chart(
    options: Options, label: str, height_rem: int = 18, on_pick: Callable[[Picked], object] | None = None
) -> ui.echart:
    """Draw a chart, with a label for screen readers; `on_pick` is called when a point is clicked."""
    chart = ui.echart(options, on_point_click=on_pick).style(f"height: {height_rem}rem").props('role="img"')
    chart.props["aria-label"] = label
    return chart


def redraw(chart: ui.echart, options: Options) -> None:
    """Replace everything that a chart shows."""
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def plain(*, x_name: str, y_name: str, x_type: str = "category") -> Options:
    """Return the common options of charts: two axes with units, a legend above, and a tooltip.

    They are readable on a telephone: labels do not overlap.
    """
    text = colour("quiet")
    axis: Options = {
        "nameTextStyle": text,
        "axisLabel": {**text, "hideOverlap": True},
        "axisLine": {"lineStyle": text},
        "splitLine": {"lineStyle": colour("line")},
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


def _line(name: str, data: Sequence[object], colour_name: str, **more: object) -> Options:
    return {"name": name, "type": "line", "data": data, **colour(colour_name), **more}


def auction_chart(story: AuctionStory, unit: int) -> Options:
    """Return the chart of asking price, best price and offers of a unit by round."""
    rounds = [story.rounds[number] for number in sorted(story.rounds) if unit in story.rounds[number].asked]
    names = [each.name for each in rounds]
    options = plain(x_name="round", y_name="credits/core-hour")
    options["xAxis"]["data"] = names
    offers = tuple(
        (each.name, bid.cpu_hour_cost)
        for each in rounds
        for bid in (each.record.bids if each.record is not None else ())
        if bid.unit == unit
    )
    asked, dashed = [each.asked[unit] for each in rounds], {"type": "dashed", "width": 2}
    best = [each.best[unit].cpu_hour_cost if unit in each.best else None for each in rounds]
    options["series"] = [
        _line("asking price", asked, "wait", step="middle", symbol="none", lineStyle=dashed),
        _line("best offer", best, "mark", step="middle", symbolSize=8, lineStyle={"width": 3}),
        {"name": "offers", "type": "scatter", "data": offers, **colour("good"), "symbolSize": 7},
    ]
    return options


def balance_chart(points: Sequence[tuple[Instant, int]]) -> Options:
    """Return the chart of a balance after every posting; amounts in minor units."""
    options = plain(x_name="", y_name="credits", x_type="time")
    options["grid"]["left"] = 90
    data = tuple((at // 1000, amount / 100) for at, amount in points)
    options["series"] = [_line("balance", data, "mark", step="end", symbolSize=6)]
    return options


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _over_time(y_name: str) -> Options:
    options = plain(x_name="", y_name=y_name, x_type="time")
    options["grid"] |= {"top": 64, "bottom": 30}
    return options


def load_chart(state: MachineState) -> Options:
    """Return the chart of the projected load in per cent."""
    options = _over_time("% of the cores")
    options["yAxis"] |= {"min": 0, "max": 100}
    options["legend"]["show"] = False
    options["grid"]["top"] = 40
    data = [(_ms(each.time), _per_cent(each.load)) for each in state.projected_load]
    if len(data) > 1:
        data.append((2 * data[-1][0] - data[-2][0], data[-1][1]))  # the last part is as long as the one before
    area = {"opacity": 0.15}
    options["series"] = [_line("projected load", tuple(data), "mark", step="end", symbol="none", areaStyle=area)]
    return options


def _per_cent(share: float) -> float:
    return 0.0 if isnan(share) else round(100 * min(max(share, 0.0), 1.0), 1)


def core_chart(
    bars: Sequence[Bar],
    cores: int,
    begin: datetime,
    until: datetime,
    kinds: Mapping[str, str] = KINDS,
    units: str = "cores",
    now: datetime | None = None,
) -> Options:
    """Return the chart of a flat machine: occupied cores over time as rectangles, with a line at the present, `now`."""
    options = _over_time(units)
    options["xAxis"] |= {"min": _ms(begin), "max": _ms(until)}
    options["yAxis"] |= {"min": 0, "max": cores}
    options["grid"]["left"] = 72
    options["tooltip"] = {"trigger": "item", "confine": True}
    options["series"] = [
        {
            "name": kind,
            "type": "custom",
            ":renderItem": "ramp.bar",
            "itemStyle": {"color": shown, "borderColor": "#ffffff", "borderWidth": 0.5},
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
        for kind, shown in kinds.items()
    ]
    if now is not None:
        mark = {"silent": True, "symbol": "none", "label": {"show": False}, "data": ({"xAxis": _ms(now)},)}
        line = {"color": NOW, "width": 2, "type": "solid"}
        options["series"].append({"type": "line", "data": (), "markLine": {**mark, "lineStyle": line}})
    return options


def row_chart(
    rows: Mapping[str, Iterable[Taken]], now: datetime, longest: timedelta, kinds: Mapping[str, str] = KINDS
) -> Options:
    """Return a Gantt chart: bars over time in a row of each name, or in several where they overlap.

    The picture reaches at most as far as `longest` before and after the present.
    """
    shown = {
        name: sorted(
            (each for each in bars if each.end > now - longest and each.start < now + longest),
            key=lambda each: each.start,
        )
        for name, bars in rows.items()
    }
    every = [each for bars in shown.values() for each in bars]
    begin = max(min((now - MARGIN, *(each.start for each in every))), now - longest)
    until = min(max((now + MARGIN, *(each.end for each in every))), now + longest)
    names: list[str] = []
    bars = []
    for name, taken in shown.items():
        ends: list[datetime] = []
        for each in taken:
            lane = next((number for number, end in enumerate(ends) if end <= each.start), len(ends))
            ends[lane : lane + 1] = [each.end]
            start, end = max(each.start, begin), min(each.end, until)
            bars.append(Bar(each.name, each.kind, len(names) + lane, 1, each.cores, start, end))
        names += [name, *[""] * (len(ends) - 1)]
    options = core_chart(bars, len(names), begin, until, kinds, now=now)
    for numeric in ("min", "max", "minInterval", "scale"):
        del options["yAxis"][numeric]
    label = {**colour("quiet"), "width": 110, "overflow": "truncate"}
    options["yAxis"] |= {
        "type": "category",
        "data": tuple(names),
        "inverse": True,
        "name": "",
        "axisLabel": label,
    }
    options["grid"] |= {"left": 124, "top": 40}
    options["legend"]["data"] = [kind for kind in kinds if any(bar.kind == kind for bar in bars)]
    for each in options["series"][: len(kinds)]:
        each[":renderItem"] = "ramp.barInRow"
    return options


def redraw_rows(chart: ui.echart, options: Options) -> None:
    """Replace a Gantt chart, whose number of rows decides its height."""
    redraw(chart, options)
    pixels = 90 + min(26 * len(options["yAxis"]["data"]), 400)
    chart.style(f"height: {pixels}px")


def price_chart(sales: Sequence[Sale], begin: Instant, until: Instant) -> Options:
    """Return the chart of prices paid: the mean by interval, the band from lowest to highest, and the volume below.

    It begins shortly before the first sale.
    """
    if sales and (first := min(each.at for each in sales)) > begin:
        begin = max(begin, until - max(until - first, HOUR) * 21 // 20)
    step = max((until - begin) // INTERVALS, 1)
    intervals: dict[int, list[Sale]] = {}
    for each in sales:
        intervals.setdefault(min((each.at - begin) // step, INTERVALS - 1), []).append(each)
    middles = [(begin + number * step + step // 2) // 1000 for number in range(INTERVALS)]
    prices = {number: [each.price for each in sold] for number, sold in intervals.items()}

    def points(value: Callable[[int], float]) -> tuple[tuple[int, float], ...]:
        return tuple((middles[number], round(value(number), 2)) for number in sorted(intervals))

    # a bar for every interval: ECharts widens a time axis by its bars, and takes a single one for half of the axis
    volumes = tuple(
        (at, round(sum(each.core_hours for each in intervals.get(number, ())), 2)) for number, at in enumerate(middles)
    )

    options = _over_time("credits/core-hour")
    time_axis = {**options["xAxis"], "min": begin // 1000, "max": until // 1000}
    options["grid"] = [{"left": 72, "right": 24, "top": 64, "bottom": 126}, {"left": 72, "right": 24, "bottom": 30,
                                                                             "height": 54}]  # fmt: skip
    options["xAxis"] = [{**time_axis, "axisLabel": {"show": False}}, {**time_axis, "gridIndex": 1}]
    volume = {"name": "core-hours", "gridIndex": 1, "splitNumber": 2, "scale": False}  # bars begin at 0
    options["yAxis"] = [options["yAxis"], {**options["yAxis"], **volume}]
    options["legend"]["data"] = ["mean price", "core-hours"]
    band = {"type": "line", "stack": "band", "symbol": "none", "silent": True, "lineStyle": {"opacity": 0}}
    options["series"] = [
        {"name": "lowest", **band, "data": points(lambda number: min(prices[number]))},
        {
            "name": "highest above lowest",
            **band,
            "data": points(lambda number: max(prices[number]) - min(prices[number])),
            "areaStyle": {**colour("mark"), "opacity": 0.2},
        },
        _line("mean price", points(lambda number: mean_price(intervals[number])), "mark", symbolSize=5),
        {
            "name": "core-hours",
            "type": "bar",
            "xAxisIndex": 1,
            "yAxisIndex": 1,
            "data": volumes,
            **colour("good"),
            "barMaxWidth": 12,
        },
    ]
    return options
