"""Picture of the experiment on rounds of bidding, drawn from its result file."""

from __future__ import annotations

from pathlib import Path

from simulation.plots.bluegene import new_figure, read_rows, save_figure
from simulation.plots.market_style import OURS, PAPER, footnote, quiet_grid


def draw_rounds(source: Path, target: Path, mode: str, note: str) -> None:
    """Figure 11a: sale price and duration over the number of rounds, the paper's beside ours.

    Args:
        source: `table4.csv`.
        target: the picture.
        mode: how the markets were run.
        note: stands below.
    """
    rows = read_rows(source)
    rounds = [int(row["rounds"]) for row in rows]
    figure = new_figure(11, 4.6)
    left, right = figure.subplots(1, 2)
    left.plot(rounds, [float(row["paper_price"]) for row in rows], color=PAPER, marker="s", label="paper (Table 4)")
    left.errorbar(
        rounds,
        [float(row["price"]) for row in rows],
        yerr=[float(row["price_sd"]) for row in rows],
        color=OURS,
        marker="o",
        capsize=3,
        label=f"ours ({mode}), mean and standard deviation",
    )
    best = [float(row["best_acceptable"]) for row in rows]
    left.step(rounds, best, where="mid", color="#5b8c3a", linestyle="--", label="best price a seller would accept")
    left.set_ylim(0, 80)
    left.set_ylabel("sale price (credits per core hour)")
    left.set_title("Price", fontsize=10)
    right.plot(
        rounds, [float(row["paper_duration_s"]) for row in rows], color=PAPER, marker="s", label="paper: rounds of 15 s"
    )
    right.errorbar(
        rounds,
        [float(row["duration_s"]) for row in rows],
        yerr=[float(row["duration_sd_s"]) for row in rows],
        color=OURS,
        marker="o",
        capsize=3,
        label=f"ours ({mode}): rounds close with the last answer",
    )
    right.set_yscale("log")
    right.set_ylim(0.01, 400)
    right.set_ylabel("duration of the auction (s, logarithmic)")
    right.set_title("Duration", fontsize=10)
    for axes in (left, right):
        axes.set_xlabel("rounds of bidding")
        axes.set_xticks(rounds)
        quiet_grid(axes)
        axes.legend(frameon=False, fontsize=8)
    footnote(figure, f"Intrepid's machines: {note}")
    save_figure(figure, target)
