"""Pictures of the study of bounds on waits, drawn from its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from simulation.experiments.queue_bound.goals import CLASS_COVERAGE
from simulation.experiments.queue_bound.runs import DEADLINES_S, EASY, PLANNED
from simulation.plots.style import (
    BLUE,
    GREEN,
    PAPER,
    SERIES,
    VERMILION,
    footnote,
    legend_below,
    new_figure,
    quiet_grid,
    read_rows,
    save_figure,
)

_COLOURS: Final = dict(zip(DEADLINES_S, (BLUE, VERMILION, GREEN), strict=True))
_BIN_JOBS: Final = 30
"""Jobs of a bin below which its share is chance."""
_STYLES: Final = {PLANNED: "-", "bmbp size-length": "--"}


def draw_calibration(source: Path, target: Path, *, quick: bool, note: str) -> None:
    """Share of the waiting jobs that started in time, over the chance that was stated; one panel a log under EASY."""
    rows = [row for row in read_rows(source) if row["waits"] == EASY and int(row["jobs"]) >= _BIN_JOBS]
    logs = sorted({row["log"] for row in rows})
    figure = new_figure(max(3.6 * len(logs), 8.6), 4.8, "Chance that a waiting job starts in time", quick=quick)
    panels = figure.subplots(1, max(len(logs), 1), sharey=True, squeeze=False)[0]
    for axes, log in zip(panels, logs, strict=False):
        axes.plot([0, 1], [0, 1], color=PAPER, linewidth=0.8, label="as stated")
        for predictor, style in _STYLES.items():
            for within, colour in _COLOURS.items():
                wanted = (log, predictor, str(within))
                points = [row for row in rows if (row["log"], row["predictor"], row["within_s"]) == wanted]
                chance, share = ([float(row[column]) for row in points] for column in ("chance", "share"))
                label = f"{predictor}, {within // 60} min"
                axes.plot(chance, share, style, color=colour, marker="o", markersize=3, label=label)
        axes.set_title(log, fontsize=9)
        axes.set_xlabel("chance stated")
        quiet_grid(axes)
    panels[0].set_ylabel("share that started in time")
    legend_below(figure, *panels, columns=3)
    footnote(figure, f"Bins of {_BIN_JOBS} jobs or more. {note}")
    save_figure(figure, target)


def draw_coverage(source: Path, target: Path, *, quick: bool, note: str) -> None:
    """Share of the waiting jobs within their bound by size, one panel a log under EASY."""
    rows = [row for row in read_rows(source) if row["waits"] == EASY and row["kind"] == "size"]
    logs = sorted({row["log"] for row in rows})
    figure = new_figure(max(3.6 * len(logs), 8.6), 4.8, "Waiting jobs that start within their bound", quick=quick)
    panels = figure.subplots(1, max(len(logs), 1), sharey=True, squeeze=False)[0]
    for axes, log in zip(panels, logs, strict=False):
        here = [row for row in rows if row["log"] == log]
        classes = list(dict.fromkeys(row["class"] for row in here))
        axes.axhspan(*CLASS_COVERAGE, color=PAPER, alpha=0.12, label="goal")
        for predictor, colour in zip(dict.fromkeys(row["predictor"] for row in here), SERIES, strict=False):
            covered = {row["class"]: float(row["coverage"]) for row in here if row["predictor"] == predictor}
            places = [place for place, name in enumerate(classes) if name in covered]
            axes.plot(places, [covered[classes[place]] for place in places], "o-", color=colour, label=predictor)
        axes.set_xticks(range(len(classes)), classes, fontsize=7, rotation=30)
        axes.set_xlabel("processors")
        axes.set_title(log, fontsize=9)
        quiet_grid(axes)
    panels[0].set_ylabel("share of the waiting jobs")
    legend_below(figure, *panels, columns=5)
    footnote(figure, note)
    save_figure(figure, target)
