"""Pictures of the experiment on Table 3's workloads, drawn from its result files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from simulation.plots.style import (
    BLUE,
    GREEN,
    GREY,
    SERIES,
    SKY,
    VERMILION,
    Row,
    footnote,
    legend_below,
    new_figure,
    quiet_grid,
    read_rows,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAPER: Final = "of Zasada and Coveney"
_STAND_IN: Final = "stand-in"
_RUNNING: Final = "running time of the machines (hours)"
_HATCH: Final = "////"


def _label(name: str, workload: str) -> str:
    return f"{name} ({_STAND_IN})" if workload == _STAND_IN else name


def draw_figure8a(
    source: Path, target: Path, mode: str, medians: tuple[float, Mapping[str, float]], note: str, *, quick: bool
) -> None:
    """Figure 8a: request, mean offer in each round and winning price, one group of bars a request.

    `medians` are of offer over request price in per cent: the paper's, and ours by what counts as offer.
    """
    rows = read_rows(source)
    title = f"Figure 8a {_PAPER}: Table 3 on Table 2, three rounds, means over repetitions"
    figure = new_figure(12, 5.4, title, quick=quick, mode=mode)
    axes = figure.subplots()
    series = (
        ("price", "request price", GREY),
        ("mean_offer_1", "mean offer in round 1", "#bfe0f3"),
        ("mean_offer_2", "mean offer in round 2", SKY),
        ("mean_offer_3", "mean offer in round 3", BLUE),
        ("winning_price", "winning price", GREEN),
    )
    for offset, (column, label, colour) in enumerate(series):
        positions = [index + 0.16 * (offset - 2) for index, row in enumerate(rows) if row[column]]
        heights = [float(row[column]) for row in rows if row[column]]
        axes.bar(positions, heights, width=0.16, color=colour, label=label)
    labels = [f"{row['request']}\n{row['cores']} cores\nin {row['start_in_min']} min" for row in rows]
    axes.set_xticks(range(len(rows)), labels, fontsize=7)
    for index, row in enumerate(rows):
        if row["request"] == "exp11":
            told = "sold" if row["winning_price"] else "failed"
            axes.annotate(f"paper: failed\nhere: {told}", (index, float(row["price"]) + 1), ha="center", fontsize=8)
    axes.set_ylabel("credits per core hour")
    axes.set_ylim(0, 92)
    ours = ", ".join(f"{words} {value:.1f}" for words, value in medians[1].items())
    axes.set_title(f"median offer over request price: paper {medians[0]} %; ours: {ours}", fontsize=9)
    quiet_grid(axes)
    legend_below(figure, axes, columns=5)
    footnote(
        figure,
        "No bar: no offer in any repetition. A winning price is a mean over the sales only, and can be above the mean "
        f"offer of a round that fewer resources or repetitions reached. {note}",
    )
    save_figure(figure, target)


def _columns_of_requests(axes: Axes, rows: Sequence[Row]) -> dict[tuple[float, str], int]:
    """Places of requests in turn on an axis that names them; there is no even time between them."""
    moments = sorted({(float(row["hours"]), row["request"]) for row in rows})
    axes.set_xticks(
        [place + 0.5 for place in range(len(moments))], [request for _, request in moments], fontsize=7, rotation=90
    )
    axes.set_xlabel("requests of Table 3 in turn, repetition after repetition by the machines' running time")
    return {moment: place for place, moment in enumerate(moments)}


def draw_figure8b(
    source: Path, target: Path, workloads: Mapping[str, str], mode: str, note: str, *, quick: bool
) -> None:
    """Figure 8b: attractiveness of every resource over the machines' running time, as a map.

    Rows of `source` with a request are purchases in turn, the others quotations over time. `workloads` has the kind of
    each resource, from top to bottom.
    """
    rows = read_rows(source)
    title = f"Figure 8b {_PAPER}: attractiveness of the resources over time"
    figure = new_figure(11, 6, title, quick=quick, mode=mode)
    axes = figure.subplots()
    in_turn = any(row["request"] for row in rows)
    if in_turn:
        column = _columns_of_requests(axes, rows)
        edges = [float(index) for index in range(len(column) + 1)]
    else:
        hours = sorted({float(row["hours"]) for row in rows})
        column = {(moment, ""): index for index, moment in enumerate(hours)}
        steps = [later - earlier for earlier, later in pairwise(hours)]
        edges = [*hours, hours[-1] + (steps or [1.0])[-1]]
        axes.set_xlabel(_RUNNING)
    line = {name: index for index, name in enumerate(workloads)}
    values = np.full((len(line), len(column)), np.nan)
    for row in rows:
        values[line[row["resource"]], column[float(row["hours"]), row["request"]]] = float(row["attractiveness"])
    axes.set_facecolor("white")
    axes.patch.set(hatch=_HATCH, edgecolor="#c8c8c8")
    mesh = axes.pcolormesh(edges, range(len(line) + 1), np.ma.masked_invalid(values), cmap="cividis", vmin=0)
    axes.set_yticks(
        [index + 0.5 for index in range(len(line))], [_label(*each) for each in workloads.items()], fontsize=8
    )
    axes.invert_yaxis()
    reason = "too few free cores, or the asking price is below its minimum" if in_turn else "too few free cores"
    axes.set_title(f"hatched: no offer ({reason})", fontsize=9)
    figure.colorbar(mesh, ax=axes, label="asking price less the offer (credits per core hour)")
    footnote(figure, note)
    save_figure(figure, target)


def draw_figure9b(source: Path, target: Path, only: Sequence[str], mode: str, note: str, *, quick: bool) -> None:
    """Figure 9b: offer prices of four resources over the machines' running time.

    Over XMPP, where a day takes a day, there are only the requests of Table 3, each with a price of its own; so that
    these do not mix, offers stand there as a share of the asking price.
    """
    rows = [row for row in read_rows(source) if row["resource"] in only]
    title = f"Figure 9b {_PAPER}: offers of four resources in the first round over time"
    figure = new_figure(10, 5, title, quick=quick, mode=mode)
    axes = figure.subplots()
    in_turn = any(row["request"] for row in rows)
    column = _columns_of_requests(axes, rows) if in_turn else {}
    for number, name in enumerate(only):
        mine = sorted((row for row in rows if row["resource"] == name), key=lambda row: float(row["hours"]))
        if not mine:
            continue
        label, colour = _label(name, mine[0]["workload"]), SERIES[number]
        if in_turn:
            points = [
                (column[float(row["hours"]), row["request"]] + 0.5, 100 * float(row["offer"]) / float(row["asked"]))
                for row in mine
            ]
            axes.plot(*zip(*points, strict=True), "o^sD"[number], color=colour, markersize=5, alpha=0.8, label=label)
        else:
            points = [(float(row["hours"]), float(row["offer"])) for row in mine]
            style, width = ("-", "--", "-.", ":")[number], 2.4 - 0.3 * number  # one may lie on another
            axes.step(*zip(*points, strict=True), style, color=colour, where="post", linewidth=width, label=label)
    if in_turn:
        axes.set_ylabel("offer (% of the asking price)")
        axes.set_title("the requests ask different prices, so offers stand as shares of these", fontsize=9)
    else:
        axes.set_xlabel(_RUNNING)
        axes.set_ylabel("offer (credits per core hour)")
        axes.set_title(f"asked: {rows[0]['asked']} credits per core hour, exp1", fontsize=9)
    axes.margins(y=0.12)
    quiet_grid(axes)
    legend_below(figure, axes, columns=4)
    shown = any(row["workload"] == _STAND_IN for row in rows)
    footnote(figure, f"The paper does not say which four it shows. {note if shown else ''}")
    save_figure(figure, target)


def draw_figure9a(source: Path, target: Path, mode: str, note: str, *, quick: bool) -> None:
    """Figure 9a: share of wins, one bar a resource that won."""
    rows = read_rows(source)
    figure = new_figure(8, 4, f"Figure 9a {_PAPER}: winners of Table 3's requests", quick=quick, mode=mode)
    axes = figure.subplots()
    names = [_label(row["resource"], row["workload"]) for row in rows]
    bars = axes.barh(names, [float(row["share_percent"]) for row in rows], color=BLUE)
    axes.bar_label(bars, [f"{row['share_percent']} % ({row['wins']})" for row in rows], fontsize=8, padding=3)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the requests won (%; number of wins)")
    axes.set_title(f"{len(rows)} resources won; paper: 5, atlas1 most", fontsize=9)
    quiet_grid(axes)
    footnote(figure, note)
    save_figure(figure, target)


def draw_figure10(source: Path, target: Path, mode: str, note: str, *, quick: bool) -> None:
    """Figure 10: mean offer of every resource between its minimum and its start price."""
    rows: list[Row] = read_rows(source)
    title = f"Figure 10 {_PAPER}: mean offer between minimum and start price"
    figure = new_figure(11, 5.4, title, quick=quick, mode=mode)
    axes = figure.subplots()
    positions = range(len(rows))
    low = [float(row["minimum_price"]) for row in rows]
    high = [float(row["start_price"]) for row in rows]
    axes.vlines(positions, low, high, color=GREY, linewidth=6, alpha=0.45, label="minimum to start price (Table 2)")
    offered = [(index, float(row["mean_offer"])) for index, row in enumerate(rows) if row["mean_offer"]]
    axes.plot([x for x, _ in offered], [y for _, y in offered], "o", color=BLUE, label="mean offer, ours")
    silent = [(index, low[index]) for index, row in enumerate(rows) if not row["mean_offer"]]
    if silent:
        axes.plot([x for x, _ in silent], [y for _, y in silent], "x", color=VERMILION, label="made no offer")
    names = [_label(row["resource"], row["workload"]) for row in rows]
    axes.set_xticks(positions, names, rotation=60, ha="right", fontsize=8)
    axes.set_ylabel("credits per core hour")
    axes.set_ylim(0, 95)
    axes.set_title("paper: offers fall roughly between the two prices", fontsize=9)
    quiet_grid(axes)
    legend_below(figure, axes, columns=3)
    footnote(figure, note)
    save_figure(figure, target)
