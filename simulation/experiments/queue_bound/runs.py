"""One log under one kind of waits: what every predictor said of its jobs, and how good that was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np

from ramp.errors import ConfigurationError
from ramp.queue_bound.groups import Groups
from ramp.queue_bound.predictor import PREDICTORS
from ramp.queue_bound.queue_plan import JobShape, QueuePlan
from simulation.experiments.queue_bound.replay import (
    UNKNOWN,
    Int64Array,
    Predictions,
    QueueHistory,
    planned_waits,
    predict,
)
from simulation.experiments.queue_bound.scores import (
    FEWEST,
    Mask,
    brier,
    calibration_error,
    coverage,
    months,
    quantile_loss,
    reliability,
    scale_for_coverage,
    size_classes,
)
from simulation.kernel import MICROSECONDS_PER_SECOND
from simulation.queueing.compiled_plan import plan_starts
from simulation.queueing.job_table import jobs_of_log
from simulation.schedulers.compiled.easy import easy
from simulation.workload.generators.lublin import DAY_S, synthetic_log
from simulation.workload.logs import find_log, known_log, known_logs
from simulation.workload.swf import SwfLog, read_swf

QUANTILE: Final = 0.95
DEADLINES_S: Final = (600, 3_600, 21_600)
"""Seconds for which chances are asked: ten minutes, one hour, six hours."""

EASY, RECORDED = "easy", "recorded"
"""Kinds of waits: of an EASY replay on a flat machine, or those that the log states."""

PLANNED: Final = "planned"
BMBP_GROUPS: Final = (Groups.ONE, Groups.SIZE, Groups.SIZE_LENGTH)
STAND_IN_DAYS: Final = 30
"""Length of the synthetic workload in place of a log that is not there."""
STAND_IN_CORES: Final = 128
STAND_IN_LOAD: Final = 0.8

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """A task of one worker.

    Attributes:
        log: name of a known log, or the path of a file.
        waits: `easy` or `recorded`.
        max_jobs: number of jobs taken from the beginning; None = all.
        seed: of the synthetic workload that replaces a known log that is missing.
        cores: of the log's machine; None = as is known of the log, or as its header says.
    """

    log: str
    waits: str
    max_jobs: int | None
    seed: int
    cores: int | None = None

    @property
    def name(self) -> str:
        """What tables call the log."""
        return self.log if self.log in known_logs() else Path(self.log).name.removesuffix(".gz").removesuffix(".swf")


def missing_logs(settings: Sequence[Setting]) -> list[str]:
    """Names of the logs that are not on this computer, so that a synthetic workload is in their place."""
    return sorted({setting.name for setting in settings if find_log(setting.log) is None})


def named_log(text: str, waits: str, seed: int) -> Setting:
    """Return the setting of a log named on the command line: `LOG` or `LOG:PROCESSORS`; the rest as of `Setting`.

    Raises:
        ConfigurationError: there is no such log, or the size of its machine is unknown.
    """
    log, _, count = text.rpartition(":") if re.search(r":\d+$", text) else (text, "", "")
    path = find_log(log)
    if path is None:
        raise ConfigurationError(
            f"unknown log '{log}': expected a file, or one of {', '.join(known_logs())}", key="log"
        )
    cores = int(count) if count else known_logs()[log].cores if log in known_logs() else _stated_cores(path)
    if not cores:
        raise ConfigurationError(f"{log} does not say how many processors its machine has; give {log}:N", key="log")
    return Setting(log, waits, None, seed, cores)


def _stated_cores(path: Path) -> int | None:
    log = read_swf(path)
    return log.header_integer("MaxProcs") or log.header_integer("MaxNodes")


def read_log(setting: Setting) -> tuple[SwfLog, int, bool]:
    """The log, its machine's processors, and whether it is the log itself and no stand-in."""
    path = find_log(setting.log)
    if path is not None:
        return read_swf(path), setting.cores or known_log(setting.log).cores, True
    log = synthetic_log(STAND_IN_CORES, STAND_IN_DAYS * DAY_S, setting.seed, load=STAND_IN_LOAD)
    return log, STAND_IN_CORES, False


def history_of(log: SwfLog, cores: int, waits: str, max_jobs: int | None = None) -> QueueHistory | None:
    """Return when the jobs of a log come, start and end; None where it states no waits.

    Jobs larger than the machine are left out. Under EASY a job that outruns its request is ended there. `waits` is
    `easy` or `recorded`; `max_jobs` limits the jobs from the beginning, None = all.
    """
    jobs = jobs_of_log(log, max_jobs=max_jobs)
    jobs = jobs.select(jobs.size <= cores)
    length = np.maximum(jobs.requested_time, 1)
    if waits == RECORDED:
        wait = log.wait_time[jobs.line]
        known = wait >= 0
        if not known.any():
            return None
        jobs, length = jobs.select(known), length[known]
        start = jobs.submit_time + wait[known] * MICROSECONDS_PER_SECOND
        end = start + jobs.run_time
    else:
        duration = np.minimum(jobs.run_time, jobs.requested_time)
        start = easy(jobs.submit_time, duration, length, jobs.size, cores)
        end = start + duration
    queue = [str(number) for number in log.queue_number[jobs.line].tolist()]
    return QueueHistory(queue, jobs.size, length, jobs.submit_time, start, end, cores)


def run_setting(setting: Setting) -> dict[str, list[Row]]:
    """Tables of one log, by name; empty where it has no such waits."""
    log, cores, real = read_log(setting)
    history = history_of(log, cores, setting.waits, setting.max_jobs)
    if history is None:
        return {}
    planned = planned_waits(history, plan_starts)
    deadlines = [seconds * MICROSECONDS_PER_SECOND for seconds in DEADLINES_S]
    said = {
        f"bmbp {groups}": predict(history, None, PREDICTORS.find("bmbp").new({"groups": str(groups)}), deadlines)
        for groups in BMBP_GROUPS
    }
    # nobody knows by which rule the site's scheduler decided
    options = {} if setting.waits == EASY else {"same_rule": False, "groups": str(Groups.PLAN_SIZE_LENGTH)}
    said[PLANNED] = predict(history, planned, PREDICTORS.find(PLANNED).new(options), deadlines)
    common = {"log": setting.name, "waits": setting.waits, "real_log": real}
    tables = scored(history, planned, said)
    return {name: [{**common, **row} for row in rows] for name, rows in tables.items()}


def scored(history: QueueHistory, planned: Int64Array, said: Mapping[str, Predictions]) -> dict[str, list[Row]]:
    """Scores of all predictors over the jobs for which all of them knew a bound.

    Args:
        history: of the queue.
        planned: planned waits, microseconds, shape (jobs,).
        said: by predictor.

    Returns:
        Rows by table; empty where no such job had to wait.
    """
    known = np.all([each.bound != UNKNOWN for each in said.values()], axis=0)
    waits = known & (planned > 0)
    if not waits.any():
        return {}
    at_coverage = coverage(history.wait[waits], said[PLANNED].bound[waits])
    tables: dict[str, list[Row]] = {"bounds": [], "classes": [], "chances": [], "reliability": []}
    for name, each in said.items():
        tables["bounds"].append(
            {"predictor": name, **_bound_scores(history, known, waits, planned, each.bound, at_coverage)}
        )
        tables["classes"] += [{"predictor": name, **row} for row in _class_scores(history, waits, each.bound)]
        for column, within in enumerate(DEADLINES_S):
            asked = known & ~np.isnan(each.chance[:, column])
            came, chance = history.wait <= within * MICROSECONDS_PER_SECOND, each.chance[:, column]
            if not (asked & waits).any():
                continue
            common = {"predictor": name, "within_s": within}
            of_waiting = asked & waits
            tables["chances"].append(
                common
                | {
                    "jobs": int(asked.sum()),
                    "brier": brier(came[asked], chance[asked]),
                    "calibration_error": calibration_error(came[asked], chance[asked]),
                    "brier_waiting": brier(came[of_waiting], chance[of_waiting]),
                    "calibration_error_waiting": calibration_error(came[of_waiting], chance[of_waiting]),
                }
            )
            tables["reliability"] += [
                common | {"chance": stated, "share": found, "jobs": jobs}
                for stated, found, jobs in reliability(came[of_waiting], chance[of_waiting])
            ]
    return tables


def _bound_scores(
    history: QueueHistory, known: Mask, waits: Mask, planned: Int64Array, bound: Int64Array, at_coverage: float
) -> Row:
    wait = history.wait
    at_once = known & (planned == 0)
    factor = scale_for_coverage(wait[waits], bound[waits], at_coverage)
    return {
        "jobs": int(known.sum()),
        "waiting_jobs": int(waits.sum()),
        "coverage": coverage(wait[known], bound[known]),
        "coverage_waiting": coverage(wait[waits], bound[waits]),
        "late_at_once": int((wait[at_once] > 0).sum()),
        "bound_at_once_s": float(bound[at_once].max(initial=0)) / MICROSECONDS_PER_SECOND,
        "loss_s": quantile_loss(wait[known], bound[known], QUANTILE),
        "median_bound_s": float(np.median(bound[waits])) / MICROSECONDS_PER_SECOND,
        # bounds of 0 cover no more by being multiplied
        "scale": factor if isfinite(factor) else "",
        "median_scaled_s": (
            factor * float(np.median(bound[waits])) / MICROSECONDS_PER_SECOND if isfinite(factor) else ""
        ),
    }


def _class_scores(history: QueueHistory, waits: Mask, bound: Int64Array) -> Iterator[Row]:
    for kind, classes in (("size", size_classes(history.size)), ("month", months(history.submit))):
        for name, members in classes:
            taken = waits & members
            if taken.sum() >= FEWEST:
                share = coverage(history.wait[taken], bound[taken])
                yield {"kind": kind, "class": name, "jobs": int(taken.sum()), "coverage": share}


def crowded_plan(waiting: int, seed: int) -> tuple[QueuePlan, int]:
    """Return a plan with this many waiting jobs, for measuring, and the time before which nothing is planned."""
    draw, cores = np.random.default_rng(seed), 1024
    plan = QueuePlan(cores, plan_starts)
    sizes, hours = draw.integers(1, 65, waiting + cores), draw.integers(1, 25, waiting + cores)
    taken = number = 0
    while taken + sizes[number] <= cores:
        end = int(draw.integers(1, 24 * 3_600)) * MICROSECONDS_PER_SECOND
        plan.runs(("running", number), int(sizes[number]), 0, end)
        taken += sizes[number]
        number += 1
    plan.runs("last", cores - int(taken), 0, 24 * 3_600 * MICROSECONDS_PER_SECOND)
    for job in range(waiting):
        length = int(hours[number + job]) * 3_600 * MICROSECONDS_PER_SECOND
        plan.submit(job, JobShape(int(sizes[number + job]), length), 0)
    return plan, 1
