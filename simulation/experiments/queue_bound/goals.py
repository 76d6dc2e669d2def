"""The goals of the study, beside what was reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from simulation.experiments.comparison import Comparison
from simulation.experiments.queue_bound.runs import DEADLINES_S, EASY, PLANNED, Row
from simulation.experiments.queue_bound.scores import FEWEST

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


def goals(log: str, tables: dict[str, list[Row]]) -> list[Comparison]:
    """Rows of a log under EASY."""
    rows = {
        name: [row for row in rows if row["log"] == log and row.get("waits") == EASY] for name, rows in tables.items()
    }
    bounds = {row["predictor"]: row for row in rows["bounds"]}
    if not bounds:
        return []
    ours = bounds[PLANNED]
    others = [row for name, row in bounds.items() if name != PLANNED]
    if ours["waiting_jobs"] < FEWEST:
        why = f"fewer than {FEWEST} jobs that wait tell nothing"
        return [Comparison(f"{log}: jobs that the plan lets wait", "", ours["waiting_jobs"], "jobs", why=why)]
    loss = ours["loss_s"] / min(row["loss_s"] for row in others)
    # nothing makes bounds of 0 as wide as ours
    medians = [row["median_scaled_s"] for row in others if row["median_scaled_s"] != ""]
    median = ours["median_bound_s"] / min(medians) if medians else 0.0
    low, high = COVERAGE
    return [
        Comparison(
            f"{log}: planned at once, but late", "none", ours["late_at_once"], "jobs", at_most=0, why="another rule"
        ),
        Comparison(
            f"{log}: coverage of the jobs that wait",
            f"goal {low:g} to {high:g}",
            ours["coverage_waiting"],
            "share",
            at_least=low,
            at_most=high,
            why=_FEW,
            picture=COVERAGE_PICTURE,
        ),
        *_classes(log, rows["classes"]),
        Comparison(
            f"{log}: loss over the best bmbp's", f"goal {LOSS_RATIO:g}", loss, "ratio", at_most=LOSS_RATIO, why=_NEAR
        ),
        Comparison(
            f"{log}: median bound of the jobs that wait over the best bmbp's at one coverage",
            f"goal {MEDIAN_RATIO:g}",
            median,
            "ratio",
            at_most=MEDIAN_RATIO,
            why=_NEAR,
        ),
        *_chances(log, rows["chances"]),
    ]


def _classes(log: str, rows: Sequence[Row]) -> list[Comparison]:
    """The worst class of sizes on either side, and the worst month."""
    found = []
    mine = [row for row in rows if row["predictor"] == PLANNED]
    sizes = [row["coverage"] for row in mine if row["kind"] == "size"]
    low, high = CLASS_COVERAGE
    if sizes:
        for words, value in (("least", min(sizes)), ("most", max(sizes))):
            found.append(
                Comparison(
                    f"{log}: {words} coverage of a class of sizes",
                    f"goal {low:g} to {high:g}",
                    value,
                    "share",
                    at_least=low,
                    at_most=high,
                    why=_FEW,
                    picture=COVERAGE_PICTURE,
                )
            )
    in_months = [row["coverage"] for row in mine if row["kind"] == "month"]
    if in_months:
        found.append(
            Comparison(
                f"{log}: least coverage of a month",
                f"goal {MONTH_COVERAGE:g}",
                min(in_months),
                "share",
                at_least=MONTH_COVERAGE,
                why=_FEW,
            )
        )
    return found


def _chances(log: str, rows: Sequence[Row]) -> list[Comparison]:
    found = []
    for within in DEADLINES_S:
        here = {row["predictor"]: row for row in rows if row["within_s"] == within}
        ours = here.pop(PLANNED, None)
        if ours is None or not here:
            continue
        found.append(
            Comparison(
                f"{log}: calibration error of a start within {within // 60} min",
                f"goal {CALIBRATION_ERROR:g}",
                ours["calibration_error"],
                "probability",
                at_most=CALIBRATION_ERROR,
                why=_NEAR,
                picture=CALIBRATION_PICTURE,
            )
        )
        if within != DEADLINES_S[-1]:
            ratio = ours["brier"] / min(row["brier"] for row in here.values())
            found.append(
                Comparison(
                    f"{log}: Brier score within {within // 60} min over the best bmbp's",
                    f"goal {BRIER_RATIO:g}",
                    ratio,
                    "ratio",
                    at_most=BRIER_RATIO,
                    why=_NEAR,
                )
            )
    return found


def cost_goal(costs: Sequence[dict[str, Any]]) -> list[Comparison]:
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
