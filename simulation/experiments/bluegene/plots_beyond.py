"""Pictures of the experiments beyond the Blue Gene/L allocation study, drawn from their result files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from simulation.experiments.bluegene.plots import COLOURS, MACHINE_TITLES
from simulation.plots.style import curve, footnote, legend_below, new_figure, quiet_grid, read_rows, save_figure

_LOGS: Final = ("CTC", "SDSC")
_SHAPES: Final = {"0.0": "slim", "0.5": "half fat", "1.0": "fat"}
_CONNECTIONS: Final = {"0.0": "meshes", "1.0": "tori"}
_PALE: Final = 0.4


def draw_noncontiguous(source: Path, target: Path, *, quick: bool) -> None:
    """Utilisation with and without gaps at the highest load, one panel a log."""
    from matplotlib.patches import Patch

    rows = read_rows(source)
    highest = max(row["load"] for row in rows)
    title = f"Beyond Aridor and others 2005: sets of midplanes with gaps, offered load {highest}"
    figure = new_figure(11, 4.8, title, quick=quick)
    for axes, log in zip(figure.subplots(1, 2, sharey=True), _LOGS, strict=True):
        labels = []
        position = 0
        for row in rows:
            if row["log"] != log or row["load"] != highest:
                continue
            colour = COLOURS[row["machine"]]
            contiguous, with_gaps = float(row["contiguous_percent"]), float(row["noncontiguous_percent"])
            axes.bar(position - 0.2, contiguous, width=0.4, color=colour, alpha=_PALE)
            axes.bar(position + 0.2, with_gaps, width=0.4, color=colour)
            gain, top = f"{float(row['gain_points']):+.1f}", max(contiguous, with_gaps)
            axes.annotate(gain, (position, top + 1), ha="center", fontsize=7)
            labels.append(f"{_SHAPES[row['fat_probability']]}\n{_CONNECTIONS[row['torus_probability']]}")
            position += 1
        axes.set_xticks(range(position), labels, fontsize=7)
        axes.set_xlabel("shapes and connections of the jobs")
        axes.set_ylim(0, 100)
        axes.set_title(f"{log} (numbers: gain in points)", fontsize=10)
        axes.set_xlim(-0.7, position - 0.3)
        quiet_grid(axes)
    figure.axes[0].set_ylabel("utilisation (%)")
    handles = [
        Patch(color=colour, alpha=alpha, label=f"{MACHINE_TITLES[machine]}, {words}")
        for machine, colour in COLOURS.items()
        for alpha, words in ((_PALE, "contiguous"), (1.0, "with gaps"))
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    save_figure(figure, target)


def draw_failed_links(source: Path, target: Path, *, quick: bool) -> None:
    """Utilisation (above) and refused work (below) over the share of broken cables, one column a workload."""
    rows = read_rows(source)
    figure = new_figure(13, 6.6, "Beyond Aridor and others 2005: broken cables, full load", quick=quick)
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
            quiet_grid(axes)
        below.set_xlabel("broken cables (% of all)")
    panels[0][0].set_ylabel("utilisation while jobs arrive (%)\nby the jobs that still fit somewhere")
    panels[1][0].set_ylabel("work of jobs that fit nowhere\nand drop out (%)")
    legend_below(figure, panels[0][0], columns=4)
    footnote(
        figure,
        "Jobs whose shape fits nowhere drop out, and those that are left may use the machine better: where the lower "
        "curves rise, the upper ones may rise as well.",
    )
    save_figure(figure, target)
