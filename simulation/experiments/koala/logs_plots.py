"""What malleable jobs give on logs, drawn from the result file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from simulation.plots.style import PAPER, SERIES, footnote, legend_below, new_figure, quiet_grid, read_rows, save_figure

_MEASURES: Final = (("turnaround_h", "mean turnaround"), ("wait_h", "mean wait"))


def draw_gains(source: Path, target: Path, *, quick: bool) -> None:
    """Turnaround and wait against rigid EASY over the share of malleable jobs, a column a log.

    Args:
        source: table of the gains.
        target: the picture.
        quick: whether it shows the small version.
    """
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
