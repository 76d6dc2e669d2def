"""Waits of malleable jobs with places and without, drawn from the result file."""

from __future__ import annotations

from pathlib import Path

from simulation.plots.style import SERIES, footnote, legend_below, new_figure, quiet_grid, read_rows, save_figure


def draw_tori(source: Path, target: Path, *, quick: bool) -> None:
    """Mean wait over the share of malleable jobs, a panel for each machine and case.

    Args:
        source: table of the means.
        target: the picture.
        quick: whether it shows the small version.
    """
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
