"""Pictures of the experiments on simultaneous users, drawn from their result files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from simulation.plots.style import (
    BLUE,
    GREEN,
    GREY,
    SERIES,
    VERMILION,
    Row,
    footnote,
    legend_below,
    new_figure,
    quiet_grid,
    read_rows,
    save_figure,
)

_PANELS: Final = (
    ("response_s", "response time of a resource (ms)", "(a) response time; paper: linear"),
    ("round_s", "duration of the round (ms)", "(b) round duration; paper: steep up to 10 users, then tails off"),
)
_MARKERS: Final = ("o", "s", "^", "v")
_STYLES: Final = ("-", "--", "-.", ":")
_COLOURS_OF_NETWORKS: Final = (BLUE, VERMILION, GREEN, *SERIES[3:])


def draw_users(source: Path, target: Path, mode: str, note: str, *, quick: bool) -> None:
    """Figure 12: response time and round duration over simultaneous users."""
    title = "Figure 12 of Zasada and Coveney: simultaneous users, twenty resources on one host"
    _draw(((source, "mean over the users"),), target, title, note, quick=quick, mode=mode)


def draw_network(series: Sequence[tuple[Path, str]], target: Path, mode: str, note: str, *, quick: bool) -> None:
    """Figure 13: the same on several networks, all in one picture."""
    title = "Figure 13 of Zasada and Coveney: simultaneous users, resources on a network of hosts"
    _draw(series, target, title, note, quick=quick, mode=mode)


def _deviations(means: list[float], rows: list[Row], column: str) -> tuple[list[float], list[float]]:
    """Standard deviations in milliseconds below and above the means; no time is below 0."""
    above = [1000 * float(row[f"{column}_sd"]) for row in rows]
    return [min(mean, deviation) for mean, deviation in zip(means, above, strict=True)], above


def _draw(series: Sequence[tuple[Path, str]], target: Path, title: str, note: str, *, quick: bool, mode: str) -> None:
    """Draw response time and round duration, one line a deployment; lines that nearly coincide get different styles."""
    figure = new_figure(11, 5, title, quick=quick, mode=mode)
    panels = figure.subplots(1, 2)
    for axes, (column, label, name) in zip(panels, _PANELS, strict=True):
        for number, (source, what) in enumerate(series):
            rows: list[Row] = read_rows(source)
            users = [int(row["users"]) for row in rows]
            shift = 0.15 * (number - (len(series) - 1) / 2)  # so that the bars of one do not cover those of another
            axes.errorbar(
                [count + shift for count in users],
                [1000 * float(row[column]) for row in rows],
                yerr=_deviations([1000 * float(row[column]) for row in rows], rows, column),
                color=_COLOURS_OF_NETWORKS[number],
                linestyle=_STYLES[number],
                marker=_MARKERS[number],
                markersize=4,
                markerfacecolor="white" if number else None,
                capsize=2,
                linewidth=1.2,
                label=what,
            )
            if column == "round_s" and len(series) == 1:
                longest = [1000 * float(row["longest_round_s"]) for row in rows]
                axes.plot(users, longest, ":", marker="x", markersize=4, color=GREY, label="slowest user")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("simultaneous users")
        axes.set_ylabel(label)
        axes.set_title(name, fontsize=10)
        quiet_grid(axes)
    legend_below(figure, panels[1], columns=4)
    footnote(figure, f"Bars: standard deviation. The paper's curves are not told in numbers. {note}")
    save_figure(figure, target)
