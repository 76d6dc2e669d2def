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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ramp.queue_bound.queue_plan import JobShape
from simulation.experiments.comparison import tell_comparison
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.queue_bound.goals import CALIBRATION_PICTURE, COVERAGE_PICTURE, cost_goal, goals
from simulation.experiments.queue_bound.plots import draw_calibration, draw_coverage
from simulation.experiments.queue_bound.runs import (
    DEADLINES_S,
    EASY,
    QUANTILE,
    RECORDED,
    Row,
    Setting,
    crowded_plan,
    named_log,
    run_setting,
)
from simulation.experiments.result import Column, Columns, write_rows, write_summary
from simulation.experiments.worker_processes import run_all
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


def run(
    out: Path,
    *,
    quick: bool,
    seed: int,
    processes: int | None,
    on_progress: Progress | None,
    log: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Run the study; see `simulation.experiments.discovery.RunExperiment`.

    `log`: these logs alone, whole, each `LOG` or `LOG:PROCESSORS`; the goals are judged on all of them.
    """
    settings = (
        [named_log(text, waits, seed) for text in log for waits in (EASY, RECORDED)]
        if log
        else _settings(seed, quick=quick)
    )
    answers = run_all(run_setting, settings, processes=processes, on_progress=on_progress)
    tables: dict[str, list[Row]] = {"bounds": [], "classes": [], "chances": [], "reliability": []}
    for answer in answers:
        for name, rows in answer.items():
            tables[name] += rows
    costs = [row for waiting in CROWDS for row in _costs(waiting, seed)]
    for name, rows in {**tables, "costs": costs}.items():
        write_rows(out / f"{name}.csv", rows)
    logs = list(dict.fromkeys(setting.name for setting in settings))
    missing = sorted({setting.name for setting in settings if find_log(setting.log) is None})
    note = f"A synthetic workload in place of {', '.join(missing)}." if missing else ""
    draw_calibration(out / "reliability.csv", out / CALIBRATION_PICTURE, quick=quick, note=note)
    draw_coverage(out / "classes.csv", out / COVERAGE_PICTURE, quick=quick, note=note)
    compared = [row for name in logs if log or name in GOAL_LOGS for row in goals(name, tables)]
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters={
            "quantile": QUANTILE,
            "deadlines_s": list(DEADLINES_S),
            "tuned_on": list(TUNED_ON),
            "jobs": {setting.name: setting.max_jobs or "all" for setting in settings},
            "easy": "jobs that outrun their request are ended there; jobs larger than the machine are left out",
            "scored": "jobs for which all predictors knew a bound; classes and months of 500 waiting jobs or more",
        },
        comparisons=[*compared, *cost_goal(costs)],
        findings={"bounds": tables["bounds"], "chances": tables["chances"], "costs": costs},
        columns=_COLUMNS,
        stand_ins="synthetic" if missing else "",
    )


def _settings(seed: int, *, quick: bool) -> list[Setting]:
    """The longest first."""
    if quick:
        return [Setting(TUNED_ON[0], waits, QUICK_JOBS, seed) for waits in (EASY, RECORDED)]
    others = [log for log in known_logs() if log not in GOAL_LOGS and find_log(log) is not None]
    logs = sorted([*others, *GOAL_LOGS], key=lambda log: (log not in LONG_QUEUES, -known_logs()[log].jobs))
    return [Setting(log, waits, LONG_QUEUES.get(log), seed) for log in logs for waits in (EASY, RECORDED)]


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


def _tell(summary: Mapping[str, Any]) -> list[str]:
    lines = [*tell_comparison(summary), "", "Coverage of all jobs and of those that wait, loss, median bound:"]
    return lines + [
        f"  {row['log']:24} {row['waits']:8} {row['predictor']:16} {row['coverage']:.3f} "
        f"{row['coverage_waiting']:.3f} {row['loss_s']:9.1f} s {row['median_bound_s']:9.0f} s"
        for row in summary["bounds"]
    ]


EXPERIMENTS: Final = (
    Experiment(
        "queue-bound",
        "bounds on waits in queues: coverage, tightness and chances of bmbp and planned on all logs",
        run,
        _tell,
        frozenset({"log"}),
    ),
)
