"""Pictures of the Blue Gene/L allocation study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from simulation.experiments.bluegene.runs import PAPER_FULL_LOAD, SLIM_CASES
from simulation.experiments.bluegene.statements import largest_gap, percent
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.result import Rows
from simulation.plots.style import BLUE, GREEN, PAPER, SKY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from simulation.experiments.study import Found

MACHINE_TITLES: Final = {"bgl": "Blue Gene/L", "torus3d": "3D torus"}
COLOURS: Final = {"bgl": BLUE, "torus3d": VERMILION}
_STYLES: Final = {0.0: ":", 0.5: "--", 1.0: "-"}
_SHAPES: Final = {0.0: "slim", 0.5: "half of them fat", 1.0: "fat"}
_SHAPE_COLOURS: Final = {0.0: BLUE, 0.5: GREEN, 1.0: VERMILION}
_SAID_OF_SLIM: Final = {"CTC": 'the four are "almost identical"', "SDSC": 'the variation "is still very small"'}
_EDGES: Final = {1: "1", 2: "2", 4: "3-4", 8: "5-8", 16: "9-16", 32: "17-32", 64: "33-64", 128: "65-128"}
_LOAD: Final = Axis("load", "offered load (work / capacity)")
_USE: Final = Axis("utilisation", "utilisation (%)", 100)


def _figure6(drawing: Drawing, found: Found) -> Iterable[Axes]:
    panels = drawing.subplots(1, 2, sharey=True)
    for axes, log in zip(panels, _SAID_OF_SLIM, strict=True):
        for offset, column, label, colour in (
            (-0.2, "jobs_before", "before fattening (slim)", SKY),
            (0.2, "jobs_after", "after fattening (fat)", VERMILION),
        ):
            counts = dict.fromkeys(_EDGES, 0)
            for row in found["figure6"]:
                if row["log"] == log:
                    counts[next(edge for edge in _EDGES if row["size"] <= edge)] += row[column]
            shares = [100 * count / (sum(counts.values()) or 1) for count in counts.values()]
            places = [place + offset for place in range(len(shares))]
            axes.bar(places, shares, width=0.4, label=label, color=colour)
        axes.set_xticks(range(len(_EDGES)), list(_EDGES.values()), fontsize=8)
        axes.set_xlabel("job size (midplanes)")
        axes.set_title(f"{log} log", fontsize=10)
    panels[0].set_ylabel("share of jobs (%)")
    return [panels[0]]


def _style_of_curve(line: tuple[Any, ...], _: int) -> Mapping[str, Any]:
    machine, torus = line
    style = {"color": COLOURS[machine], "linestyle": _STYLES[torus]}
    label = f"{MACHINE_TITLES[machine]}, {torus:.0%} tori"
    if line in SLIM_CASES:
        return {**style, "marker": "o", "linewidth": 1.8, "label": label}
    return {**style, "linewidth": 0.7, "alpha": 0.7, "label": f"{label} (not in the paper)"}


def apart_at_full_load(rows: Rows, log: str) -> float:
    """Points between the paper's four slim curves, the two that it does not have left out."""
    wanted = {"log": log, "fat_probability": 0.0}
    curves = [percent(rows, **wanted, machine=machine, torus_probability=torus) for machine, torus in SLIM_CASES]
    return largest_gap([{1.0: curve[1.0]} for curve in curves])


def _beside_figure7(axes: Axes, found: Found, panel: tuple[Any, ...], _: Rows) -> None:
    fat, log = panel
    _load_axes(axes)
    if fat == 1.0:
        for (of_log, machine), value in PAPER_FULL_LOAD.items():
            if of_log == log:
                label = "the paper's values (100 % tori)" if (log, machine) == ("CTC", "bgl") else None
                axes.plot([1.0], [value], "*", color=COLOURS[machine], markersize=14, markeredgecolor=PAPER, zorder=5,
                    label=label)  # fmt: skip
                axes.annotate(f"{value:.0f} %", (1.0, value), xytext=(16, -4), textcoords="offset points", fontsize=9,
                    annotation_clip=False)  # fmt: skip
        return
    apart = apart_at_full_load(found["figure7"], log)
    text = f"paper: {_SAID_OF_SLIM[log]}\nhere at full load {apart:.1f} points apart"
    axes.text(0.97, 0.05, text, transform=axes.transAxes, ha="right", fontsize=9, color=PAPER)


def _beside_figure8(axes: Axes, _: Found, panel: tuple[Any, ...], rows: Rows) -> None:
    _load_axes(axes)
    slim, fat = (percent(rows, fat_probability=share)[1.0] for share in (0.0, 1.0))
    arrow = {"arrowstyle": "<->", "color": PAPER, "lw": 1}
    axes.annotate("", (1.02, slim - 40), (1.02, slim), arrowprops=arrow)
    text = f'paper: a decrease of "up to 40 %" (arrow)\nhere at full load {slim - fat:.1f} points'
    axes.text(0.99, 6, text, ha="right", fontsize=8)


def _load_axes(axes: Axes) -> None:
    axes.plot([0.2, 1.0], [20, 100], color="#999999", linewidth=0.7, label="all that is offered")
    axes.set_xlim(0.18, 1.04)
    axes.set_ylim(0, 105)


FIGURES: Final = {
    "figure6.png": Figure(
        title="Figure 6 of Aridor and others 2005: sizes of the jobs before and after fattening",
        size=(9, 3.9),
        draw=_figure6,
    ),
    "figure7.png": Figure(
        title="Figure 7 of Aridor and others 2005: utilisation over offered load",
        size=(10, 9),
        draw=Curves(
            table="figure7",
            x=_LOAD,
            y=(_USE,),
            down="fat_probability",
            panels=("log",),
            lines=("machine", "torus_probability"),
            style=_style_of_curve,
            title=lambda panel: f"({'ab'[int(panel[0])]}) {panel[1]}, {_SHAPES[panel[0]]} jobs",
            finish=_beside_figure7,
        ),
    ),
    "figure8.png": Figure(
        title="Figure 8 of Aridor and others 2005: shapes at equal sizes, Blue Gene/L, all tori",
        size=(9, 4.8),
        draw=Curves(
            table="figure8",
            x=_LOAD,
            y=(_USE,),
            panels=("log",),
            lines=("fat_probability",),
            style=lambda line, _: {"color": _SHAPE_COLOURS[line[0]], "marker": "o", "label": _SHAPES[line[0]]},
            finish=_beside_figure8,
        ),
        legend=4,
    ),
}
