"""Pictures of the market on live torus machines, drawn from the result files."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Final

from matplotlib.axes import Axes

from simulation.plots.bluegene import Row, new_figure, read_rows, save_figure

_COLOURS: Final = ("#1f4e9c", "#7a5aa8", "#c44e1f", "#2f7d4f", "#a08020", "#444444")
_PRICINGS: Final = {"ramp": "paper's formula", "fragmentation": "with a price for fragmentation"}


def draw_torus_market(source: Path, sales: Path, target: Path) -> None:
    """Four panels: success over size, price over load, the machines' use, the wait of their own users' jobs."""
    rows = read_rows(source)
    shares = sorted({row["torus_share"] for row in rows}, key=float)
    figure = new_figure(11, 8)
    success, price, use, wait = figure.subplots(2, 2).flat
    for share, colour in zip(shares, _COLOURS, strict=False):
        chosen = sorted((row for row in rows if row["torus_share"] == share), key=lambda row: int(row["cores"]))
        sizes = [int(row["cores"]) for row in chosen]
        label = f"{float(share):.0%} tori"
        success.plot(sizes, [100 * float(row["success_rate"]) for row in chosen], "o-", color=colour, label=label)
        use.plot(
            sizes, [100 * float(row["background"]) for row in chosen], "s--", color=colour, label=f"users, {label}"
        )
        use.plot(sizes, [100 * float(row["market"]) for row in chosen], "o-", color=colour, label=f"market, {label}")
        wait.plot(sizes, [float(row["mean_wait_h"]) for row in chosen], "o-", color=colour, label=label)
    _draw_prices(price, read_rows(sales))
    for axes, title, unit in (
        (success, "Requests that were bought", "%"),
        (use, "Use of the live machines", "% of the machine, mean"),
        (wait, "Wait of the machines' own jobs", "h, mean"),
    ):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("size of the requests (cores)")
        axes.set_ylabel(unit)
        axes.set_title(title, fontsize=10)
        axes.set_ylim(0, 1.08 * axes.dataLim.ymax)
        axes.grid(visible=True, color="#e5e5e5", linewidth=0.6)
        axes.legend(frameon=False, fontsize=7)
    save_figure(figure, target)


def _draw_prices(axes: Axes, sales: list[Row]) -> None:
    """Price of every sale over the projected load at the time of the job, by machine, with the mean of each tenth."""
    names = sorted({row["resource"] for row in sales})
    for name, colour in zip(names, _COLOURS, strict=False):
        chosen = [(float(row["load"]), float(row["price"])) for row in sales if row["resource"] == name]
        axes.plot(*zip(*chosen, strict=True), ".", color=colour, alpha=0.12, markersize=4)
        tenths: dict[int, list[float]] = {}
        for load, price in chosen:
            tenths.setdefault(min(9, int(load * 10)), []).append(price)
        means = [((tenth + 0.5) / 10, fmean(prices)) for tenth, prices in sorted(tenths.items())]
        axes.plot(*zip(*means, strict=True), "o-", color=colour, label=name)
    axes.set_xlabel("projected load in the job's window")
    axes.set_ylabel("credits per core hour")
    axes.set_title("Price over load (means of tenths of load)", fontsize=10)
    axes.grid(visible=True, color="#e5e5e5", linewidth=0.6)
    axes.legend(frameon=False, fontsize=7)


def draw_fragmentation(source: Path, target: Path) -> None:
    """Both strategies side by side for each rate of requests; points are seeds, bars their means."""
    rows = read_rows(source)
    rates = sorted({row["requests_a_day"] for row in rows}, key=float)
    figure = new_figure(12, 3.8)
    measures = (
        ("success_rate", "Requests bought (%)", 100.0),
        ("mean_price", "Price (credits per core hour)", 1.0),
        ("market", "Sold (% of the machines)", 100.0),
        ("background", "Own users (% of the machines)", 100.0),
    )
    for axes, (measure, title, scale) in zip(figure.subplots(1, 4), measures, strict=True):
        for number, (pricing, label) in enumerate(_PRICINGS.items()):
            colour = _COLOURS[2 * number]
            for place, rate in enumerate(rates):
                values = [
                    scale * float(row[measure])
                    for row in rows
                    if row["pricing"] == pricing and row["requests_a_day"] == rate and row[measure]
                ]
                where = place + 0.4 * number - 0.2
                axes.bar(where, fmean(values), width=0.38, color=colour, alpha=0.5, label=label if place == 0 else None)
                axes.plot([where] * len(values), values, ".", color=colour)
        axes.set_xticks(range(len(rates)), [f"{float(rate):g}" for rate in rates])
        axes.set_xlabel("requests a day")
        axes.set_title(title, fontsize=10)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    save_figure(figure, target)
