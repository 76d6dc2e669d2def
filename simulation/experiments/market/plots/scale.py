"""Picture of the experiment on growing markets, drawn from its result file."""

from __future__ import annotations

from pathlib import Path

from simulation.plots.style import (
    SERIES,
    footnote,
    legend_below,
    new_figure,
    plain_log_scale,
    quiet_grid,
    read_rows,
    save_figure,
)

_PANELS = (
    ("cpu_ms_per_auction", "CPU time of one auction (ms)", "Cost of an auction"),
    ("cpu_us_per_answer", "CPU time for one resource's answer (µs)", "Cost of an answer"),
)


def draw_scale(source: Path, target: Path, mode: str, note: str, *, quick: bool) -> None:
    """CPU time of an auction and of an answer over the number of resources, one line a number of users."""
    from matplotlib.ticker import NullLocator

    rows = read_rows(source)
    figure = new_figure(11, 5.2, "Beyond Zasada and Coveney: growing markets", quick=quick, mode=mode)
    panels = figure.subplots(1, 2)
    everyone = sorted({int(row["users"]) for row in rows})
    for axes, (column, label, title) in zip(panels, _PANELS, strict=True):
        for users, colour in zip(everyone, SERIES, strict=False):
            points = sorted((int(row["resources"]), float(row[column])) for row in rows if int(row["users"]) == users)
            name = f"{users} users" if users > 1 else "1 user"
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=name)
        axes.set_xscale("log")
        if column == "cpu_ms_per_auction":
            values = [float(row[column]) for row in rows]
            plain_log_scale(axes, min(values), max(values))
        else:
            axes.set_ylim(bottom=0)
        counts = sorted({int(row["resources"]) for row in rows})
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("resources in the market")
        axes.set_ylabel(label)
        axes.set_title(title, fontsize=10)
        quiet_grid(axes)
    legend_below(figure, panels[0], columns=len(everyone))
    footnote(figure, f"All users ask at once, one unit each, one round of bidding. {note}")
    save_figure(figure, target)
