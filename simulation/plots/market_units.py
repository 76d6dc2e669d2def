"""Picture of the experiment on units in one request, drawn from its result file."""

from __future__ import annotations

from pathlib import Path

from simulation.plots.bluegene import new_figure, read_rows, save_figure
from simulation.plots.market_style import OURS, OURS_TOO, PAPER, footnote, quiet_grid


def draw_units(source: Path, target: Path, mode: str, note: str) -> None:
    """Figure 11b: round, commitment and whole purchase over the units of one request.

    Args:
        source: `figure11b.csv`.
        target: the picture.
        mode: how the markets were run.
        note: stands below.
    """
    rows = read_rows(source)
    units = [int(row["units"]) for row in rows]
    figure = new_figure(9, 4.8)
    axes = figure.subplots()
    series = (
        ("total_s", "whole purchase", PAPER, "^"),
        ("commitment_s", "commitment (votes, confirmations, payments)", OURS_TOO, "s"),
        ("round_s", "round of bidding, until the last answer", OURS, "o"),
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
    axes.set_title(f"Units in one request, twenty resources ({mode})", fontsize=10)
    quiet_grid(axes)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    footnote(
        figure,
        f"Paper (figure 11b): the round grows linearly, the negotiation hardly; its numbers are not told. {note}",
    )
    save_figure(figure, target)
