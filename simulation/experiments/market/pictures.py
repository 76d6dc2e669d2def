"""Pictures of the study on Table 3's workloads: figures 8 to 10."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from simulation.experiments.figures import Figure
from simulation.experiments.market.frame import first_plan, stand_in_note
from simulation.experiments.market.statements import MEDIAN_OFFER_PERCENT, medians
from simulation.experiments.result import Row, Rows
from simulation.experiments.trials.plan import STAND_IN, workload_of
from simulation.plots.style import BLUE, GREEN, GREY, SERIES, SKY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from simulation.experiments.study import Found

FOUR_RESOURCES: Final = ("atlas1", "curie1", "curie3", "thunder3")
"""Shown in figure 9b; the paper does not say which four it shows."""

_PAPER: Final = "of Zasada and Coveney"
_RUNNING: Final = "running time of the machines (hours)"


def _label(row: Row) -> str:
    return f"{row['resource']} ({STAND_IN})" if row["workload"] == STAND_IN else str(row["resource"])


def _figure8a(drawing: Drawing, found: Found) -> Iterable[Axes]:
    rows = found["figure8a"]
    axes = drawing.subplots()
    for offset, (column, label, colour) in enumerate(
        (
            ("price", "request price", GREY),
            ("mean_offer_1", "mean offer in round 1", "#bfe0f3"),
            ("mean_offer_2", "mean offer in round 2", SKY),
            ("mean_offer_3", "mean offer in round 3", BLUE),
            ("winning_price", "winning price", GREEN),
        )
    ):
        bars = {index + 0.16 * (offset - 2): row[column] for index, row in enumerate(rows) if row[column]}
        axes.bar(list(bars), list(bars.values()), width=0.16, color=colour, label=label)
    labels = [f"{row['request']}\n{row['cores']} cores\nin {row['start_in_min']} min" for row in rows]
    axes.set_xticks(range(len(rows)), labels, fontsize=7)
    for index, row in enumerate(rows):
        if row["request"] == "exp11":
            told = "sold" if row["winning_price"] else "failed"
            axes.annotate(f"paper: failed\nhere: {told}", (index, row["price"] + 1), ha="center", fontsize=8)
    axes.set_ylabel("credits per core hour")
    axes.set_ylim(0, 92)
    found_here = medians(found["requests"], found["offers"]).items()
    ours = ", ".join(f"{words} {value:.1f}" for words, value in found_here)
    axes.set_title(f"median offer over request price: paper {MEDIAN_OFFER_PERCENT} %; ours: {ours}", fontsize=9)
    return [axes]


def _columns_of_requests(axes: Axes, rows: Rows) -> dict[tuple[float, str], int]:
    """Places of requests in turn on an axis that names them; there is no even time between them."""
    moments = sorted({(row["hours"], row["request"]) for row in rows})
    places = [place + 0.5 for place in range(len(moments))]
    axes.set_xticks(places, [request for _, request in moments], fontsize=7, rotation=90)
    axes.set_xlabel("requests of Table 3 in turn, repetition after repetition by the machines' running time")
    return {moment: place for place, moment in enumerate(moments)}


def _in_turn(rows: Rows) -> bool:
    """Whether these are purchases in turn, as over XMPP, where a day takes a day, and not quotations over time."""
    return any(row["request"] for row in rows)


def _figure8b(drawing: Drawing, found: Found) -> Iterable[Axes]:
    rows = found["over_time"]
    axes = drawing.subplots()
    if _in_turn(rows):
        column = _columns_of_requests(axes, rows)
        edges = [float(index) for index in range(len(column) + 1)]
        reason = "too few free cores, or the asking price is below its minimum"
    else:
        hours = sorted({row["hours"] for row in rows})
        column = {(moment, ""): index for index, moment in enumerate(hours)}
        steps = [later - earlier for earlier, later in pairwise(hours)]
        edges = [*hours, hours[-1] + (steps or [1.0])[-1]]
        axes.set_xlabel(_RUNNING)
        reason = "too few free cores"
    resources = [{"resource": each.name, "workload": workload_of(each)} for each in first_plan(found).resources]
    line = {each["resource"]: index for index, each in enumerate(resources)}
    values = np.full((len(line), len(column)), np.nan)
    for row in rows:
        values[line[row["resource"]], column[row["hours"], row["request"]]] = row["attractiveness"]
    axes.set_facecolor("white")
    axes.patch.set(hatch="////", edgecolor="#c8c8c8")
    mesh = axes.pcolormesh(edges, range(len(line) + 1), np.ma.masked_invalid(values), cmap="cividis", vmin=0)
    axes.set_yticks([index + 0.5 for index in range(len(line))], [_label(each) for each in resources], fontsize=8)
    axes.invert_yaxis()
    axes.set_title(f"hatched: no offer ({reason})", fontsize=9)
    drawing.colorbar(mesh, ax=axes, label="asking price less the offer (credits per core hour)")
    return []


def _figure9a(drawing: Drawing, found: Found) -> Iterable[Axes]:
    rows = found["figure9a"]
    axes = drawing.subplots()
    bars = axes.barh([_label(row) for row in rows], [row["share_percent"] for row in rows], color=BLUE)
    axes.bar_label(bars, [f"{row['share_percent']} % ({row['wins']})" for row in rows], fontsize=8, padding=3)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the requests won (%; number of wins)")
    axes.set_title(f"{len(rows)} resources won; paper: 5, atlas1 most", fontsize=9)
    return []


def _figure9b(drawing: Drawing, found: Found) -> Iterable[Axes]:
    """Offer prices of four resources over the machines' running time.

    Purchases in turn each ask a price of their own; so that these do not mix, offers stand there as a share of it.
    """
    rows = [row for row in found["over_time"] if row["resource"] in FOUR_RESOURCES]
    axes = drawing.subplots()
    in_turn = _in_turn(rows)
    column = _columns_of_requests(axes, rows) if in_turn else {}
    for number, name in enumerate(FOUR_RESOURCES):
        mine = sorted((row for row in rows if row["resource"] == name), key=lambda row: row["hours"])
        if not mine:
            continue
        label, colour = _label(mine[0]), SERIES[number]
        if in_turn:
            places = [column[row["hours"], row["request"]] + 0.5 for row in mine]
            shares = [100 * row["offer"] / row["asked"] for row in mine]
            axes.plot(places, shares, "o^sD"[number], color=colour, markersize=5, alpha=0.8, label=label)
        else:
            hours, offers = ([row[name] for row in mine] for name in ("hours", "offer"))
            style, width = ("-", "--", "-.", ":")[number], 2.4 - 0.3 * number  # one may lie on another
            axes.step(hours, offers, style, color=colour, where="post", linewidth=width, label=label)
    if in_turn:
        axes.set_ylabel("offer (% of the asking price)")
        axes.set_title("the requests ask different prices, so offers stand as shares of these", fontsize=9)
    else:
        axes.set_xlabel(_RUNNING)
        axes.set_ylabel("offer (credits per core hour)")
        axes.set_title(f"asked: {rows[0]['asked']} credits per core hour, exp1", fontsize=9)
    axes.margins(y=0.12)
    return [axes]


def _figure10(drawing: Drawing, found: Found) -> Iterable[Axes]:
    rows = found["figure10"]
    axes = drawing.subplots()
    low, high = ([row[column] for row in rows] for column in ("minimum_price", "start_price"))
    label = "minimum to start price (Table 2)"
    axes.vlines(range(len(rows)), low, high, color=GREY, linewidth=6, alpha=0.45, label=label)
    offered = {index: row["mean_offer"] for index, row in enumerate(rows) if row["mean_offer"] is not None}
    axes.plot(list(offered), list(offered.values()), "o", color=BLUE, label="mean offer, ours")
    silent = {index: row["minimum_price"] for index, row in enumerate(rows) if row["mean_offer"] is None}
    if silent:
        axes.plot(list(silent), list(silent.values()), "x", color=VERMILION, label="made no offer")
    axes.set_xticks(range(len(rows)), [_label(row) for row in rows], rotation=60, ha="right", fontsize=8)
    axes.set_ylabel("credits per core hour")
    axes.set_ylim(0, 95)
    axes.set_title("paper: offers fall roughly between the two prices", fontsize=9)
    return [axes]


def _note_8a(found: Found) -> str:
    return (
        "No bar: no offer in any repetition. A winning price is a mean over the sales only, and can be above the mean "
        f"offer of a round that fewer resources or repetitions reached. {stand_in_note(found)}"
    )


FIGURES: Final = {
    "figure8a.png": Figure(
        title=f"Figure 8a {_PAPER}: Table 3 on Table 2, three rounds, means over repetitions",
        size=(12, 5.4),
        draw=_figure8a,
        legend=5,
        note=_note_8a,
    ),
    "figure8b.png": Figure(
        title=f"Figure 8b {_PAPER}: attractiveness of the resources over time",
        size=(11, 6),
        draw=_figure8b,
        note=stand_in_note,
    ),
    "figure9a.png": Figure(
        title=f"Figure 9a {_PAPER}: winners of Table 3's requests", size=(8, 4), draw=_figure9a, note=stand_in_note
    ),
    "figure9b.png": Figure(
        title=f"Figure 9b {_PAPER}: offers of four resources in the first round over time",
        size=(10, 5),
        draw=_figure9b,
        legend=4,
        note=lambda found: f"The paper does not say which four it shows. {stand_in_note(found)}",
    ),
    "figure10.png": Figure(
        title=f"Figure 10 {_PAPER}: mean offer between minimum and start price",
        size=(11, 5.4),
        draw=_figure10,
        note=stand_in_note,
    ),
}
