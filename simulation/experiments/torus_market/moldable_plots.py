"""Picture of the market with moldable requests, drawn from the result files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from simulation.plots.style import (
    BLUE,
    GREY,
    ORANGE,
    SERIES,
    VERMILION,
    Row,
    footnote,
    new_figure,
    quiet_grid,
    read_rows,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_REFUSED: Final = "refused_"
_PANELS: Final = (
    ("Requests that were bought", "share of the requests (%)", 100.0, {"success_rate": ("bought", BLUE)}),
    (
        "Price",
        "credits per core hour",
        1.0,
        {"price_a_core_hour": ("of the size sold", BLUE), "price_as_asked": ("of the size asked", VERMILION)},
    ),
    (
        "Use of the machines",
        "share of the machines (%)",
        100.0,
        {"used": ("in all", GREY), "background": ("own users", BLUE), "market": ("sold", ORANGE)},
    ),
    ("Wait of the machines' own jobs", "mean wait (hours)", 1.0, {"mean_wait_h": ("mean wait", BLUE)}),
    (
        "What was sold, over what was asked",
        "ratio",
        1.0,
        {"size_ratio": ("cores", BLUE), "length_ratio": ("length", VERMILION)},
    ),
)


def draw_moldable(runs: Path, changes: Path, target: Path, days: int, *, quick: bool) -> None:
    """Six panels over the share of moldable requests: success, price, use, wait, sizes, and refusals by reason."""
    each, means = read_rows(runs), read_rows(changes)
    title = f"Beyond Zasada and Coveney: {days} days of market on live tori with moldable requests"
    figure = new_figure(12, 7.4, title, quick=quick)
    panels = figure.subplots(2, 3).ravel()
    for axes, (name, label, scale, series) in zip(panels, _PANELS, strict=False):
        for measure, (words, colour) in series.items():
            _draw(axes, means, measure, scale, words, colour)
            dots = [(100 * float(row["moldable_share"]), scale * float(row[measure])) for row in each if row[measure]]
            axes.plot(*zip(*dots, strict=True), ".", color=colour, alpha=0.4, markersize=4)
        _name(axes, name, label)
    reasons = list(dict.fromkeys(row["measure"] for row in means if row["measure"].startswith(_REFUSED)))
    for measure, colour in zip(reasons, SERIES, strict=False):
        _draw(panels[-1], means, measure, 1.0, measure.removeprefix(_REFUSED).replace("_", " "), colour)
    _name(panels[-1], "Refusals of first rounds", "refusals per request")
    footnote(figure, "Lines: means over seeds with their 95 % intervals; dots: each seed.")
    save_figure(figure, target)


def _draw(axes: Axes, means: list[Row], measure: str, scale: float, words: str, colour: str) -> None:
    rows = [row for row in means if row["measure"] == measure]
    axes.errorbar(
        [100 * float(row["moldable_share"]) for row in rows],
        [scale * float(row["mean"]) for row in rows],
        yerr=[scale * float(row["mean_half"]) for row in rows],
        fmt="o-",
        color=colour,
        markersize=4,
        capsize=3,
        label=words,
    )


def _name(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("moldable requests (%)")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(frameon=False, fontsize=8)
    quiet_grid(axes)
