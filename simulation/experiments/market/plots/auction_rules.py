"""Picture of the experiment on auction rules, drawn from its result file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from simulation.plots.style import SERIES, Row, legend_below, new_figure, quiet_grid, read_rows, save_figure

_MEASURES: Final = (
    ("price", "price paid (credits per core hour)"),
    ("revenue", "sellers' revenue (credits)"),
    ("distance", "above the cheapest allocation (%)"),
)
_MARKERS: Final = ("o", "v", "^", "D", "s", "P", "X")


def draw_rules(source: Path, target: Path, *, quick: bool) -> None:
    """Price, revenue and distance over the load, one column a sort of sellers, one line a rule and number of rounds."""
    rows = read_rows(source)
    sellers = list(dict.fromkeys(row["sellers"] for row in rows))
    ways = list(dict.fromkeys((row["rule"], row["rounds"]) for row in rows))
    title = "Auction rules over the machines' load, with Table 2's prices"
    figure = new_figure(12, 9.5, title, quick=quick)
    panels = figure.subplots(len(_MEASURES), len(sellers), squeeze=False, sharey="row")
    for (measure, words), line in zip(_MEASURES, panels, strict=True):
        for sort, axes in zip(sellers, line, strict=True):
            for index, way in enumerate(ways):
                mine = [row for row in rows if (row["rule"], row["rounds"]) == way and row["sellers"] == sort]
                mine = [row for row in mine if row[measure]]
                axes.plot(
                    [float(row["load"]) for row in mine],
                    [float(row[measure]) for row in mine],
                    color=SERIES[index % len(SERIES)],
                    marker=_MARKERS[index % len(_MARKERS)],
                    markersize=4,
                    linewidth=1.2,
                    label=_label(mine[0]) if mine else way[0],
                )
            axes.set_title(f"{sort} sellers", fontsize=10)
            axes.set_xlabel("load of the machines")
            quiet_grid(axes)
        line[0].set_ylabel(words)
        line[0].set_ylim(bottom=0)
    legend_below(figure, panels[-1][0], columns=4)
    save_figure(figure, target)


def _label(row: Row) -> str:
    return f"{row['rule']}, {row['rounds']} rounds" if row["rule"] == "open-rounds" else str(row["rule"])
