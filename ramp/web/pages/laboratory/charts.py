"""Options of the chart of a trace of a flat machine (Apache ECharts), in the browser's scheme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ramp.web.laboratory.traces import moment_of
from ramp.web.machines.core_rows import Bar
from ramp.web.pages.charts import Options
from ramp.web.pages.machines.charts import SOLD, core_chart

KINDS: Final = {
    "ended": "#b4bec7",
    "running": "#4e79a7",
    "waiting": "#c98a2b",
    "not submitted yet": "#8a97a3",
    "reserved": SOLD,
}
"""Colours of bars by how a job is at the moment that is played."""


def trace_chart(bars: Sequence[Bar], cores: int, begin_s: float, end_s: float, now_s: float, dark: bool) -> Options:
    """Who has the processors when, with a line at the moment that is played.

    Args:
        bars: to be drawn.
        cores: processors of the machine.
        begin_s: second of the log where the picture begins.
        end_s: where it ends.
        now_s: the second that is played.
        dark: whether the page is dark.
    """
    options = core_chart(bars, cores, moment_of(begin_s), moment_of(end_s), dark, KINDS, "processors")
    options["grid"]["top"] = 84  # on a telephone the legend takes two lines
    options["useUTC"] = True  # seconds of a log are of no time zone
    hours = {":formatter": _HOURS.replace("NOW", str(_ms(now_s)))}
    options["xAxis"]["axisLabel"] = {**options["xAxis"]["axisLabel"], **hours}  # processors have labels of their own
    options["series"][0]["markLine"] = {
        "silent": True,
        "symbol": "none",
        "label": {"show": False},
        "lineStyle": {"color": "#e0902a", "type": "solid", "width": 2},
        "data": [{"xAxis": _ms(now_s)}],
    }
    return options


_HOURS: Final = "value => { const hours = Math.round((value - NOW) / 3600000); return hours ? hours + ' h' : 'now' }"
"""Hours from the moment that is played: dates mean nothing in a log."""


def _ms(second: float) -> int:
    return round(moment_of(second).timestamp() * 1000)
