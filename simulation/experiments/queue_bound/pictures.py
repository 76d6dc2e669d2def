"""Pictures of the study of bounds on waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.queue_bound.goals import CALIBRATION_PICTURE, CLASS_COVERAGE, COVERAGE_PICTURE
from simulation.experiments.queue_bound.runs import DEADLINES_S, EASY, PLANNED, missing_logs
from simulation.experiments.result import Row, Rows, grouped
from simulation.plots.style import BLUE, GREEN, PAPER, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from simulation.experiments.study import Found

_COLOURS: Final = dict(zip(DEADLINES_S, (BLUE, VERMILION, GREEN), strict=True))
_BIN_JOBS: Final = 30
"""Jobs of a bin below which its share is chance."""
_STYLES: Final = {PLANNED: "-", "bmbp size-length": "--"}


def _wide_enough(row: Row) -> bool:
    return bool(row["waits"] == EASY and row["jobs"] >= _BIN_JOBS and row["predictor"] in _STYLES)


def _style(line: tuple[Any, ...], _: int) -> Mapping[str, Any]:
    predictor, within = line
    label = f"{predictor}, {within // 60} min"
    return {"color": _COLOURS[within], "linestyle": _STYLES[predictor], "marker": "o", "label": label}


def _as_stated(axes: Axes, _: Found, __: tuple[Any, ...], ___: Rows) -> None:
    axes.plot([0, 1], [0, 1], color=PAPER, linewidth=0.8, label="as stated")


def _goal(axes: Axes, _: Found, __: tuple[Any, ...], ___: Rows) -> None:
    axes.axhspan(*CLASS_COVERAGE, color=PAPER, alpha=0.12, label="goal")


def _size(table: str) -> Any:
    return lambda found: (max(3.6 * len(grouped(found[table], "log")), 8.6), 4.8)


def _note(found: Found) -> str:
    missing = missing_logs([case for cases in found.cases.values() for case in cases])
    return f"A synthetic workload in place of {', '.join(missing)}." if missing else ""


FIGURES: Final = {
    CALIBRATION_PICTURE: Figure(
        title="Chance that a waiting job starts in time",
        size=_size("reliability"),
        draw=Curves(
            table="reliability",
            x=Axis("chance", "chance stated"),
            y=(Axis("share", "share that started in time"),),
            panels=("log",),
            lines=("predictor", "within_s"),
            style=_style,
            where=_wide_enough,
            finish=_as_stated,
        ),
        note=lambda found: f"Bins of {_BIN_JOBS} jobs or more. {_note(found)}",
    ),
    COVERAGE_PICTURE: Figure(
        title="Waiting jobs that start within their bound",
        size=_size("classes"),
        draw=Curves(
            table="classes",
            x=Axis("class", "processors"),
            y=(Axis("coverage", "share of the waiting jobs"),),
            panels=("log",),
            lines=("predictor",),
            where=lambda row: bool(row["waits"] == EASY and row["kind"] == "size"),
            bottom=None,
            finish=_goal,
        ),
        legend=5,
        note=_note,
    ),
}
