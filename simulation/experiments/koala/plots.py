"""Figures 6, 7 and 8 of the KOALA paper, its readings, and malleable jobs on logs and tori; from the result files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from simulation.plots.style import (
    BLUE,
    GREEN,
    ORANGE,
    PAPER,
    SERIES,
    VERMILION,
    Row,
    footnote,
    legend_below,
    new_figure,
    quiet_grid,
    read_rows,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def draw_figure6(source: Path, target: Path, *, quick: bool) -> None:
    """Run time over machines of both applications."""
    rows = read_rows(source)
    figure = new_figure(7.5, 4.4, f"Figure 6 {PAPER_NAME}: run times (fitted; its curve is lost)", quick=quick)
    axes = figure.subplots()
    for name, colour in zip(sorted({row["application"] for row in rows}), _COLOURS, strict=False):
        mine = [row for row in rows if row["application"] == name]
        axes.plot([int(row["machines"]) for row in mine], [float(row["time_s"]) for row in mine], color=colour,
            label=f"{name}, Amdahl through the stated ends")  # fmt: skip
        stated = [row for row in mine if row["stated_s"]]
        axes.plot([int(row["machines"]) for row in stated], [float(row["stated_s"]) for row in stated], "o",
            color=PAPER, label="stated in the text")  # fmt: skip
    axes.set_xlim(0, 47)
    axes.set_ylim(0, 800)
    axes.set_xlabel("machines")
    axes.set_ylabel("run time (s)")
    quiet_grid(axes)
    legend_below(figure, axes, columns=2)
    save_figure(figure, target)


def draw_figure(number: int, out: Path, target: Path, note: str, *, quick: bool) -> None:
    """Figure 7 (PRA) or 8 (PWA): its six panels."""
    approach = "PRA, no shrinking" if number == 7 else "PWA, growing and shrinking"
    figure = new_figure(12, 7.6, f"Figure {number} {PAPER_NAME}: FPSMA and EGS, {approach}", quick=quick)
    panels = dict(zip("abcdef", figure.subplots(2, 3).flat, strict=True))
    for letter, (label, ends) in _PER_JOB.items():
        axes = panels[letter]
        rows = read_rows(out / f"figure{number}{letter}.csv")
        _curves(axes, rows, "value", "percent", steps=False)
        axes.set_xlim(0, ends[number - 7])
        axes.set_ylim(0, 100)
        axes.set_xlabel(label)
        axes.set_ylabel("jobs (%)")
    window, most = _USED[number]
    _curves(panels["e"], _minute_means(read_rows(out / f"figure{number}e.csv")), "time_s", "processors", steps=True)
    panels["e"].set_xlim(*window)
    panels["e"].set_ylim(0, most)
    panels["e"].set_xlabel("time (s)")
    panels["e"].set_ylabel("processors in use, mean of a minute")
    span, top, words = _MESSAGES[number]
    rows = read_rows(out / f"figure{number}f.csv")
    _curves(panels["f"], rows, "time_s", "messages", steps=True)
    panels["f"].set_xlim(*span)
    panels["f"].set_ylim(0, max(top, 1.05 * max(float(row["messages"]) for row in rows)))
    panels["f"].axhline(top, color=PAPER, linewidth=0.8, linestyle=":", label="end of the paper's axis")
    panels["f"].set_xlabel("time (s)")
    panels["f"].set_ylabel(f"{words}, in all")
    for letter, axes in panels.items():
        axes.set_title(f"({letter})", fontsize=10)
        quiet_grid(axes)
    legend_below(figure, *panels.values(), columns=5)
    footnote(figure, note)
    save_figure(figure, target)


def _curves(axes: Axes, rows: list[Row], x: str, y: str, *, steps: bool) -> None:
    names = dict.fromkeys(row["combination"] for row in rows)
    for name, colour, style, width in zip(names, _COLOURS, _STYLES, _WIDTHS, strict=False):
        mine = [row for row in rows if row["combination"] == name]
        axes.plot([float(row[x]) for row in mine], [float(row[y]) for row in mine], style, color=colour, label=name,
            linewidth=width, drawstyle="steps-post" if steps else "default")  # fmt: skip


def _minute_means(rows: list[Row]) -> list[Row]:
    """Return the means of every minute of each combination's step curve, whose single steps are too dense to draw."""
    found: list[Row] = []
    for name in dict.fromkeys(row["combination"] for row in rows):
        mine = [(float(row["time_s"]), float(row["processors"])) for row in rows if row["combination"] == name]
        times, values = (np.array(column) for column in zip(*mine, strict=True))
        edges = np.arange(0.0, times[-1] + _MINUTE_S, _MINUTE_S)
        area = np.concatenate(([0.0], np.cumsum(values[:-1] * np.diff(times))))
        means = np.diff(np.interp(edges, times, area)) / _MINUTE_S
        found += [
            {"combination": name, "time_s": str(time), "processors": str(mean)}
            for time, mean in zip(edges[:-1].tolist(), means.tolist(), strict=True)
        ]
    return found


def draw_readings(source: Path, target: Path, *, quick: bool) -> None:
    """Waits and processors in use of the four combinations under PWA, one group a reading, with 95 % intervals."""
    rows = read_rows(source)
    figure = new_figure(12, 3 + 0.34 * len(rows), f"Readings {PAPER_NAME}: who waits, and who uses most", quick=quick)
    wait, used = figure.subplots(1, 2, sharey=True)
    names = ("FPSMA_W_m", "FPSMA_W_mr", "EGS_W_m", "EGS_W_mr")
    for number, (name, colour) in enumerate(zip(names, _COLOURS, strict=True)):
        policy, _, kind = name.split("_")
        places = [index + 0.2 * (number - 1.5) for index in range(len(rows))]
        for axes, value, half in (
            (wait, f"wait_{name}_s", f"wait_{name}_half_s"),
            (used, f"used_{name}", f"used_{name}_half"),
        ):
            axes.errorbar([float(row[value]) for row in rows], places, xerr=[float(row[half]) for row in rows], fmt="o",
                color=colour, markersize=4, label=f"{policy}/W'{kind}")  # fmt: skip
    wait.set_yticks(range(len(rows)), [row["reading"] for row in rows], fontsize=8)
    wait.invert_yaxis()
    wait.set_xlabel("mean wait (s)")
    wait.set_xscale("symlog", linthresh=10)
    wait.set_xlim(left=0)
    used.set_xlabel("processors in use until the last submission, mean")
    used.set_xlim(left=0)
    for axes in (wait, used):
        quiet_grid(axes)
    legend_below(figure, wait, columns=4)
    footnote(figure, "Bars: 95 % intervals of the mean over the seeds.")
    save_figure(figure, target)


_MEASURES: Final = (("turnaround_h", "mean turnaround"), ("wait_h", "mean wait"))


def draw_gains(source: Path, target: Path, *, quick: bool) -> None:
    """Turnaround and wait against rigid EASY over the share of malleable jobs, a column a log."""
    rows = read_rows(source)
    logs = list(dict.fromkeys(row["log"] for row in rows))
    names = list(dict.fromkeys((row["strategy"], row["speed_up_known"]) for row in rows))
    title = "Beyond Buisson and others: malleable jobs on logs, against EASY with rigid jobs"
    figure = new_figure(3.2 * len(logs) + 1, 7, title, quick=quick)
    panels = figure.subplots(2, len(logs), squeeze=False, sharex=True)
    for column, log in enumerate(logs):
        for line, (measure, words) in enumerate(_MEASURES):
            axes = panels[line, column]
            for (strategy, known), colour in zip(names, SERIES, strict=False):
                mine = [
                    row
                    for row in rows
                    if (row["log"], row["strategy"], row["speed_up_known"]) == (log, strategy, known)
                ]
                axes.errorbar(
                    [100 * float(row["share"]) for row in mine],
                    [float(row[f"{measure}_percent"]) for row in mine],
                    yerr=[float(row[f"{measure}_half"]) for row in mine],
                    fmt="o-" if known == "True" else "s--",
                    color=colour,
                    markersize=3,
                    label=strategy + ("" if known == "True" else ", speed-up within 30 %"),
                )
            axes.set_title(f"{log}: {words}", fontsize=9)
            axes.axhline(0, color=PAPER, linewidth=0.6)
            quiet_grid(axes)
        panels[-1, column].set_xlabel("malleable jobs (%)")
    for line in range(2):
        panels[line, 0].set_ylabel("against rigid EASY (%)")
    legend_below(figure, panels[0, 0], columns=3)
    footnote(figure, "Bars: 95 % intervals of the mean over the seeds.")
    save_figure(figure, target)


def draw_tori(source: Path, target: Path, *, quick: bool) -> None:
    """Mean wait over the share of malleable jobs, a panel for each machine and case."""
    rows = read_rows(source)
    panels = list(dict.fromkeys((row["machine"], row["case"]) for row in rows))
    title = "Beyond Buisson and others: malleable jobs where places count"
    columns = 4
    lines = -(-len(panels) // columns)
    figure = new_figure(3.1 * columns, 3.2 * lines + 1, title, quick=quick)
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    series = {("yes", "0"): "places count", ("yes", "60"): "places count, 60 s a change",
              ("no", "0"): "flat", ("no", "60"): "flat, 60 s a change"}  # fmt: skip
    for axes, (machine, case) in zip(grid, panels, strict=False):
        for ((places, suspension), words), colour in zip(series.items(), SERIES, strict=False):
            mine = [
                row
                for row in rows
                if (row["machine"], row["case"], row["places"]) == (machine, case, places)
                and (row["suspension_s"] == suspension or float(row["share"]) == 0)
            ]
            axes.errorbar(
                [100 * float(row["share"]) for row in mine],
                [float(row["wait_h"]) for row in mine],
                yerr=[float(row["wait_h_half"]) for row in mine],
                fmt="o-" if suspension == "0" else "s--",
                color=colour,
                markersize=3,
                label=words,
            )
        axes.set_title(f"{machine}: {case}", fontsize=9)
        axes.set_xlabel("malleable jobs (%)")
        axes.set_ylim(bottom=0)
        quiet_grid(axes)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[::columns]:
        axes.set_ylabel("mean wait (h)")
    legend_below(figure, grid[0], columns=4)
    footnote(figure, "Bars: 95 % intervals of the mean over the seeds.")
    save_figure(figure, target)
