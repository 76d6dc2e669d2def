"""The goals of the study, beside what was reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulation.experiments.comparison import Comparison
from simulation.experiments.queue_bound.runs import DEADLINES_S, EASY, PLANNED
from simulation.experiments.queue_bound.scores import FEWEST
from simulation.experiments.result import Rows

CALIBRATION_PICTURE: Final = "calibration.png"
COVERAGE_PICTURE: Final = "coverage.png"

COVERAGE: Final = (0.95, 0.975)
CLASS_COVERAGE: Final = (0.945, 0.98)
MONTH_COVERAGE: Final = 0.93
LOSS_RATIO: Final = 0.5
MEDIAN_RATIO: Final = 0.6
CALIBRATION_ERROR: Final = 0.02
BRIER_RATIO: Final = 0.5
QUESTION_US: Final = 1000.0

_FEW: Final = "few jobs, or of one kind: the rule follows the share of misses in hundreds of jobs"
_NEAR: Final = "the plan tells less of this queue: requested times say little, or the queue is empty mostly"
_BUSY: Final = "measured on a busy or slow computer"


class _Goals:
    """Comparisons of one log with its goals."""

    def __init__(self, log: str) -> None:
        self.log = log
        self.found: list[Comparison] = []

    def between(self, what: str, ours: float, low: float, high: float, unit: str = "share") -> None:
        self._add(what, f"goal {low:g} to {high:g}", ours, unit, _FEW, COVERAGE_PICTURE, at_least=low, at_most=high)

    def at_most(self, what: str, ours: float, most: float, unit: str = "ratio", picture: str = "") -> None:
        self._add(what, f"goal {most:g}", ours, unit, _NEAR, picture, at_most=most)

    def at_least_month(self, ours: float) -> None:
        self._add(
            "least coverage of a month", f"goal {MONTH_COVERAGE:g}", ours, "share", _FEW, "", at_least=MONTH_COVERAGE
        )

    def _add(self, what: str, goal: str, ours: float, unit: str, why: str, picture: str, **limits: float) -> None:
        self.found.append(Comparison(f"{self.log}: {what}", goal, ours, unit, why=why, picture=picture, **limits))


def goals(log: str, tables: Mapping[str, Rows]) -> list[Comparison]:
    """Rows of a log under EASY."""
    rows = {
        name: [row for row in rows if row["log"] == log and row["waits"] == EASY]
        for name, rows in tables.items()
        if name in ("bounds", "classes", "chances")
    }
    bounds = {row["predictor"]: row for row in rows["bounds"]}
    if not bounds:
        return []
    ours = bounds[PLANNED]
    others = [row for name, row in bounds.items() if name != PLANNED]
    if ours["waiting_jobs"] < FEWEST:
        why = f"fewer than {FEWEST} jobs that wait tell nothing"
        return [Comparison(f"{log}: jobs that the plan lets wait", "", ours["waiting_jobs"], "jobs", why=why)]
    # nothing makes bounds of 0 as wide as ours
    medians = [row["median_scaled_s"] for row in others if row["median_scaled_s"] != ""]
    median = ours["median_bound_s"] / min(medians) if medians else 0.0
    late = Comparison(
        f"{log}: planned at once, but late", "none", ours["late_at_once"], "jobs", at_most=0, why="another rule"
    )
    found = _Goals(log)
    found.between("coverage of the jobs that wait", ours["coverage_waiting"], *COVERAGE)
    _classes(found, rows["classes"])
    found.at_most("loss over the best bmbp's", ours["loss_s"] / min(row["loss_s"] for row in others), LOSS_RATIO)
    found.at_most("median bound of the jobs that wait over the best bmbp's at one coverage", median, MEDIAN_RATIO)
    _chances(found, rows["chances"])
    return [late, *found.found]


def _classes(found: _Goals, rows: Rows) -> None:
    mine = [row for row in rows if row["predictor"] == PLANNED]
    sizes, in_months = ([row["coverage"] for row in mine if row["kind"] == kind] for kind in ("size", "month"))
    if sizes:
        found.between("least coverage of a class of sizes", min(sizes), *CLASS_COVERAGE)
        found.between("most coverage of a class of sizes", max(sizes), *CLASS_COVERAGE)
    if in_months:
        found.at_least_month(min(in_months))


def _chances(found: _Goals, rows: Rows) -> None:
    for within in DEADLINES_S:
        here = {row["predictor"]: row for row in rows if row["within_s"] == within}
        ours = here.pop(PLANNED, None)
        if ours is None or not here:
            continue
        minutes = within // 60
        found.at_most(
            f"calibration error of a start within {minutes} min", ours["calibration_error"], CALIBRATION_ERROR,
            "probability", CALIBRATION_PICTURE,
        )  # fmt: skip
        if within != DEADLINES_S[-1]:
            ratio = ours["brier"] / min(row["brier"] for row in here.values())
            found.at_most(f"Brier score within {minutes} min over the best bmbp's", ratio, BRIER_RATIO)


def cost_goal(costs: Rows) -> list[Comparison]:
    """What a question costs at 1 000 waiting jobs."""
    return [
        Comparison(
            f"{row['what']}, {row['waiting']} waiting",
            f"goal {QUESTION_US / 1000:g}",
            row["microseconds"] / 1000,
            "ms",
            at_most=QUESTION_US / 1000 if row["waiting"] == 1000 else None,
            why=_BUSY if row["waiting"] == 1000 else "no goal for so many",
        )
        for row in costs
    ]
