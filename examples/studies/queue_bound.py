"""Bounds on waits in queues: how often they hold, and how tight they are.

Sources: J. Brevik, D. Nurmi and R. Wolski (PPoPP 2006), D. Nurmi and others (QBETS, JSSPP 2007; VARQ, HPDC 2008) for
`bmbp`; `ramp.queue_bound.predictors.planned` for `planned`. Every log is replayed by EASY on a flat machine of its
size, and once more with the waits that it states, of which nobody knows by what rule the site's scheduler decided.
Predictors see submissions and starts in their order, and are scored on the jobs for which all of them knew a bound.

Options were chosen on SDSC-SP2 and CTC-SP2; the other logs are reported. One reading was chosen afterwards: the
finer size classes above 64 processors were kept when Curie's loss had been seen to fall by 5 % (the other two do not
change).

ramp experiment run examples/studies/queue_bound.py:STUDY --out results --quick
"""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND
from ramp.queue_bound.groups import SIZE_CLASSES, Groups
from ramp.queue_bound.predictor import PREDICTORS, Predictor, QueuedJob
from ramp.queue_bound.queue_plan import Planner, QueuePlan
from simulation.experiments.comparison import Comparison
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.result import Column, Columns, Row, Rows, grouped
from simulation.experiments.study import RUNS, Found, Run, Shown, Study
from simulation.plots.style import BLUE, GREEN, PAPER, VERMILION
from simulation.queueing.compiled_plan import plan_starts
from simulation.queueing.followed_plan import FollowedPlan
from simulation.queueing.job_table import jobs_of_log
from simulation.schedulers.compiled.easy import easy
from simulation.workload.generators.lublin import DAY_S, synthetic_log
from simulation.workload.logs import find_log, known_log, known_logs
from simulation.workload.swf import SwfLog, read_swf

# -- scores: all arrays of shape (jobs,), times in microseconds ---

Int64Array = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 500
"""Least number of jobs of a class or month for which a share is stated."""


def coverage(wait: Int64Array, bound: Int64Array) -> float:
    """Share of the jobs that waited no longer than their bound."""
    return float(np.mean(wait <= bound)) if wait.size else float("nan")


def quantile_loss(wait: Int64Array, bound: Int64Array, quantile: float) -> float:
    """Mean quantile ("pinball") loss in seconds: what bounds of 0 or of a year cannot win.

    Source: R. Koenker and G. Bassett, "Regression quantiles", Econometrica 46(1), 1978.
    """
    late = (wait - bound) / 1e6
    return float(np.mean(np.where(late > 0, quantile * late, (quantile - 1) * late)))


def scale_for_coverage(wait: Int64Array, bound: Int64Array, wanted: float) -> float:
    """The least factor by which bounds must be multiplied to cover a share of the jobs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(wait == 0, 0.0, wait / bound)
    place = int(np.ceil(wanted * wait.size)) - 1
    return float(np.sort(needed)[min(max(place, 0), wait.size - 1)])


def brier(came: Mask, chance: FloatArray) -> float:
    """Mean squared difference of chance and outcome.

    Source: G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78, 1950.
    """
    return float(np.mean((chance - came) ** 2))


def reliability(came: Mask, chance: FloatArray, bins: int = 10) -> list[tuple[float, float, int]]:
    """Return the mean chance, share that started in time, and jobs, for each of equal bins of the chance with jobs."""
    number = np.minimum((chance * bins).astype(np.int64), bins - 1)
    rows = []
    for each in range(bins):
        taken = number == each
        if taken.any():
            rows.append((float(chance[taken].mean()), float(came[taken].mean()), int(taken.sum())))
    return rows


def calibration_error(came: Mask, chance: FloatArray) -> float:
    """Mean distance of chance and share over ten bins, by the jobs in each (expected calibration error)."""
    rows = reliability(came, chance)
    return sum(abs(said - found) * jobs for said, found, jobs in rows) / sum(jobs for *_, jobs in rows)


def size_classes(size: Int64Array) -> Iterator[tuple[str, Mask]]:
    """Classes of sizes and who is in each."""
    least = 1
    for most in SIZE_CLASSES:
        yield f"{least}-{most}", (size >= least) & (size <= most)
        least = most + 1
    yield f"{least} and more", size >= least


def months(submit: Int64Array) -> Iterator[tuple[str, Mask]]:
    """Months of 30 days from the first submission, and who came in each."""
    number = (submit - submit[0]) // (30 * 86_400_000_000)
    for each in np.unique(number).tolist():
        yield str(each + 1), number == each


# -- a log once more, job by job, as predictors of waits would have seen it ---

END, SUBMISSION, START, EMPTY_END = range(4)
"""What happens in one instant, in this order; jobs without any run time end after they have started."""

UNKNOWN: Final = -1
"""Marks a bound that could not be stated."""


@dataclass(frozen=True, slots=True, eq=False)
class QueueHistory:
    """When the jobs of a machine came, started and ended; all arrays of shape (jobs,), times in microseconds.

    Attributes:
        queue: names of the queues that they were submitted to.
        size: processors.
        length: run times that they asked for, at least 1.
        submit: submissions, ascending.
        start: starts, not before the submissions.
        end: ends, not before the starts.
        capacity: processors of the machine.
    """

    queue: Sequence[str]
    size: Int64Array
    length: Int64Array
    submit: Int64Array
    start: Int64Array
    end: Int64Array
    capacity: int

    @property
    def wait(self) -> Int64Array:
        """Microseconds that each job waited."""
        return self.start - self.submit

    def events(self) -> list[tuple[int, int, int]]:
        """Time, kind and job of all that happened, in its order."""
        jobs = self.submit.size
        times = np.concatenate([self.end, self.submit, self.start])
        kinds = np.repeat([END, SUBMISSION, START], jobs)
        kinds[:jobs][self.end == self.start] = EMPTY_END
        who = np.tile(np.arange(jobs), 3)
        order = np.lexsort((who, kinds, times))
        return list(zip(times[order].tolist(), kinds[order].tolist(), who[order].tolist(), strict=True))


def planned_waits(history: QueueHistory, planner: Planner) -> Int64Array:
    """The wait that an EASY plan of the queue shows at each job's submission, in microseconds; shape (jobs,).

    Args:
        history: of the queue; jobs that are larger than the machine are refused.
        planner: does the planning.

    Raises:
        ValueError: a job is larger than the machine.
    """
    plan = FollowedPlan(history.capacity, planner)
    planned = np.zeros(history.submit.size, np.int64)
    sizes, lengths = history.size.tolist(), history.length.tolist()
    for now, kind, job in history.events():
        if kind == SUBMISSION:
            planned[job] = plan.joined(job, QueuedJob("", sizes[job], lengths[job]), now) - now
        elif kind == START:
            plan.started(job, now)
        else:
            plan.ended(job, now)
    return planned


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """What a predictor said at each submission.

    Attributes:
        bound: microseconds, `UNKNOWN` where it could not tell; shape (jobs,).
        chance: probability of a start within each of the deadlines, NaN where it could not tell; shape (jobs,
            deadlines).
    """

    bound: Int64Array
    chance: FloatArray


def predict(
    history: QueueHistory, planned: Int64Array | None, predictor: Predictor, deadlines: Sequence[int] = ()
) -> Predictions:
    """Let a predictor see a history from its beginning, and keep what it says.

    Args:
        history: of the queue.
        planned: planned waits, microseconds, shape (jobs,); None = it is not told any.
        predictor: that has seen nothing.
        deadlines: waits in microseconds for which it is asked the chance.
    """
    jobs = history.submit.size
    bounds = np.full(jobs, UNKNOWN, np.int64)
    chances = np.full((jobs, len(deadlines)), np.nan)
    waits = [None] * jobs if planned is None else planned.tolist()
    rows = zip(history.queue, history.size.tolist(), history.length.tolist(), waits, strict=True)
    queued = [QueuedJob(*row) for row in rows]
    due: list[tuple[int, int]] = []  # a heap of the times at which bounds run out, and of the jobs that wait
    overdue: set[int] = set()
    for now, kind, job in history.events():
        if kind == SUBMISSION:
            while due and due[0][0] < now:
                late = heapq.heappop(due)[1]
                if history.start[late] >= now:
                    overdue.add(late)
                    predictor.overdue(queued[late])
            for column, deadline in enumerate(deadlines):
                chance = predictor.chance(queued[job], deadline)
                if chance is not None:
                    chances[job, column] = chance
            bound = predictor.bound(queued[job])
            if bound is not None:
                bounds[job] = bound
                heapq.heappush(due, (now + bound, job))
        elif kind == START:
            bound = None if bounds[job] == UNKNOWN else int(bounds[job])
            predictor.started(queued[job], now - int(history.submit[job]), bound, overdue=job in overdue)
    return Predictions(bounds, chances)


# -- one log under one kind of waits ---

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
        start = jobs.submit_time + wait[known] * SECOND
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
    deadlines = [seconds * SECOND for seconds in DEADLINES_S]
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
            came, chance = history.wait <= within * SECOND, each.chance[:, column]
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
        "bound_at_once_s": float(bound[at_once].max(initial=0)) / SECOND,
        "loss_s": quantile_loss(wait[known], bound[known], QUANTILE),
        "median_bound_s": float(np.median(bound[waits])) / SECOND,
        # bounds of 0 cover no more by being multiplied
        "scale": factor if isfinite(factor) else "",
        "median_scaled_s": factor * float(np.median(bound[waits])) / SECOND if isfinite(factor) else "",
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
        end = int(draw.integers(1, 24 * 3_600)) * SECOND
        plan.runs(int(sizes[number]), end)
        taken += sizes[number]
        number += 1
    plan.runs(cores - int(taken), 24 * 3_600 * SECOND)
    for job in range(waiting):
        length = int(hours[number + job]) * 3_600 * SECOND
        plan.submit(QueuedJob("", int(sizes[number + job]), length), 0)
    return plan, 1


# -- the goals, beside what was reached ---

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


# -- pictures ---

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


# -- the study ---

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
    """Microseconds of processor time for a question on a kept plan, and for the same after a change of what runs."""
    plan, now = crowded_plan(waiting, seed)
    shape = QueuedJob("", 8, 3_600_000_000)
    anew: list[float] = []
    kept: list[float] = []
    for repeat in range(_REPEATS):
        plan.runs(0, (86_400 + repeat) * 1_000_000)  # takes nothing, but has all planned again
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


STUDY = Study(
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
)
