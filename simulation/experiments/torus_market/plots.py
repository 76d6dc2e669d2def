"""Pictures of the market on live torus machines, drawn from the result files."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from simulation.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
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

_BEYOND: Final = "Beyond Zasada and Coveney:"
_SHARE_COLOURS: Final = (BLUE, ORANGE, VERMILION)
_SHARE_MARKERS: Final = ("o", "^", "s")
_KIND_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*", "<")
_KIND_COLOURS: Final = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY, "#333333", "#8a6d00")
_LIVE: Final = ("bluegene", "torus", "angara", "desmos")
"""Machines that live begin so; drawn as full lines, the flat ones dashed."""
_PRICINGS: Final = {"ramp": "paper's formula", "fragmentation": "with a price for fragmentation"}
_PRICING_COLOURS: Final = (BLUE, VERMILION)


def draw_torus_market(source: Path, sales: Path, target: Path, note: str, *, quick: bool) -> None:
    """Six panels: success, price, own users' and market's use of the live machines, wait of own users' jobs, legend."""
    rows = read_rows(source)
    shares = sorted({row["torus_share"] for row in rows}, key=float)
    figure = new_figure(
        12, 8, f"{_BEYOND} a market with live tori, by size and torus share of the requests", quick=quick
    )
    success, own, market, wait, price, names = figure.subplots(2, 3).flat
    panels = (
        (success, "success_rate", 100.0, "Requests that were bought", "share of the requests (%)"),
        (own, "background", 100.0, "Live machines: used by their own users", "share of the machines (%), mean"),
        (market, "market", 100.0, "Live machines: sold on the market", "share of the machines (%), mean"),
        (wait, "mean_wait_h", 1.0, "Wait of the live machines' own jobs", "mean wait (hours)"),
    )
    for axes, column, scale, title, label in panels:
        for share, colour, marker in zip(shares, _SHARE_COLOURS, _SHARE_MARKERS, strict=False):
            chosen = sorted((row for row in rows if row["torus_share"] == share), key=lambda row: int(row["cores"]))
            sizes = [int(row["cores"]) for row in chosen]
            values = [scale * float(row[column]) for row in chosen]
            axes.plot(
                sizes, values, f"{marker}-", color=colour, label=f"{float(share):.0%} of the requests want a torus"
            )
        axes.set_xscale("log", base=2)
        sizes = sorted({int(row["cores"]) for row in rows})
        axes.set_xticks(sizes, [str(size) for size in sizes], fontsize=8, rotation=30)
        axes.set_xlabel("size of the requests (cores)")
        axes.set_ylabel(label)
        axes.set_title(title, fontsize=10)
        axes.set_ylim(0, 1.1 * max(axes.dataLim.ymax, 0.1))
        quiet_grid(axes)
    _draw_prices(price, read_rows(sales))
    names.set_axis_off()
    names.legend(
        *price.get_legend_handles_labels(),
        frameon=False,
        fontsize=8,
        loc="center left",
        title="sellers (full: live tori)",
    )
    legend_below(figure, success, columns=len(shares))
    footnote(figure, note)
    save_figure(figure, target)


def _draw_prices(axes: Axes, sales: list[Row]) -> None:
    """Price of every sale over the projected load at the time of the job, by machine, with the mean of each tenth.

    Resources of one kind (intrepid1 to intrepid6) are one curve.
    """
    kinds = sorted({_kind(row) for row in sales}, key=lambda kind: (not kind.startswith(_LIVE), kind))
    for kind, colour, marker in zip(kinds, _KIND_COLOURS, _KIND_MARKERS, strict=False):
        chosen = [(float(row["load"]), float(row["price"])) for row in sales if _kind(row) == kind]
        axes.plot(*zip(*chosen, strict=True), ".", color=colour, alpha=0.12, markersize=4)
        tenths: dict[int, list[float]] = {}
        for load, price in chosen:
            tenths.setdefault(min(9, int(load * 10)), []).append(price)
        means = [((tenth + 0.5) / 10, fmean(prices)) for tenth, prices in sorted(tenths.items())]
        style = "-" if kind.startswith(_LIVE) else "--"
        axes.plot(*zip(*means, strict=True), style, marker=marker, markersize=4, color=colour, label=kind)
    axes.set_xlabel("projected load in the job's window (share of the cores)")
    axes.set_ylabel("price (credits per core hour)")
    axes.set_title("Price over load: sales, and means of tenths of load", fontsize=10)
    quiet_grid(axes)


def _kind(row: Row) -> str:
    """A resource's name without its number, and whether its workload is a stand-in."""
    kind = row["resource"].rstrip("0123456789")
    return f"{kind} (stand-in)" if row["workload"] == "stand-in" else kind


def draw_month(days: Path, target: Path, *, quick: bool) -> None:
    """A month on live tori, day by day: use of the machines, requests, and what was paid, a panel each."""
    rows = read_rows(days)
    figure = new_figure(10, 7.6, f"{_BEYOND} {len(rows)} days of market on five live tori", quick=quick)
    use, requests, price = figure.subplots(3, 1, sharex=True)
    at = [int(row["day"]) for row in rows]
    own = [100 * float(row["background"]) for row in rows]
    sold = [100 * float(row["market"]) for row in rows]
    use.bar(at, own, color=BLUE, label="own users")
    use.bar(at, sold, bottom=own, color=ORANGE, label="sold on the market")
    use.set_ylabel("mean share (%)")
    use.set_ylim(0, 100)
    use.set_title("Use of the machines", fontsize=10)
    made = [int(row["requests"]) for row in rows]
    bought = [int(row["bought"]) for row in rows]
    requests.bar(at, bought, color=GREEN, label="bought")
    requests.bar(at, [all_ - some for all_, some in zip(made, bought, strict=True)], bottom=bought, color="#cccccc",
        label="not bought")  # fmt: skip
    requests.set_ylabel("requests of the day")
    requests.set_title("Requests", fontsize=10)
    paid = [(int(row["day"]), float(row["mean_price"])) for row in rows if row["mean_price"]]
    price.plot(*zip(*paid, strict=True), "o-", color=VERMILION)
    price.set_ylim(0, 1.1 * max(value for _, value in paid))
    price.set_xlabel("day")
    price.set_ylabel("credits per core hour")
    price.set_title("Mean price of what was bought", fontsize=10)
    for axes in (use, requests, price):
        quiet_grid(axes)
    for axes in (use, requests):
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save_figure(figure, target)


def draw_fragmentation(source: Path, target: Path, *, quick: bool) -> None:
    """Both strategies side by side for each rate of requests; points are seeds, bars their means."""
    rows = read_rows(source)
    rates = sorted({row["requests_a_day"] for row in rows}, key=float)
    figure = new_figure(12, 4.4, f"{_BEYOND} a price for fragmentation on live tori", quick=quick)
    measures = (
        ("success_rate", "Requests bought", "share of the requests (%)", 100.0),
        ("mean_price", "Price", "credits per core hour", 1.0),
        ("market", "Sold", "share of the machines (%)", 100.0),
        ("background", "Own users", "share of the machines (%)", 100.0),
    )
    panels = figure.subplots(1, 4)
    for axes, (measure, title, label, scale) in zip(panels, measures, strict=True):
        for number, (pricing, name) in enumerate(_PRICINGS.items()):
            colour = _PRICING_COLOURS[number]
            for place, rate in enumerate(rates):
                values = [
                    scale * float(row[measure])
                    for row in rows
                    if row["pricing"] == pricing and row["requests_a_day"] == rate and row[measure]
                ]
                where = place + 0.4 * number - 0.2
                bar = f"{name}, mean" if place == 0 else None
                axes.bar(where, fmean(values), width=0.38, color=colour, alpha=0.5, label=bar)
                dots = "each seed" if place == 0 and number == 0 else None
                axes.plot([where] * len(values), values, "o", color="black", markersize=3, label=dots)
        axes.set_xticks(range(len(rates)), [f"{float(rate):g}" for rate in rates])
        axes.set_xlabel("requests a day")
        axes.set_ylabel(label)
        axes.set_title(title, fontsize=10)
        quiet_grid(axes)
    legend_below(figure, panels[0], columns=3)
    save_figure(figure, target)
