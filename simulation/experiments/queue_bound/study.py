"""Bounds on waits in queues: how often they hold, and how tight they are.

Sources: J. Brevik, D. Nurmi and R. Wolski (PPoPP 2006), D. Nurmi and others (QBETS, JSSPP 2007; VARQ, HPDC 2008) for
`bmbp`; `ramp.queue_bound.predictors.planned` for `planned`. Every log is replayed by EASY on a flat machine of its
size, and once more with the waits that it states, of which nobody knows by what rule the site's scheduler decided.
Predictors see submissions and starts in their order, and are scored on the jobs for which all of them knew a bound.

Options were chosen on SDSC-SP2 and CTC-SP2; the other logs are reported. One reading was chosen afterwards: the
finer size classes above 64 processors were kept when Curie's loss had been seen to fall by 5 % (the other two do not
change).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ramp.queue_bound.queue_plan import JobShape
from simulation.experiments.comparison import Comparison
from simulation.experiments.queue_bound.goals import cost_goal, goals
from simulation.experiments.queue_bound.pictures import FIGURES
from simulation.experiments.queue_bound.runs import (
    DEADLINES_S,
    EASY,
    QUANTILE,
    RECORDED,
    Setting,
    crowded_plan,
    missing_logs,
    named_log,
    run_setting,
)
from simulation.experiments.result import Column, Columns
from simulation.experiments.study import RUNS, Found, Row, Rows, Run, Shown, Study
from simulation.workload.logs import find_log, known_logs

TUNED_ON: Final = ("SDSC-SP2-1998-4.2-cln", "CTC-SP2-1996-3.1-cln")
GOAL_LOGS: Final = (*TUNED_ON, "CEA-Curie-2011-2.1-cln")
QUICK_JOBS: Final = 6_000
LONG_QUEUES: Final[Mapping[str, int]] = {"RICC-2010-2": 60_000}
"""Jobs that are taken of logs with queues of thousands, where planning all takes hours (`--log RICC-2010-2` does)."""
CROWDS: Final = (100, 1_000)
_REPEATS: Final = 21

_COLUMNS: Final[Columns] = {
    "log": Column("", "of the Parallel Workloads Archive"),
    "waits": Column("", "`easy`: of an EASY replay on a flat machine; `recorded`: as the log states"),
    "real_log": Column("", "False: a synthetic workload stands in for it"),
    "predictor": Column("", "with its groups"),
    "jobs": Column("jobs", "that are counted"),
    "waiting_jobs": Column("jobs", "that the plan lets wait"),
    "coverage": Column("share", "of the jobs that started within their bound"),
    "coverage_waiting": Column("share", "the same of the jobs that the plan lets wait"),
    "late_at_once": Column("jobs", "that were planned to start at once and did not"),
    "bound_at_once_s": Column("s", "largest bound of a job that was planned to start at once"),
    "loss_s": Column("s", f"mean quantile loss at {QUANTILE} over all jobs"),
    "median_bound_s": Column("s", "of the jobs that the plan lets wait"),
    "scale": Column(
        "", "by which bounds must be multiplied to cover as many of the waiting jobs as `planned`; empty: none does"
    ),
    "median_scaled_s": Column("s", "median bound of the waiting jobs after that; empty: as `scale`"),
    "kind": Column("", "what makes a class: size in processors, or month of 30 days"),
    "class": Column("", "of jobs that the plan lets wait; only those of 500 or more"),
    "within_s": Column("s", "wait for which the chance was asked"),
    "brier": Column("", "mean squared difference of chance and outcome"),
    "calibration_error": Column("probability", "mean distance of chance and share over ten bins"),
    "brier_waiting": Column("", "the same of the jobs that the plan lets wait"),
    "calibration_error_waiting": Column("probability", "the same of the jobs that the plan lets wait"),
    "chance": Column("probability", "mean of what was stated in the bin"),
    "share": Column("share", "of the bin's jobs that started in time"),
    "costs.csv/what": Column("", "what is measured, with the compiled plan"),
    "waiting": Column("jobs", "in the queue"),
    "microseconds": Column("us", "median of processor times"),
}


def cases(run: Run) -> Sequence[Setting]:
    """The logs that are named, else all that are at hand, the longest first."""
    both = (EASY, RECORDED)
    if run["log"]:
        return [named_log(text, waits, run.seed) for text in run["log"] for waits in both]
    if run.quick:
        return [Setting(TUNED_ON[0], waits, QUICK_JOBS, run.seed) for waits in both]
    others = [log for log in known_logs() if log not in GOAL_LOGS and find_log(log) is not None]
    logs = sorted([*others, *GOAL_LOGS], key=lambda log: (log not in LONG_QUEUES, -known_logs()[log].jobs))
    return [Setting(log, waits, LONG_QUEUES.get(log), run.seed) for log in logs for waits in both]


def _of_all_logs(table: str) -> Callable[[Found], Rows]:
    return lambda found: [row for answer in found.answers[RUNS] for row in answer.get(table, ())]


def _costs(waiting: int, seed: int) -> list[Row]:
    """Microseconds of processor time for a question on a kept plan, and for the same after a job has ended early."""
    plan, now = crowded_plan(waiting, seed)
    shape = JobShape(8, 3_600_000_000)
    anew: list[float] = []
    kept: list[float] = []
    for repeat in range(_REPEATS):
        plan.runs("last", 1, 0, (86_400 + repeat) * 1_000_000)
        for times in (anew, kept):
            begun = time.thread_time_ns()
            plan.earliest(shape, now)
            times.append((time.thread_time_ns() - begun) / 1000)
    return [
        {"what": what, "waiting": waiting, "microseconds": round(sorted(times)[_REPEATS // 2], 1)}
        for what, times in (("a question when all is planned again", anew), ("a question on the kept plan", kept))
    ]


def _comparisons(found: Found) -> Sequence[Comparison]:
    judged = [
        one.name for one in found.cases[RUNS] if one.waits == EASY and (found.run["log"] or one.name in GOAL_LOGS)
    ]
    return [*(row for log in judged for row in goals(log, found.tables)), *cost_goal(found["costs"])]


def _parameters(found: Found) -> Mapping[str, Any]:
    return {
        "quantile": QUANTILE,
        "deadlines_s": list(DEADLINES_S),
        "tuned_on": list(TUNED_ON),
        "jobs": {setting.name: setting.max_jobs or "all" for setting in found.cases[RUNS]},
        "easy": "jobs that outrun their request are ended there; jobs larger than the machine are left out",
        "scored": "jobs for which all predictors knew a bound; classes and months of 500 waiting jobs or more",
    }


EXPERIMENTS: Final = (
    Study(
        name="queue-bound",
        about="bounds on waits in queues: coverage, tightness and chances of bmbp and planned on all logs",
        cases=cases,
        measure=run_setting,
        tables={
            **{name: _of_all_logs(name) for name in ("bounds", "classes", "chances", "reliability")},
            "costs": lambda found: [row for waiting in CROWDS for row in _costs(waiting, found.run.seed)],
        },
        columns=_COLUMNS,
        figures=FIGURES,
        comparisons=_comparisons,
        shown=(
            Shown("bounds", "log waits predictor coverage coverage_waiting loss_s median_bound_s"),
            Shown("costs", "what waiting microseconds"),
        ),
        findings={"chances": lambda found: found["chances"]},
        parameters=_parameters,
        stand_ins=lambda found: "synthetic" if missing_logs(found.cases[RUNS]) else "",
        options={"log": ()},
    ),
)
