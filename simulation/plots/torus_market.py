"""Pictures of the market on live torus machines, drawn from the result files."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Final

from matplotlib.axes import Axes

from simulation.plots.bluegene import Row, new_figure, read_rows, save_figure
from simulation.plots.market_style import footnote

_COLOURS: Final = ("#1f4e9c", "#7a5aa8", "#c44e1f", "#2f7d4f", "#a08020", "#444444")
_FAMILY_COLOURS: Final = (*_COLOURS, "#c060a0", "#40a0b0", "#905030")
_LIVE: Final = ("bluegene", "torus", "angara", "desmos")
"""Machines that live begin so; drawn as full lines, the flat ones dashed."""
_PRICINGS: Final = {"ramp": "paper's formula", "fragmentation": "with a price for fragmentation"}


def draw_torus_market(source: Path, sales: Path, target: Path, note: str) -> None:
    """Four panels: success over size, price over load, the machines' use, the wait of their own users' jobs.

    Args:
        source: table of the markets.
        sales: table of what was sold; resources whose workload stands in for a log end with a mark.
        target: picture to write.
        note: what the mark means.
    """
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
    footnote(figure, note)
    save_figure(figure, target)


def _draw_prices(axes: Axes, sales: list[Row]) -> None:
    """Price of every sale over the projected load at the time of the job, by machine, with the mean of each tenth.

    Resources of one kind (intrepid1 to intrepid6) are one curve.
    """
    kinds = sorted({_kind(row) for row in sales}, key=lambda kind: (kind not in _LIVE, kind))
    for kind, colour in zip(kinds, _FAMILY_COLOURS, strict=False):
        chosen = [(float(row["load"]), float(row["price"])) for row in sales if _kind(row) == kind]
        axes.plot(*zip(*chosen, strict=True), ".", color=colour, alpha=0.12, markersize=4)
        tenths: dict[int, list[float]] = {}
        for load, price in chosen:
            tenths.setdefault(min(9, int(load * 10)), []).append(price)
        means = [((tenth + 0.5) / 10, fmean(prices)) for tenth, prices in sorted(tenths.items())]
        axes.plot(*zip(*means, strict=True), "o-" if kind in _LIVE else "s--", color=colour, label=kind)
    axes.set_xlabel("projected load in the job's window")
    axes.set_ylabel("credits per core hour")
    axes.set_title("Price over load (means of tenths of load)", fontsize=10)
    axes.grid(visible=True, color="#e5e5e5", linewidth=0.6)
    axes.legend(frameon=False, fontsize=7)


def _kind(row: Row) -> str:
    """A resource's name without its number; the mark of a synthetic workload stays."""
    name = row["resource"].rstrip("*")
    return name.rstrip("0123456789") + row["resource"][len(name) :]


def draw_month(days: Path, target: Path) -> None:
    """A month on live tori, day by day: what own users and the market had of the machines, and what was paid."""
    rows = read_rows(days)
    figure = new_figure(10, 5.6)
    use, price = figure.subplots(2, 1, sharex=True)
    at = [int(row["day"]) for row in rows]
    own = [100 * float(row["background"]) for row in rows]
    sold = [100 * float(row["market"]) for row in rows]
    use.bar(at, own, color=_COLOURS[0], alpha=0.6, label="own users")
    use.bar(at, sold, bottom=own, color=_COLOURS[2], label="sold on the market")
    use.set_ylabel("% of the machines, mean")
    use.set_ylim(0, 100)
    use.set_title("Use of the machines", fontsize=10)
    paid = [(int(row["day"]), float(row["mean_price"])) for row in rows if row["mean_price"]]
    price.plot(*zip(*paid, strict=True), "o-", color=_COLOURS[1], label="price paid (credits per core hour)")
    price.plot(at, [float(row["requests"]) for row in rows], "s:", color=_COLOURS[5], label="requests")
    price.plot(at, [float(row["bought"]) for row in rows], "^:", color=_COLOURS[3], label="of them bought")
    price.set_ylim(0, None)
    price.set_xlabel("day")
    price.set_ylabel("credits per core hour; requests a day")
    price.set_title("Requests of each day, and mean price of what they bought", fontsize=10)
    for axes in (use, price):
        axes.grid(visible=True, axis="y", color="#e5e5e5", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(
            frameon=False, fontsize=8, ncols=3, loc="upper left", bbox_to_anchor=(0, -0.08 if axes is use else -0.2)
        )
    save_figure(figure, target)


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
