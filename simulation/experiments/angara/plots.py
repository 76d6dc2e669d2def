"""Pictures of the Angara allocation study, drawn from its result files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simulation.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
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

OWN_COLOURS: Final = (GREY, ORANGE, VERMILION, SKY, BLUE, PURPLE, GREEN, "#333333")
"""One a method, in the order in which the methods are named."""
_BARS: Final = (GREY, SKY, BLUE)
_STUDY: Final = "of Mukosey and others 2019"
_PANELS_A_ROW: Final = 4
_INTERVALS: Final = (
    "Intervals, where they can be: 95 % of the mean over the seeds. All methods run the same jobs of a seed, so that "
    "their differences are far surer than the levels: differences.csv."
)
_LEAST_SEEDS: Final = 3
"""An interval over two seeds is twelve times their deviation: it tells nothing and is not drawn."""


def draw_figure3(source: Path, target: Path, *, quick: bool) -> None:
    """Figure 3: share of each size, one panel a number of nodes, in the study's order."""
    rows = read_rows(source)
    panels = sorted({row["panel"] for row in rows}, key=lambda panel: (int(panel.split()[0]), panel))
    lines = -(-len(panels) // 2)
    title = f"Figure 3 {_STUDY}: sizes of the jobs (our shares: the study prints none)"
    figure = new_figure(10, 2.4 * lines + 0.8, title, quick=quick)
    grid = figure.subplots(lines, 2, squeeze=False, sharey=True)
    for axes, panel, letter in zip(grid.flat, panels, "abcdef", strict=False):
        mine = [row for row in rows if row["panel"] == panel]
        places = range(len(mine))
        for offset, column, label, colour in (
            (-0.2, "share", "wanted", SKY),
            (0.2, "share_drawn", "drawn (one seed)", VERMILION),
        ):
            heights = [100 * float(row[column]) for row in mine]
            axes.bar([place + offset for place in places], heights, width=0.4, label=label, color=colour)
        axes.set_xticks(list(places), [row["size"] for row in mine], fontsize=7)
        axes.set_title(f"({letter}) {panel}", fontsize=9)
        axes.set_xlabel("size (nodes)", fontsize=8)
        quiet_grid(axes)
    for axes in grid[:, 0]:
        axes.set_ylabel("share of jobs (%)", fontsize=8)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    legend_below(figure, grid[0, 0], columns=2)
    save_figure(figure, target)


def draw_figure4(source: Path, target: Path, *, quick: bool) -> None:
    """Figure 4: duration as a share of the maximum over the percentile of jobs."""
    rows = read_rows(source)
    figure = new_figure(6.5, 4.1, f"Figure 4 {_STUDY}: durations of the jobs", quick=quick)
    axes = figure.subplots()
    percentiles = [float(row["percentile"]) for row in rows]
    drawn = [100 * float(row["share_drawn"]) for row in rows]
    axes.plot(percentiles, drawn, "o", markersize=3, color=SKY, label="drawn (one seed)")
    law = [100 * float(row["share_of_maximum"]) for row in rows]
    axes.plot(percentiles, law, color="black", linewidth=1.5, label="the study's law")
    axes.set_yscale("log")
    axes.set_ylim(0.01, 110)
    axes.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    axes.set_xlim(0, 100)
    axes.set_xlabel("jobs (%)")
    axes.set_ylabel("duration (% of 24 hours)")
    quiet_grid(axes)
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, target)


def draw_bars(
    source: Path, target: Path, methods: Mapping[str, str], number: int, ylabel: str, most: float | None, *, quick: bool
) -> None:
    """Figures 5 and 6 as the study draws them: bars of base, Find_Systems and Find_Systems+MSS for each window."""
    rows = read_rows(source)
    figure = new_figure(8.5, 4.8, f"Figure {number} {_STUDY}: mean over the systems", quick=quick)
    axes = figure.subplots()
    windows = sorted({int(row["window"]) for row in rows})
    for offset, (method, label), colour in zip((-0.27, 0.0, 0.27), methods.items(), _BARS, strict=True):
        mine = {int(row["window"]): row for row in rows if row["method"] == method}
        places = [place + offset for place in range(len(windows))]
        means = [float(mine[window]["mean"]) for window in windows]
        axes.bar(places, means, width=0.26, color=colour, label=label)
        for place, window, mean in zip(places, windows, means, strict=True):
            half = _interval(mine[window])
            if half is not None:
                axes.errorbar([place], [mean], yerr=[half], color="#333333", capsize=2, linewidth=0.9)
    axes.set_xticks(range(len(windows)), [str(window) for window in windows])
    axes.set_xlabel("window (jobs)")
    axes.set_ylabel(ylabel)
    axes.set_ylim(0, most)
    quiet_grid(axes)
    legend_below(figure, axes, columns=3)
    footnote(figure, _INTERVALS)
    save_figure(figure, target)


def draw_others(source: Path, target: Path, methods: Sequence[str], number: int, ylabel: str, *, quick: bool) -> None:
    """The same of all methods, one line each."""
    rows = read_rows(source)
    title = f"Beside figure {number} {_STUDY}: all allocators and readings, mean over the systems"
    figure = new_figure(8.5, 5.2, title, quick=quick)
    axes = figure.subplots()
    _lines(axes, rows, methods, methods, capsize=2)
    axes.set_ylabel(ylabel)
    axes.set_ylim(bottom=0)
    legend_below(figure, axes, columns=3)
    footnote(figure, _INTERVALS)
    save_figure(figure, target)


def draw_systems(
    source: Path, target: Path, methods: Sequence[str], everyone: Sequence[str], measure: str, number: int, ylabel: str,
    *, quick: bool,
) -> None:  # fmt: skip
    """The same for each system, one panel each."""
    rows = [row for row in read_rows(source) if row["measure"] == measure]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    columns = min(_PANELS_A_ROW, len(systems))
    lines = -(-len(systems) // columns)
    figure = new_figure(
        3 * columns, 2.6 * lines + 1.0, f"Beside figure {number} {_STUDY}: system by system", quick=quick
    )
    grid = figure.subplots(lines, columns, squeeze=False, sharex=True)
    for axes, system in zip(grid.flat, systems, strict=False):
        _lines(axes, [row for row in rows if row["system"] == system], methods, everyone, capsize=1)
        axes.set_title(system, fontsize=9)
        axes.set_xlabel("")
    for axes in grid[:, 0]:
        axes.set_ylabel(ylabel, fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("window (jobs)", fontsize=8)
    legend_below(figure, grid[0, 0], columns=min(3, len(methods)))
    footnote(figure, _INTERVALS)
    save_figure(figure, target)


def _interval(row: Row) -> float | None:
    """Half of a 95 % interval that can be: over enough seeds, and within what the measure can take."""
    mean, half = float(row["mean"]), float(row["ci95_half_width"])
    most = 100.0 if row["measure"] == "utilisation" else float("inf")
    possible = int(row["seeds"]) >= _LEAST_SEEDS and mean - half >= 0 and mean + half <= most
    return half if possible else None


def _lines(axes: Axes, rows: Sequence[Row], methods: Sequence[str], everyone: Sequence[str], *, capsize: float) -> None:
    for method in methods:
        mine = sorted((row for row in rows if row["method"] == method), key=lambda row: int(row["window"]))
        axes.errorbar(
            [int(row["window"]) for row in mine],
            [float(row["mean"]) for row in mine],
            yerr=[_interval(row) or 0.0 for row in mine],
            label=method,
            color=OWN_COLOURS[everyone.index(method) % len(OWN_COLOURS)],
            linestyle="--" if everyone.index(method) >= len(OWN_COLOURS) else "-",
            marker="o",
            markersize=3,
            linewidth=1.3,
            capsize=capsize,
        )
    windows = sorted({int(row["window"]) for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(windows, [str(window) for window in windows], fontsize=7)
    axes.set_xlabel("window (jobs)")
    quiet_grid(axes)
