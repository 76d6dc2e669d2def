"""Pictures of the Angara allocation study, drawn from its result files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes

from simulation.plots.bluegene import Row, new_figure, read_rows, save_figure

COLOURS: Final = ("#9aa5b1", "#c44e1f", "#e0a33a", "#1f4e9c", "#7a9cc6", "#5b8c3a", "#8e3b8e", "#333333")
"""One a method, in the order in which the methods are named."""
_PANELS_A_ROW: Final = 4


def draw_figure3(source: Path, target: Path) -> None:
    """Figure 3: share of each size, one panel a number of nodes."""
    rows = read_rows(source)
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    figure = new_figure(10, 2.6 * -(-len(panels) // 3))
    grid = figure.subplots(-(-len(panels) // 3), 3, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        mine = [row for row in rows if row["panel"] == panel]
        places = range(len(mine))
        for offset, column, label, colour in (
            (-0.2, "share", "wanted", COLOURS[4]),
            (0.2, "share_drawn", "drawn (one seed)", COLOURS[1]),
        ):
            heights = [100 * float(row[column]) for row in mine]
            axes.bar([place + offset for place in places], heights, width=0.4, label=label, color=colour)
        axes.set_xticks(list(places), [row["size"] for row in mine], fontsize=7)
        axes.set_title(panel, fontsize=9)
        axes.set_xlabel("size (nodes)", fontsize=8)
        axes.set_ylabel("share of jobs (%)", fontsize=8)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    grid[0, 0].legend(frameon=False, fontsize=8)
    save_figure(figure, target)


def draw_figure4(source: Path, target: Path) -> None:
    """Figure 4: duration as a share of the maximum over the percentile of jobs."""
    rows = read_rows(source)
    figure = new_figure(6.5, 3.8)
    axes = figure.subplots()
    percentiles = [float(row["percentile"]) for row in rows]
    drawn = [100 * float(row["share_drawn"]) for row in rows]
    axes.plot(percentiles, drawn, "o", markersize=3, color=COLOURS[1], label="drawn (one seed)")
    law = [100 * float(row["share_of_maximum"]) for row in rows]
    axes.plot(percentiles, law, color=COLOURS[3], linewidth=1.5, label="the study's law")
    axes.set_yscale("log")
    axes.set_xlabel("jobs (%)")
    axes.set_ylabel("duration (% of 24 hours)")
    axes.grid(visible=True, color="#e5e5e5", linewidth=0.6)
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, target)


def draw_by_window(source: Path, target: Path, methods: Sequence[str], ylabel: str) -> None:
    """Figures 5 and 6: one line a method over the window, with 95 % confidence intervals over the seeds."""
    rows = read_rows(source)
    figure = new_figure(8, 4.6)
    axes = figure.subplots()
    _lines(axes, rows, methods, methods, capsize=2)
    axes.set_ylabel(ylabel)
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, target)


def draw_systems(source: Path, target: Path, methods: Sequence[str], measure: str, ylabel: str) -> None:
    """The same for each system, one panel each."""
    rows = [row for row in read_rows(source) if row["measure"] == measure]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    columns = min(_PANELS_A_ROW, len(systems))
    lines = -(-len(systems) // columns)
    figure = new_figure(3 * columns, 2.6 * lines + 0.5)
    grid = figure.subplots(lines, columns, squeeze=False, sharex=True)
    everyone = list(dict.fromkeys(row["method"] for row in rows))
    for axes, system in zip(grid.flat, systems, strict=False):
        _lines(axes, [row for row in rows if row["system"] == system], methods, everyone, capsize=1)
        axes.set_title(system, fontsize=9)
        axes.set_xlabel("")
    for axes in grid[:, 0]:
        axes.set_ylabel(ylabel, fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("window", fontsize=8)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(methods), frameon=False, fontsize=8)
    save_figure(figure, target)


def _lines(axes: Axes, rows: Sequence[Row], methods: Sequence[str], everyone: Sequence[str], *, capsize: float) -> None:
    for method in methods:
        mine = sorted((row for row in rows if row["method"] == method), key=lambda row: int(row["window"]))
        axes.errorbar(
            [int(row["window"]) for row in mine],
            [float(row["mean"]) for row in mine],
            yerr=[float(row["ci95_half_width"]) for row in mine],
            label=method,
            color=COLOURS[everyone.index(method) % len(COLOURS)],
            marker="o",
            markersize=3,
            linewidth=1.3,
            capsize=capsize,
        )
    windows = sorted({int(row["window"]) for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(windows, [str(window) for window in windows], fontsize=7)
    axes.set_xlabel("window (jobs)")
    axes.grid(visible=True, color="#e5e5e5", linewidth=0.6)
