"""Pictures of the Blue Gene/L allocation study, drawn from its result files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_DOTS_PER_INCH: Final = 130
MACHINE_TITLES: Final = {"bgl": "Blue Gene/L", "torus3d": "3D torus"}
COLOURS: Final = {"bgl": "#1f4e9c", "torus3d": "#c44e1f"}
_STYLES: Final = {0.0: ":", 0.5: "--", 1.0: "-"}
_SHAPES: Final = {0.0: "slim", 0.5: "half of them fat", 1.0: "fat"}

Row = dict[str, str]


def read_rows(path: Path) -> list[Row]:
    """Rows of a result file."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture as PNG."""
    FigureCanvasAgg(figure).print_png(str(path), metadata={"Software": None})  # type: ignore[no-untyped-call]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, sizes in inches."""
    return Figure(figsize=(width, height), dpi=_DOTS_PER_INCH, layout="constrained")


def curve(rows: Iterable[Row], x: str, y: str, **wanted: Any) -> tuple[list[float], list[float]]:
    """Points, y in per cent, of the rows with the wanted values, in order of x."""
    points = sorted(
        (float(row[x]), 100 * float(row[y]))
        for row in rows
        if all(_equal(row[key], value) for key, value in wanted.items())
    )
    return [point[0] for point in points], [point[1] for point in points]


def _equal(text: str, value: object) -> bool:
    return float(text) == value if isinstance(value, float) else text == str(value)


def draw_figure6(source: Path, target: Path) -> None:
    """Figure 6: sizes of the jobs before and after fattening, as histograms over powers of two."""
    rows = read_rows(source)
    figure = new_figure(9, 3.6)
    for axes, log in zip(figure.subplots(1, 2), ("CTC", "SDSC"), strict=True):
        edges = [1, 2, 4, 8, 16, 32, 64, 128]
        for offset, column, label, colour in (
            (-0.2, "jobs_before", "before fattening (slim)", "#7a9cc6"),
            (0.2, "jobs_after", "after fattening (fat)", "#c44e1f"),
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
        axes.set_ylabel("share of jobs (%)")
        axes.set_title(f"{log} log")
        axes.legend(frameon=False, fontsize=8)
    save_figure(figure, target)


def draw_figure7(source: Path, target: Path, paper_at_full_load: Mapping[tuple[str, str], float]) -> None:
    """Figure 7: utilisation over offered load, slim above and fat below, one column a log.

    Args:
        source: rows of the simulations.
        target: the picture.
        paper_at_full_load: the paper's values in per cent by (log, machine), drawn into the fat panels.
    """
    rows = read_rows(source)
    figure = new_figure(10, 8)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for row_of_panels, fat in zip(panels, (0.0, 1.0), strict=True):
        for axes, log in zip(row_of_panels, ("CTC", "SDSC"), strict=True):
            for machine, colour in COLOURS.items():
                for torus, style in _STYLES.items():
                    points = curve(
                        rows,
                        "load",
                        "utilisation",
                        log=log,
                        machine=machine,
                        fat_probability=fat,
                        torus_probability=torus,
                    )
                    label = f"{MACHINE_TITLES[machine]}, {100 * torus:.0f} % tori"
                    axes.plot(*points, style, color=colour, marker="o", markersize=2.5, linewidth=1.3, label=label)
                if fat == 1.0:
                    value = paper_at_full_load[log, machine]
                    label = f"paper: {MACHINE_TITLES[machine]}, 100 % tori, {value:.0f} %"
                    axes.plot([1.0], [value], "*", color=colour, markersize=13, markeredgecolor="black", label=label)
            _load_axes(axes, f"{log}, {_SHAPES[fat]} jobs")
            axes.legend(frameon=False, fontsize=7, loc="upper left")
    save_figure(figure, target)


def draw_figure8(source: Path, target: Path) -> None:
    """Figure 8: utilisation over offered load for slim, mixed and fat shapes of the same sizes, all tori."""
    rows = read_rows(source)
    figure = new_figure(9, 4)
    colours = {0.0: "#1f4e9c", 0.5: "#5b8c3a", 1.0: "#c44e1f"}
    for axes, log in zip(figure.subplots(1, 2, sharey=True), ("CTC", "SDSC"), strict=True):
        for fat, colour in colours.items():
            points = curve(rows, "load", "utilisation", log=log, fat_probability=fat)
            axes.plot(*points, color=colour, marker="o", markersize=3, label=_SHAPES[fat])
        _load_axes(axes, f"{log}, Blue Gene/L, all tori, equal sizes")
        axes.legend(frameon=False, fontsize=8, title="shapes", title_fontsize=8)
    save_figure(figure, target)


def _load_axes(axes: Axes, title: str) -> None:
    axes.plot([0.2, 1.0], [20, 100], color="#999999", linewidth=0.7, label="all that is offered")
    axes.set_xlabel("offered load (work / capacity)")
    axes.set_ylabel("utilisation (%)")
    axes.set_xlim(0.18, 1.03)
    axes.set_ylim(0, 105)
    axes.set_title(title, fontsize=10)
    axes.grid(visible=True, color="#e5e5e5", linewidth=0.6)
