"""Figures 6, 7 and 8 of the KOALA paper, and its readings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from simulation.experiments.figures import Figure
from simulation.experiments.koala.runs import Setting
from simulation.experiments.result import Rows, grouped
from simulation.plots.style import BLUE, GREEN, ORANGE, PAPER, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from simulation.experiments.study import Found

PAPER_NAME: Final = "of Buisson and others 2007"
_COLOURS: Final = (BLUE, GREEN, VERMILION, ORANGE)
_STYLES: Final = ("-", "-", "--", "--")
_WIDTHS: Final = (2.4, 2.4, 1.1, 1.1)
"""FPSMA lies below EGS, so that both are seen where they are the same."""
_MINUTE_S: Final = 60.0
_PER_JOB: Final = {
    "a": ("average processors of a job", (30, 40)),
    "b": ("maximum processors of a job", (40, 60)),
    "c": ("execution time (s)", (1200, 1000)),
    "d": ("response time (s)", (800, 1000)),
}
"""Labels of the first four panels, and where the paper's axes end in figures 7 and 8."""
_USED: Final = {7: ((25_000, 30_000), 120), 8: ((0, 10_000), 100)}
_MESSAGES: Final = {7: ((0, 36_000), 1000, "grown messages"), 8: ((0, 12_000), 500, "malleability operations")}


def _figure6(drawing: Drawing, found: Found) -> Iterable[Axes]:
    axes = drawing.subplots()
    for ((name,), mine), colour in zip(
        sorted(grouped(found["figure6"], "application").items()), _COLOURS, strict=False
    ):
        label = f"{name}, Amdahl through the stated ends"
        axes.plot([row["machines"] for row in mine], [row["time_s"] for row in mine], color=colour, label=label)
        stated = [row for row in mine if row["stated_s"]]
        places, times = ([row[column] for row in stated] for column in ("machines", "stated_s"))
        axes.plot(places, times, "o", color=PAPER, label="stated in the text")
    axes.set_xlim(0, 47)
    axes.set_ylim(0, 800)
    axes.set_xlabel("machines")
    axes.set_ylabel("run time (s)")
    return [axes]


def _panels(drawing: Drawing, found: Found, number: int) -> Iterable[Axes]:
    panels = dict(zip("abcdef", drawing.subplots(2, 3).flat, strict=True))
    for letter, (label, ends) in _PER_JOB.items():
        axes = panels[letter]
        _curves(axes, found[f"figure{number}{letter}"], "value", "percent", steps=False)
        axes.set(xlim=(0, ends[number - 7]), ylim=(0, 100), xlabel=label, ylabel="jobs (%)")
    window, most = _USED[number]
    _curves(panels["e"], _minute_means(found[f"figure{number}e"]), "time_s", "processors", steps=True)
    panels["e"].set(xlim=window, ylim=(0, most), xlabel="time (s)", ylabel="processors in use, mean of a minute")
    span, top, words = _MESSAGES[number]
    rows = found[f"figure{number}f"]
    _curves(panels["f"], rows, "time_s", "messages", steps=True)
    panels["f"].set(xlim=span, ylim=(0, max(top, 1.05 * max(row["messages"] for row in rows))))
    panels["f"].axhline(top, color=PAPER, linewidth=0.8, linestyle=":", label="end of the paper's axis")
    panels["f"].set(xlabel="time (s)", ylabel=f"{words}, in all")
    for letter, axes in panels.items():
        axes.set_title(f"({letter})", fontsize=10)
    return panels.values()


def _curves(axes: Axes, rows: Rows, x: str, y: str, *, steps: bool) -> None:
    for (name, mine), colour, style, width in zip(
        grouped(rows, "combination").items(), _COLOURS, _STYLES, _WIDTHS, strict=False
    ):
        axes.plot([row[x] for row in mine], [row[y] for row in mine], style, color=colour, label=name[0],
            linewidth=width, drawstyle="steps-post" if steps else "default")  # fmt: skip


def _minute_means(rows: Rows) -> Rows:
    """Return the means of every minute of each combination's step curve, whose single steps are too dense to draw."""
    found = []
    for (name,), mine in grouped(rows, "combination").items():
        times, values = (np.array([row[column] for row in mine], float) for column in ("time_s", "processors"))
        edges = np.arange(0.0, times[-1] + _MINUTE_S, _MINUTE_S)
        area = np.concatenate(([0.0], np.cumsum(values[:-1] * np.diff(times))))
        means = np.diff(np.interp(edges, times, area)) / _MINUTE_S
        found += [
            {"combination": name, "time_s": time, "processors": mean}
            for time, mean in zip(edges[:-1].tolist(), means.tolist(), strict=True)
        ]
    return found


def _readings(drawing: Drawing, found: Found) -> Iterable[Axes]:
    rows = found["readings"]
    wait, used = drawing.subplots(1, 2, sharey=True)
    names = ("FPSMA_W_m", "FPSMA_W_mr", "EGS_W_m", "EGS_W_mr")
    for number, (name, colour) in enumerate(zip(names, _COLOURS, strict=True)):
        policy, _, kind = name.split("_")
        places = [index + 0.2 * (number - 1.5) for index in range(len(rows))]
        for axes, value, half in (
            (wait, f"wait_{name}_s", f"wait_{name}_half_s"),
            (used, f"used_{name}", f"used_{name}_half"),
        ):
            values, halves = ([row[column] for row in rows] for column in (value, half))
            axes.errorbar(values, places, xerr=halves, fmt="o", color=colour, markersize=4, label=f"{policy}/W'{kind}")
    wait.set_yticks(range(len(rows)), [row["reading"] for row in rows], fontsize=8)
    wait.invert_yaxis()
    wait.set_xlabel("mean wait (s)")
    wait.set_xscale("symlog", linthresh=10)
    wait.set_xlim(left=0)
    used.set_xlabel("processors in use until the last submission, mean")
    used.set_xlim(left=0)
    return [wait]


_MAIN: Final = Setting("Wm", "FPSMA", 1)
_READING: Final = (
    f"Reading: {_MAIN.capacity} nodes, polls every {_MAIN.poll_s:g} s, {_MAIN.suspension_s:g} s of suspension a "
    "resize; (a) to (d) over all seeds."
)

FIGURES: Final = {
    "figure6.png": Figure(
        title=f"Figure 6 {PAPER_NAME}: run times (fitted; its curve is lost)", size=(7.5, 4.4), draw=_figure6, legend=2
    ),
    "figure7.png": Figure(
        title=f"Figure 7 {PAPER_NAME}: FPSMA and EGS, PRA, no shrinking",
        size=(12, 7.6),
        draw=lambda drawing, found: _panels(drawing, found, 7),
        legend=5,
        note=_READING,
    ),
    "figure8.png": Figure(
        title=f"Figure 8 {PAPER_NAME}: FPSMA and EGS, PWA, growing and shrinking",
        size=(12, 7.6),
        draw=lambda drawing, found: _panels(drawing, found, 8),
        legend=5,
        note=_READING,
    ),
    "readings.png": Figure(
        title=f"Readings {PAPER_NAME}: who waits, and who uses most",
        size=lambda found: (12, 3 + 0.34 * len(found["readings"])),
        draw=_readings,
        legend=4,
        note="Bars: 95 % intervals of the mean over the seeds.",
    ),
}
