"""Pictures of the experiment on Table 3's workloads, drawn from its result files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from simulation.plots.bluegene import Row, new_figure, read_rows, save_figure
from simulation.plots.market_style import GREY, OURS, OURS_TOO, PAPER, footnote, quiet_grid

SYNTHETIC_MARK: Final = "*"
"""Ends the names of resources whose log is missing."""

_IN_TURN: Final = "requests of Table 3 in turn, by the machines' running time"
_RUNNING: Final = "running time of the machines (hours)"


def draw_figure8a(source: Path, target: Path, mode: str, medians: tuple[float, float], note: str) -> None:
    """Figure 8a: request, mean offer in each round and winning price, one group of bars a request.

    Args:
        source: `figure8a.csv`.
        target: the picture.
        mode: how the markets were run.
        medians: of offer over request price in per cent, the paper's and ours.
        note: stands below.
    """
    rows = read_rows(source)
    figure = new_figure(12, 4.8)
    axes = figure.subplots()
    series = (
        ("price", "request price", GREY),
        ("mean_offer_1", "mean offer in round 1", "#b7cbe8"),
        ("mean_offer_2", "mean offer in round 2", "#7a9cc6"),
        ("mean_offer_3", "mean offer in round 3", OURS),
        ("winning_price", "winning price", OURS_TOO),
    )
    for offset, (column, label, colour) in enumerate(series):
        positions = [index + 0.16 * (offset - 2) for index, row in enumerate(rows) if row[column]]
        heights = [float(row[column]) for row in rows if row[column]]
        axes.bar(positions, heights, width=0.16, color=colour, label=label)
    labels = [f"{row['request']}\n{row['cores']} cores\nin {row['start_in_min']} min" for row in rows]
    axes.set_xticks(range(len(rows)), labels, fontsize=7)
    axes.set_ylabel("credits per core hour")
    axes.set_ylim(0, 92)
    title = f"Table 3 on Table 2, three rounds, means over repetitions ({mode}); no bar: no offer"
    axes.set_title(
        f"{title}\nmedian offer over request price: paper {medians[0]} %, ours {medians[1]:.1f} %", fontsize=10
    )
    quiet_grid(axes)
    axes.legend(frameon=False, fontsize=8, ncols=5, loc="upper center")
    footnote(figure, f"The offers include those of Intrepid's machines: {note}")
    save_figure(figure, target)


def draw_figure8b(source: Path, target: Path, names: Sequence[str], in_turn: bool, note: str) -> None:
    """Figure 8b: attractiveness of every resource over the machines' running time, as a map.

    Args:
        source: `over_time.csv`.
        target: the picture.
        names: the resources, from top to bottom.
        in_turn: whether the moments are requests in turn, with no even time between them.
        note: stands below.
    """
    rows = read_rows(source)
    hours = sorted({float(row["hours"]) for row in rows})
    column = {moment: index for index, moment in enumerate(hours)}
    line = {name: index for index, name in enumerate(names)}
    values = np.full((len(names), len(hours)), np.nan)
    for row in rows:
        values[line[row["resource"]], column[float(row["hours"])]] = float(row["attractiveness"])
    figure = new_figure(11, 5.4)
    axes = figure.subplots()
    axes.set_facecolor("#dddddd")
    steps = [later - earlier for earlier, later in pairwise(hours)]
    edges = [float(index) for index in range(len(hours) + 1)] if in_turn else [*hours, hours[-1] + (steps or [1.0])[-1]]
    mesh = axes.pcolormesh(edges, range(len(names) + 1), values, cmap="viridis", vmin=0)
    axes.set_yticks([index + 0.5 for index in range(len(names))], names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(_IN_TURN if in_turn else _RUNNING)
    axes.set_title("Attractiveness of the resources over time; grey: no offer", fontsize=10)
    figure.colorbar(mesh, ax=axes, label="asking price less the offer (credits per core hour)")
    footnote(figure, note)
    save_figure(figure, target)


def draw_figure9b(source: Path, target: Path, only: Sequence[str], in_turn: bool, note: str) -> None:
    """Figure 9b: offer prices of four resources over the machines' running time.

    Args:
        source: `over_time.csv`.
        target: the picture.
        only: names of the resources, without marks.
        in_turn: whether the moments are requests in turn, with no even time between them.
        note: stands below.
    """
    rows = read_rows(source)
    names = sorted({row["resource"] for row in rows if row["resource"].rstrip(SYNTHETIC_MARK) in only})
    moments = {moment: index for index, moment in enumerate(sorted({float(row["hours"]) for row in rows}))}
    figure = new_figure(10, 4.4)
    axes = figure.subplots()
    for name in names:
        points = sorted((float(row["hours"]), float(row["offer"])) for row in rows if row["resource"] == name)
        if in_turn:
            points = [(moments[moment] + 0.5, offer) for moment, offer in points]
            axes.plot(*zip(*points, strict=True), "o", markersize=5, alpha=0.7, label=name)
            continue
        style = "--" if name.endswith(SYNTHETIC_MARK) else "-"
        axes.step(*zip(*points, strict=True), style, where="post", linewidth=1.6, label=name)
    axes.set_xlabel(_IN_TURN if in_turn else _RUNNING)
    axes.set_ylabel("offer (credits per core hour)")
    axes.set_title("Offer prices of four resources in the first round over time", fontsize=10)
    axes.margins(y=0.12)
    quiet_grid(axes)
    figure.legend(frameon=False, fontsize=9, loc="outside right center")
    footnote(figure, note)
    save_figure(figure, target)


def draw_figure9a(source: Path, target: Path, mode: str, note: str) -> None:
    """Figure 9a: share of wins, one bar a resource that won.

    Args:
        source: `figure9a.csv`.
        target: the picture.
        mode: how the markets were run.
        note: stands below.
    """
    rows = read_rows(source)
    figure = new_figure(8, 4.4)
    axes = figure.subplots()
    bars = axes.barh([row["resource"] for row in rows], [float(row["share_percent"]) for row in rows], color=OURS)
    axes.bar_label(bars, [f"{row['share_percent']} % ({row['wins']})" for row in rows], fontsize=8, padding=3)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the requests won (%; number of wins)")
    axes.set_title(f"Winners of Table 3's requests: {len(rows)} resources ({mode}); the paper: 5", fontsize=10)
    quiet_grid(axes)
    footnote(figure, note)
    save_figure(figure, target)


def draw_figure10(source: Path, target: Path, mode: str, note: str) -> None:
    """Figure 10: mean offer of every resource between its minimum and its start price.

    Args:
        source: `figure10.csv`.
        target: the picture.
        mode: how the markets were run.
        note: stands below.
    """
    rows: list[Row] = read_rows(source)
    figure = new_figure(11, 4.6)
    axes = figure.subplots()
    positions = range(len(rows))
    low = [float(row["minimum_price"]) for row in rows]
    high = [float(row["start_price"]) for row in rows]
    axes.vlines(positions, low, high, color=GREY, linewidth=5, alpha=0.45, label="minimum to start price (Table 2)")
    offered = [(index, float(row["mean_offer"])) for index, row in enumerate(rows) if row["mean_offer"]]
    axes.plot([x for x, _ in offered], [y for _, y in offered], "o", color=OURS, label=f"mean offer, ours ({mode})")
    silent = [(index, low[index]) for index, row in enumerate(rows) if not row["mean_offer"]]
    if silent:
        axes.plot([x for x, _ in silent], [y for _, y in silent], "x", color=PAPER, label="made no offer")
    axes.set_xticks(positions, [row["resource"] for row in rows], rotation=60, ha="right", fontsize=8)
    axes.set_ylabel("credits per core hour")
    axes.set_ylim(0, 95)
    axes.set_title("Mean offer between minimum and start price", fontsize=10)
    quiet_grid(axes)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper center")
    footnote(figure, note)
    save_figure(figure, target)
