"""Pictures of the Blue Gene/L allocation study, drawn from its result files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simulation.plots.style import (
    BLUE,
    GREEN,
    PAPER,
    SKY,
    VERMILION,
    Row,
    curve,
    legend_below,
    new_figure,
    quiet_grid,
    read_rows,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MACHINE_TITLES: Final = {"bgl": "Blue Gene/L", "torus3d": "3D torus"}
COLOURS: Final = {"bgl": BLUE, "torus3d": VERMILION}
_LOGS: Final = ("CTC", "SDSC")
_STYLES: Final = {0.0: ":", 0.5: "--", 1.0: "-"}
_SHAPES: Final = {0.0: "slim", 0.5: "half of them fat", 1.0: "fat"}
_STUDY: Final = "of Aridor and others 2005"
_IN_PAPER: Final = (("bgl", 0.0), ("bgl", 0.5), ("bgl", 1.0), ("torus3d", 1.0))
"""Machine and share of tori of the curves that the paper has; the others are ours and thin."""
_SAID_OF_SLIM: Final = {"CTC": 'the four are "almost identical"', "SDSC": 'the variation "is still very small"'}


def draw_figure6(source: Path, target: Path, *, quick: bool) -> None:
    """Figure 6: sizes of the jobs before and after fattening, as histograms over powers of two."""
    rows = read_rows(source)
    figure = new_figure(9, 3.9, f"Figure 6 {_STUDY}: sizes of the jobs before and after fattening", quick=quick)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, log in zip(panels, _LOGS, strict=True):
        edges = [1, 2, 4, 8, 16, 32, 64, 128]
        for offset, column, label, colour in (
            (-0.2, "jobs_before", "before fattening (slim)", SKY),
            (0.2, "jobs_after", "after fattening (fat)", VERMILION),
        ):
            counts = [0.0] * len(edges)
            for row in rows:
                if row["log"] == log:
                    size = int(row["size"])
                    counts[next(index for index, edge in enumerate(edges) if size <= edge)] += float(row[column])
            total = sum(counts) or 1
            positions = [index + offset for index in range(len(edges))]
            axes.bar(positions, [100 * count / total for count in counts], width=0.4, label=label, color=colour)
        labels = ["1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128"]
        axes.set_xticks(range(len(edges)), labels, fontsize=8)
        axes.set_xlabel("job size (midplanes)")
        axes.set_title(f"{log} log", fontsize=10)
        quiet_grid(axes)
    panels[0].set_ylabel("share of jobs (%)")
    legend_below(figure, panels[0], columns=2)
    save_figure(figure, target)


def draw_figure7(
    source: Path, target: Path, paper_at_full_load: Mapping[tuple[str, str], float], *, quick: bool
) -> None:
    """Figure 7: utilisation over offered load, slim above and fat below, one column a log.

    `paper_at_full_load` has the paper's values in per cent by (log, machine), for the fat panels.
    """
    rows = read_rows(source)
    figure = new_figure(10, 9, f"Figure 7 {_STUDY}: utilisation over offered load", quick=quick)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for row_of_panels, fat, letter in zip(panels, (0.0, 1.0), "ab", strict=True):
        for axes, log in zip(row_of_panels, _LOGS, strict=True):
            _draw_curves(axes, [row for row in rows if row["log"] == log and float(row["fat_probability"]) == fat])
            if fat == 1.0:
                for machine, colour in COLOURS.items():
                    value = paper_at_full_load[log, machine]
                    axes.plot([1.0], [value], "*", color=colour, markersize=14, markeredgecolor=PAPER, zorder=5)
                    axes.annotate(
                        f"{value:.0f} %", (1.0, value), xytext=(16, -4), textcoords="offset points", fontsize=9,
                        annotation_clip=False,
                    )  # fmt: skip
            else:
                apart = _apart_at_full_load(rows, log)
                axes.text(
                    0.97, 0.05, f"paper: {_SAID_OF_SLIM[log]}\nhere at full load {apart:.1f} points apart",
                    transform=axes.transAxes, ha="right", fontsize=9, color=PAPER,
                )  # fmt: skip
            _load_axes(axes, f"({letter}) {log}, {_SHAPES[fat]} jobs")
    for axes in panels[0]:
        axes.set_xlabel("")
    for axes in panels[:, 1]:
        axes.set_ylabel("")
    panels[1, 0].plot(
        [], [], "*", color="white", markersize=12, markeredgecolor=PAPER, label="the paper's values (100 % tori)"
    )
    legend_below(figure, panels[1, 0], columns=3)
    save_figure(figure, target)


def _draw_curves(axes: Axes, rows: list[Row]) -> None:
    """The paper's four curves, and thin those that it leaves out."""
    for machine, colour in COLOURS.items():
        for torus, style in _STYLES.items():
            points = curve(rows, "load", "utilisation", machine=machine, torus_probability=torus)
            label = f"{MACHINE_TITLES[machine]}, {100 * torus:.0f} % tori"
            if (machine, torus) in _IN_PAPER:
                axes.plot(*points, style, color=colour, marker="o", markersize=3, linewidth=1.8, label=label)
            else:
                axes.plot(*points, style, color=colour, linewidth=0.7, alpha=0.7, label=f"{label} (not in the paper)")


def _apart_at_full_load(rows: list[Row], log: str) -> float:
    values = [
        curve(rows, "load", "utilisation", log=log, machine=machine, fat_probability=0.0, torus_probability=torus)[1][
            -1
        ]
        for machine, torus in _IN_PAPER
    ]
    return max(values) - min(values)


def draw_figure8(source: Path, target: Path, *, quick: bool) -> None:
    """Figure 8: utilisation over offered load for slim, mixed and fat shapes of the same sizes, all tori."""
    rows = read_rows(source)
    title = f"Figure 8 {_STUDY}: shapes at equal sizes, Blue Gene/L, all tori"
    figure = new_figure(9, 4.8, title, quick=quick)
    colours = {0.0: BLUE, 0.5: GREEN, 1.0: VERMILION}
    panels = figure.subplots(1, 2, sharey=True)
    for axes, log in zip(panels, _LOGS, strict=True):
        last = {}
        for fat, colour in colours.items():
            points = curve(rows, "load", "utilisation", log=log, fat_probability=fat)
            last[fat] = points[1][-1]
            axes.plot(*points, color=colour, marker="o", markersize=3, label=_SHAPES[fat])
        top, bottom = last[0.0], last[0.0] - 40
        axes.annotate("", (1.02, bottom), (1.02, top), arrowprops={"arrowstyle": "<->", "color": PAPER, "lw": 1})
        axes.text(
            0.99, 6, f'paper: a decrease of "up to 40 %" (arrow)\nhere at full load {top - last[1.0]:.1f} points',
            ha="right", fontsize=8,
        )  # fmt: skip
        _load_axes(axes, log)
    panels[1].set_ylabel("")
    legend_below(figure, panels[0], columns=4)
    save_figure(figure, target)


def _load_axes(axes: Axes, title: str) -> None:
    axes.plot([0.2, 1.0], [20, 100], color="#999999", linewidth=0.7, label="all that is offered")
    axes.set_xlabel("offered load (work / capacity)")
    axes.set_ylabel("utilisation (%)")
    axes.set_xlim(0.18, 1.04)
    axes.set_ylim(0, 105)
    axes.set_title(title, fontsize=10)
    quiet_grid(axes)
