"""Pictures of the experiments beyond the Blue Gene/L allocation study, drawn from their result files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from simulation.plots.bluegene import COLOURS, MACHINE_TITLES, curve, new_figure, read_rows, save_figure

_LOGS: Final = ("CTC", "SDSC")
_SHAPES: Final = {"0.0": "slim", "0.5": "half fat", "1.0": "fat"}
_CONNECTIONS: Final = {"0.0": "meshes", "1.0": "tori"}


def draw_noncontiguous(source: Path, target: Path) -> None:
    """Utilisation with and without gaps at the highest load, one panel a log."""
    rows = read_rows(source)
    highest = max(row["load"] for row in rows)
    figure = new_figure(11, 4.4)
    for axes, log in zip(figure.subplots(1, 2, sharey=True), _LOGS, strict=True):
        labels = []
        position = 0
        for row in rows:
            if row["log"] != log or row["load"] != highest:
                continue
            colour = COLOURS[row["machine"]]
            contiguous, with_gaps = float(row["contiguous_percent"]), float(row["noncontiguous_percent"])
            axes.bar(position - 0.2, contiguous, width=0.4, color=colour, alpha=0.45)
            axes.bar(position + 0.2, with_gaps, width=0.4, color=colour)
            axes.annotate(
                f"{float(row['gain_points']):+.1f}",
                (position, max(contiguous, with_gaps) + 1.5),
                ha="center",
                fontsize=7,
            )
            labels.append(f"{_SHAPES[row['fat_probability']]}\n{_CONNECTIONS[row['torus_probability']]}")
            position += 1
        axes.set_xticks(range(position), labels, fontsize=7)
        axes.set_xlabel("workload")
        axes.set_ylabel("utilisation (%)")
        axes.set_ylim(0, 118)
        axes.set_title(f"{log}, offered load {highest}; numbers: gain in points", fontsize=10)
        for machine, colour in COLOURS.items():
            axes.bar(-9, 0, color=colour, alpha=0.45, label=f"{MACHINE_TITLES[machine]}, contiguous")
            axes.bar(-9, 0, color=colour, label=f"{MACHINE_TITLES[machine]}, with gaps")
        axes.set_xlim(-0.7, position - 0.3)
        axes.legend(frameon=False, fontsize=7, ncols=2, loc="upper center")
    save_figure(figure, target)


def draw_failed_links(source: Path, target: Path) -> None:
    """Utilisation (above) and refused work (below) over the share of broken cables, one column a workload."""
    rows = read_rows(source)
    figure = new_figure(13, 6)
    panels = figure.subplots(2, 4, sharex=True, sharey="row")
    columns = [(fat, torus) for fat in _CONNECTIONS for torus in _CONNECTIONS]
    for column, (fat, torus) in enumerate(columns):
        above, below = panels[0][column], panels[1][column]
        for log, style in zip(_LOGS, ("-", "--"), strict=True):
            for machine, colour in COLOURS.items():
                wanted = {"log": log, "machine": machine, "fat_probability": fat, "torus_probability": torus}
                label = f"{MACHINE_TITLES[machine]}, {log}"
                for axes, what in ((above, "utilisation"), (below, "refused_work")):
                    shares, values = curve(rows, "broken_share", what, **wanted)
                    percent = [100 * share for share in shares]
                    axes.plot(percent, values, style, color=colour, marker="o", markersize=3, label=label)
        above.set_title(f"{_SHAPES[fat]} {_CONNECTIONS[torus]}", fontsize=10)
        for axes in (above, below):
            axes.set_xscale("symlog", linthresh=0.25)
            axes.set_xticks([0, 0.25, 1, 5, 20], ["0", "0.25", "1", "5", "20"])
            axes.set_ylim(0, 102)
            axes.grid(visible=True, color="#e5e5e5", linewidth=0.6)
        below.set_xlabel("broken cables (% of all)")
    panels[0][0].set_ylabel("utilisation while jobs arrive (%)")
    panels[1][0].set_ylabel("work of jobs that fit nowhere (%)")
    panels[0][0].legend(frameon=False, fontsize=7, loc="lower left", handlelength=4)
    save_figure(figure, target)
