"""Picture of the experiment on rounds of bidding, drawn from its result files."""

from __future__ import annotations

from pathlib import Path

from simulation.plots.style import (
    BLUE,
    PAPER,
    SERIES,
    footnote,
    legend_below,
    new_figure,
    quiet_grid,
    read_rows,
    save_figure,
)

_MARKERS = ("o", "v", "^", "D")


def draw_rounds(source: Path, series: Path, target: Path, mode: str, note: str, *, quick: bool) -> None:
    """Figure 11a: sale price and duration over the number of rounds, the paper's beside ours.

    Both durations have a linear axis of their own, as the paper's are hundreds of times longer. `series` is the file
    that says how far each request is from the paper.
    """
    rows = read_rows(source)
    title = "Figure 11a and Table 4 of Zasada and Coveney: rounds of bidding"
    figure = new_figure(12, 5.6, title, quick=quick, mode=mode)
    left, right = figure.subplots(1, 2)
    paper = {int(row["rounds"]): (float(row["paper_price"]), float(row["paper_duration_s"])) for row in rows}
    rounds = sorted(paper)
    left.plot(rounds, [paper[one][0] for one in rounds], color=PAPER, marker="s", linewidth=2, label="paper (Table 4)")
    for each, colour, marker in zip(read_rows(series), SERIES, _MARKERS, strict=False):
        mine = [row for row in rows if row["request"] == each["request"]]
        left.errorbar(
            [int(row["rounds"]) for row in mine],
            [float(row["price"]) for row in mine],
            yerr=[float(row["price_sd"]) for row in mine],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.2,
            capsize=2,
            label=f"{each['request']} (root mean square {float(each['root_mean_square']):.1f})",
        )
    left.set_ylim(0, 80)
    left.set_ylabel("sale price (credits per core hour)")
    left.set_title("Price, mean and standard deviation; the requests are readings", fontsize=10)
    ours = right.twinx()
    durations = [paper[one][1] for one in rounds]
    (of_paper,) = right.plot(rounds, durations, color=PAPER, marker="s", label="paper: rounds of 15 s (left axis)")
    first = [row for row in rows if row["request"] == rows[0]["request"]]
    of_ours = ours.errorbar(
        [int(row["rounds"]) for row in first],
        [float(row["duration_s"]) for row in first],
        yerr=[float(row["duration_sd_s"]) for row in first],
        color=BLUE,
        marker="o",
        capsize=3,
        label=f"ours, {first[0]['request']}: rounds close with the last answer (right axis)",
    )
    right.set_ylabel("duration of the paper's auction (s)")
    ours.set_ylabel("duration of our auction (s)", color=BLUE)
    ours.tick_params(axis="y", colors=BLUE)
    right.set_ylim(0, 160)
    ours.set_ylim(bottom=0)
    right.set_title("Duration", fontsize=10)
    right.legend(handles=[of_paper, of_ours], frameon=False, fontsize=8, loc="upper left")
    for axes in (left, right):
        axes.set_xlabel("rounds of bidding")
        axes.set_xticks(rounds)
        quiet_grid(axes)
    legend_below(figure, left, columns=3)
    footnote(figure, note)
    save_figure(figure, target)
