"""Picture of the experiment on units in one request, drawn from its result file."""

from __future__ import annotations

from pathlib import Path

from simulation.plots.style import (
    BLUE,
    GREEN,
    ORANGE,
    footnote,
    legend_below,
    new_figure,
    quiet_grid,
    read_rows,
    save_figure,
)


def draw_units(source: Path, target: Path, mode: str, note: str, *, quick: bool) -> None:
    """Figure 11b: round, commitment and whole purchase over the units of one request."""
    rows = read_rows(source)
    units = [int(row["units"]) for row in rows]
    title = "Figure 11b of Zasada and Coveney: units in one request, twenty resources on one host"
    figure = new_figure(9, 5.2, title, quick=quick, mode=mode)
    axes = figure.subplots()
    series = (
        ("total_s", "whole purchase", ORANGE, "^"),
        ("commitment_s", "commitment (votes, confirmations, payments)", GREEN, "s"),
        ("round_s", "round of bidding, until the last answer", BLUE, "o"),
    )
    for column, label, colour, marker in series:
        axes.errorbar(
            units,
            [float(row[column]) for row in rows],
            yerr=[float(row[f"{column}_sd"]) for row in rows],
            color=colour,
            marker=marker,
            markersize=4,
            capsize=2,
            label=label,
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("units in one request")
    axes.set_ylabel("time (s), mean and standard deviation")
    axes.set_title("paper: the round grows linearly, the negotiation does not; its numbers are not told", fontsize=9)
    quiet_grid(axes)
    legend_below(figure, axes, columns=3)
    footnote(figure, note)
    save_figure(figure, target)
