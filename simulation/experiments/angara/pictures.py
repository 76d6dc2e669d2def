"""Pictures of the Angara allocation study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from simulation.experiments.angara.runs import BASE_NO_WRAP, BASE_RING, FIND_SYSTEMS, METHODS, MSS
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.result import Row, Rows, grouped
from simulation.plots.style import BLUE, GREY, ORANGE, SKY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from simulation.experiments.study import Found

_COLOURS: Final = {
    method.label: colour for method, colour in zip(METHODS, (GREY, ORANGE, VERMILION, SKY, BLUE), strict=True)
}
_BARS: Final = {
    BASE_NO_WRAP.label: ("base (no wrap, smallest volume)", GREY),
    FIND_SYSTEMS.label: ("Find_Systems", SKY),
    MSS.label: ("Find_Systems+MSS", BLUE),
}
_OF_SYSTEMS: Final = {one.label for one in (BASE_NO_WRAP, BASE_RING, FIND_SYSTEMS, MSS)}
_LEAST_SEEDS: Final = 3
"""An interval over two seeds is twelve times their deviation: it tells nothing and is not drawn."""

_STUDY: Final = "of Mukosey and others 2019"
_INTERVALS: Final = (
    "Intervals, where they can be: 95 % of the mean over the seeds. All methods run the same jobs of a seed, so that "
    "their differences are far surer than the levels: differences.csv."
)


def _figure3(drawing: Drawing, found: Found) -> Iterable[Axes]:
    panels = dict(
        sorted(grouped(found["figure3"], "panel").items(), key=lambda one: (int(one[0][0].split()[0]), one[0]))
    )
    grid = drawing.subplots(-(-len(panels) // 2), 2, squeeze=False, sharey=True)
    for axes, ((panel,), rows), letter in zip(grid.flat, panels.items(), "abcdef", strict=False):
        for offset, column, label, colour in (
            (-0.2, "share", "wanted", SKY),
            (0.2, "share_drawn", "drawn (one seed)", VERMILION),
        ):
            places = [place + offset for place in range(len(rows))]
            axes.bar(places, [100 * row[column] for row in rows], width=0.4, label=label, color=colour)
        axes.set_xticks(range(len(rows)), [str(row["size"]) for row in rows], fontsize=7)
        axes.set_title(f"({letter}) {panel}", fontsize=9)
        axes.set_xlabel("size (nodes)", fontsize=8)
    for axes in grid[:, 0]:
        axes.set_ylabel("share of jobs (%)", fontsize=8)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    return [grid[0, 0]]


def _figure4(drawing: Drawing, found: Found) -> Iterable[Axes]:
    rows = found["figure4"]
    axes = drawing.subplots()
    percentiles = [row["percentile"] for row in rows]
    drawn = [100 * row["share_drawn"] for row in rows]
    axes.plot(percentiles, drawn, "o", markersize=3, color=SKY, label="drawn (one seed)")
    law = [100 * row["share_of_maximum"] for row in rows]
    axes.plot(percentiles, law, color="black", linewidth=1.5, label="the study's law")
    axes.set_yscale("log")
    axes.set_ylim(0.01, 110)
    axes.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    axes.set_xlim(0, 100)
    axes.set_xlabel("jobs (%)")
    axes.set_ylabel("duration (% of 24 hours)")
    return [axes]


def interval(row: Row) -> float | None:
    """Half of a 95 % interval that can be: over enough seeds, and within what the measure can take."""
    mean, half = row["mean"], row["ci95_half_width"]
    most = 100.0 if row["measure"] == "utilisation" else float("inf")
    possible = row["seeds"] >= _LEAST_SEEDS and mean - half >= 0 and mean + half <= most
    return half if possible else None


def _bars(drawing: Drawing, rows: Rows, label: str, most: float | None) -> Iterable[Axes]:
    axes = drawing.subplots()
    windows = sorted({row["window"] for row in rows})
    for offset, (method, (words, colour)) in zip((-0.27, 0.0, 0.27), _BARS.items(), strict=True):
        for row in rows:
            if row["method"] == method:
                place = windows.index(row["window"]) + offset
                named = words if row["window"] == windows[0] else None
                axes.bar(place, row["mean"], width=0.26, color=colour, label=named)
                half = interval(row)
                if half is not None:
                    axes.errorbar([place], [row["mean"]], yerr=[half], color="#333333", capsize=2, linewidth=0.9)
    axes.set_xticks(range(len(windows)), [str(window) for window in windows])
    axes.set_xlabel("window (jobs)")
    axes.set_ylabel(label)
    axes.set_ylim(0, most)
    return [axes]


def _style(line: tuple[Any, ...], _: int) -> Mapping[str, Any]:
    return {"color": _COLOURS[line[0]], "marker": "o", "label": line[0]}


def _windows(axes: Axes, _: Found, __: tuple[Any, ...], rows: Rows) -> None:
    windows = sorted({row["window"] for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(windows, [str(window) for window in windows], fontsize=7)


def _figures(number: int, measure: str, label: str, most: float | None) -> dict[str, Figure]:
    lines: dict[str, Any] = {"x": Axis("window", "window (jobs)"), "y": (Axis("mean", label),), "lines": ("method",)}
    lines |= {"spread": interval, "style": _style, "finish": _windows}
    return {
        f"figure{number}.png": Figure(
            title=f"Figure {number} {_STUDY}: mean over the systems",
            size=(8.5, 4.8),
            draw=lambda drawing, found: _bars(drawing, found[f"figure{number}"], label, most),
            note=_INTERVALS,
        ),
        f"figure{number}-others.png": Figure(
            title=f"Beside figure {number} {_STUDY}: all allocators and readings, mean over the systems",
            size=(8.5, 5.2),
            draw=Curves(table=f"figure{number}", **lines),
            note=_INTERVALS,
        ),
        f"figure{number}-systems.png": Figure(
            title=f"Beside figure {number} {_STUDY}: system by system",
            size=_size_of_systems,
            draw=Curves(
                table="systems",
                panels=("system",),
                where=lambda row: row["measure"] == measure and row["method"] in _OF_SYSTEMS,
                wrap=_PANELS_A_ROW,
                **lines,
            ),
            note=_INTERVALS,
        ),
    }


_PANELS_A_ROW: Final = 4


def _size_of_systems(found: Found) -> tuple[float, float]:
    count = len(grouped(found["systems"], "system"))
    return 3 * min(_PANELS_A_ROW, count), 2.6 * -(-count // _PANELS_A_ROW) + 1.0


FIGURES: Final = {
    "figure3.png": Figure(
        title=f"Figure 3 {_STUDY}: sizes of the jobs (our shares: the study prints none)",
        size=lambda found: (10, 2.4 * -(-len(grouped(found["figure3"], "panel")) // 2) + 0.8),
        draw=_figure3,
        legend=2,
    ),
    "figure4.png": Figure(title=f"Figure 4 {_STUDY}: durations of the jobs", size=(6.5, 4.1), draw=_figure4),
    **_figures(5, "utilisation", "utilisation (%)", 80.0),
    **_figures(6, "relative_wait", "mean wait / requested time", None),
}
