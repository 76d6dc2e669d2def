"""Malleable jobs on real logs, against EASY with rigid jobs.

After P. Zojer, J. Posner, T. Oezden, "Evaluating Malleable Job Scheduling in HPC Clusters using Real-World Workloads",
arXiv 2602.17318, 2026, whose logs are Cori's, Eagle's and Theta's. Its strategies are read from its description:
rigid jobs and starts as under EASY; who shrinks and grows first differs. A strategy of our own stands beside them.

At every event waiting jobs start as under EASY. Where the next one has too few processors, running malleable jobs
shrink for it. Idle processors then go to running malleable jobs; the strategy decides which jobs shrink and grow.
Changes of size cost nothing here. Jobs end at their requests, which shrink and grow with the size as run times do.

ramp experiment run examples/studies/malleable_logs.py:STUDY --out results --quick
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.result import Column, Means, grouped
from simulation.experiments.study import Comparison, Shown, Study, rows_of
from simulation.malleable.malleability import ASSIGNED_SIZES, ASSIGNED_SPEED_UP, LARGER, SMALLER, draw_laws
from simulation.plots.style import SERIES
from simulation.queueing.job_table import jobs_of_log
from simulation.schedulers.compiled.running_jobs import NEVER
from simulation.workload.generators.lublin import synthetic_log
from simulation.workload.logs import find_log
from simulation.workload.swf import read_swf

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]

RIGID = 0
"""Sizes stay: EASY."""
MINIMUM = 1
"""Jobs start at their minimum; who has the fewest processors above its minimum grows first."""
PREFERRED = 2
"""Jobs start at their preferred size where it is free; no job grows beyond it while another is below its own."""
AVERAGE_POOL = 3
"""The job with the least of its range grows first, that with the most shrinks first, for the first waiting job."""
AVERAGE_STEAL = 4
"""The same, and later jobs that the freed processors are enough for start as well."""
MARGINAL_GAIN = 5
"""Ours: with a queue all shrink to their minimum, and the requests of the least work start first; once the oldest job
has waited for `PATIENCE` it has EASY's promise. What is left goes where it speeds a job up the most, as believed."""

PATIENCE = 24 * 3600 * 1_000_000
"""Microseconds of waiting after which no later job that would prolong the wait passes a job."""

CHUNKS = 32
"""Number of parts in which idle processors are given out; fewer processors go one by one."""

HOUR = 3_600_000_000
WHOLE = (0, None)


class LogOfStudy(NamedTuple):
    """A log, the units of its machine, the processors of the log that make one, and which jobs are simulated."""

    file: str
    capacity: int
    divisor: int = 1
    spans: tuple = (WHOLE,)


def five_spans(every):
    """Five spans of 20 000 jobs, `every` jobs from begin to begin; a log's first 10 000 are left out."""
    return tuple((first, first + 20_000) for first in range(10_000, 10_000 + 5 * every, every))


LOGS = {
    "CTC": LogOfStudy("CTC-SP2-1996-3.1-cln", 338),
    "SDSC": LogOfStudy("SDSC-SP2-1998-4.2-cln", 128),
    "Curie": LogOfStudy("CEA-Curie-2011-2.1-cln", 5832, 16, five_spans(60_000)),
    "RICC": LogOfStudy("RICC-2010-2", 1024, 8, five_spans(100_000)),
}
EASY, OURS = "EASY", "marginal gain (ours)"
STRATEGIES = {
    EASY: RIGID,
    "minimum": MINIMUM,
    "preferred": PREFERRED,
    "average pool": AVERAGE_POOL,
    "average steal": AVERAGE_STEAL,
    OURS: MARGINAL_GAIN,
}
BELIEF_ERROR = 0.3  # the believed parallelism is off by up to this share, where it is not known
MEASURES = ("turnaround_h", "wait_h", "makespan_h", "utilisation")
CHANGES = tuple(f"{measure}_percent" for measure in MEASURES)


@compiled
def speed_up(processors: float, average: float, variance: float) -> float:
    """Return the speed-up by Downey's model (`simulation.malleable.malleability.DowneyLaw`)."""
    if variance <= 1:
        if processors <= average:
            return average * processors / (average + variance / 2 * (processors - 1))
        if processors <= 2 * average - 1:
            return average * processors / (variance * (average - 0.5) + processors * (1 - variance / 2))
        return average
    if processors <= average + average * variance - variance:
        return processors * average * (variance + 1) / (variance * (processors + average - 1) + average)
    return average


@compiled
def rescaled(length: int, before: int, after: int, average: float, variance: float) -> int:
    """Return how long the work of some time at one size takes at another, microseconds, rounded up."""
    if before == after:
        return length
    ratio = (1 / speed_up(after, average, variance)) / (1 / speed_up(before, average, variance))
    return math.ceil(length * ratio)


@compiled
def promise_to(
    running: Int64Array,
    expected: Int64Array,
    size: Int64Array,
    was: Int64Array,
    now: int,
    free: int,
    wanted: int,
    average: Float64Array,
    variance: Float64Array,
) -> tuple[int, int]:
    """Return when `wanted` processors are free (shadow time), and how many more there are then (extra nodes).

    Args:
        running: jobs that run.
        expected: ends of the requests at the sizes `was`, by job, microseconds.
        size: processors by job now.
        was: processors by job before this instant.
        now: microseconds.
        free: idle processors.
        wanted: of the job that is promised to.
        average: of Downey's law by job, as believed.
        variance: the same.
    """
    ends = np.zeros(running.size, np.int64)
    for place in range(running.size):
        job = running[place]
        rest = max(expected[job] - now, 1)
        ends[place] = now + rescaled(rest, was[job], size[job], average[job], variance[job])
    available, shadow = free, NEVER
    for place in np.argsort(ends, kind="mergesort"):
        if shadow != NEVER and ends[place] > shadow:
            break
        available += size[running[place]]
        if shadow == NEVER and available >= wanted:
            shadow = ends[place]
    return shadow, available - wanted


@compiled
def priority(strategy: int, size: int, minimum: int, preferred: int, maximum: int) -> float:
    """Return the priority of a size: the smallest grows first, the largest shrinks first."""
    if strategy == MINIMUM:
        return float(size - minimum)
    if strategy == PREFERRED:
        return float(size - preferred)
    if maximum == minimum:
        return 1.0
    return (size - minimum) / (maximum - minimum)


@compiled
def shrink_for(
    strategy: int,
    wanted: int,
    running: Int64Array,
    size: Int64Array,
    minimum: Int64Array,
    preferred: Int64Array,
    maximum: Int64Array,
) -> int:
    """Shrink running jobs until `wanted` processors are free, the largest priority first; return how many were freed.

    All at their minimum would be enough. `size` has the new sizes afterwards.
    """
    freed = 0
    while freed < wanted:
        chosen, best = -1, -np.inf
        for job in running:
            if size[job] > minimum[job]:
                value = priority(strategy, size[job], minimum[job], preferred[job], maximum[job])
                if value > best:
                    chosen, best = job, value
        taken = size[chosen] - minimum[chosen]
        if strategy != MINIMUM:  # others level out: a part at a time
            taken = max(1, taken // 4)
        taken = min(taken, wanted - freed)
        size[chosen] -= taken
        freed += taken
    return freed


@compiled
def gain(size: int, more: int, average: float, variance: float) -> float:
    """Return by which share each of `more` additional processors shortens the rest of a job.

    Average and variance are of Downey's law, as the scheduler believes them.
    """
    return (1 - speed_up(size, average, variance) / speed_up(size + more, average, variance)) / more


@compiled
def grow(
    strategy: int,
    free: int,
    running: Int64Array,
    size: Int64Array,
    minimum: Int64Array,
    preferred: Int64Array,
    maximum: Int64Array,
    average: Float64Array,
    variance: Float64Array,
) -> int:
    """Give out idle processors in parts; how many are left. `size` has the new sizes afterwards."""
    part = max(1, free // CHUNKS)
    while free > 0:
        chosen, best = -1, np.inf
        for job in running:
            if size[job] >= maximum[job]:
                continue
            if strategy == MARGINAL_GAIN:
                more = min(part, free, maximum[job] - size[job])
                value = -gain(size[job], more, average[job], variance[job])
                if value >= 0:
                    continue  # more would be waste
            else:
                value = priority(strategy, size[job], minimum[job], preferred[job], maximum[job])
                if strategy == PREFERRED and size[job] < preferred[job]:
                    value -= 1e12
            if value < best:
                chosen, best = job, value
        if chosen < 0:
            return free
        limit = maximum[chosen]
        if strategy == PREFERRED and size[chosen] < preferred[chosen]:
            limit = preferred[chosen]
        more = min(part, free, limit - size[chosen])
        size[chosen] += more
        free -= more
    return 0


@compiled
def easy_malleable(
    submit: Int64Array,
    duration: Int64Array,
    requested: Int64Array,
    preferred: Int64Array,
    minimum: Int64Array,
    maximum: Int64Array,
    average: Float64Array,
    variance: Float64Array,
    believed_average: Float64Array,
    believed_variance: Float64Array,
    capacity: int,
    strategy: int,
    record: bool,
) -> tuple[Int64Array, Int64Array, Float64Array, int, list[tuple[int, int, int]]]:
    """Run a log; rigid jobs are those whose three sizes are the same. All arrays have the shape (jobs,).

    Args:
        submit: ascending, microseconds.
        duration: at the preferred size, not above `requested`, microseconds.
        requested: at the preferred size, microseconds, at least 1.
        preferred: the size that the log says.
        minimum: smallest size.
        maximum: largest size.
        average: of Downey's law.
        variance: of Downey's law.
        believed_average: what the scheduler takes `average` for.
        believed_variance: what the scheduler takes `variance` for.
        capacity: processors; no job's minimum or rigid size is above it.
        strategy: one of the constants above.
        record: whether to return all sizes.

    Returns:
        Starts, ends, processors held x microseconds, changes of size, and, if recorded, (job, time, size) in order.
    """
    jobs = submit.size
    start, end = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    expected = np.zeros(jobs, np.int64)
    size, was = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    since = np.zeros(jobs, np.int64)
    area = np.zeros(jobs, np.float64)
    told = [(-1, -1, -1)]
    changes = 0
    running, waiting = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    running_count = waiting_count = arrived = 0
    free = capacity
    while arrived < jobs or waiting_count or running_count:
        now = submit[arrived] if arrived < jobs else NEVER
        for job in running[:running_count]:
            now = min(now, end[job])
        freed, kept = _end_jobs(now, running[:running_count], size, was, since, end, area)
        free += freed
        running_count = before_starts = kept
        while arrived < jobs and submit[arrived] <= now:
            waiting[waiting_count] = arrived
            waiting_count += 1
            arrived += 1
        if strategy == MARGINAL_GAIN and waiting_count:
            free += _to_minimum(running[:running_count], size, minimum)
        free, running_count, waiting_count = _start_waiting(
            strategy, now, free, running, running_count, waiting, waiting_count, requested, size, minimum, preferred,
            maximum, expected, average, variance, believed_average, believed_variance, was, submit,
        )  # fmt: skip
        if free > 0 and strategy != RIGID:
            free = grow(
                strategy, free, running[:running_count], size, minimum, preferred, maximum, believed_average,
                believed_variance,
            )  # fmt: skip
        changes += _follow_sizes(
            now, before_starts, running[:running_count], size, was, start, since, end, expected, area, duration,
            requested, preferred, average, variance,
        )  # fmt: skip
        if record:
            for place in range(running_count):
                job = running[place]
                if place >= before_starts or size[job] != was[job]:
                    told.append((job, now, size[job]))
    return start, end, area, changes, told[1:]


@compiled
def _end_jobs(
    now: int,
    running: Int64Array,
    size: Int64Array,
    was: Int64Array,
    since: Int64Array,
    end: Int64Array,
    area: Float64Array,
) -> tuple[int, int]:
    """Let jobs go whose time is over: processors that are idle by that, jobs that still run.

    Those stand first in `running` afterwards, in their order, and `was` has their sizes.
    """
    freed = kept = 0
    for job in running:
        if end[job] <= now:
            freed += size[job]
            area[job] += float(size[job]) * (now - since[job])
        else:
            running[kept] = job
            was[job] = size[job]
            kept += 1
    return freed, kept


@compiled
def _follow_sizes(
    now: int,
    before_starts: int,
    running: Int64Array,
    size: Int64Array,
    was: Int64Array,
    start: Int64Array,
    since: Int64Array,
    end: Int64Array,
    expected: Int64Array,
    area: Float64Array,
    duration: Int64Array,
    requested: Int64Array,
    preferred: Int64Array,
    average: Float64Array,
    variance: Float64Array,
) -> int:
    """Note when jobs end that have just started, or changed their size; how many have changed it."""
    changes = 0
    for place in range(running.size):
        job = running[place]
        if place >= before_starts:
            start[job] = since[job] = now
            end[job] = now + rescaled(duration[job], preferred[job], size[job], average[job], variance[job])
            asked = rescaled(requested[job], preferred[job], size[job], average[job], variance[job])
            expected[job] = max(end[job], now + asked)
        elif size[job] != was[job]:
            changes += 1
            area[job] += float(was[job]) * (now - since[job])
            since[job] = now
            end[job] = now + rescaled(end[job] - now, was[job], size[job], average[job], variance[job])
            asked = rescaled(expected[job] - now, was[job], size[job], average[job], variance[job])
            expected[job] = max(end[job], now + asked)
    return changes


@compiled
def _start_waiting(
    strategy: int,
    now: int,
    free: int,
    running: Int64Array,
    running_count: int,
    waiting: Int64Array,
    waiting_count: int,
    requested: Int64Array,
    size: Int64Array,
    minimum: Int64Array,
    preferred: Int64Array,
    maximum: Int64Array,
    expected: Int64Array,
    average: Float64Array,
    variance: Float64Array,
    believed_average: Float64Array,
    believed_variance: Float64Array,
    was: Int64Array,
    submit: Int64Array,
) -> tuple[int, int, int]:
    """Start waiting jobs; idle processors, running and waiting jobs afterwards."""
    shadow, extra = -1, 0
    order = _order(strategy, waiting[:waiting_count], requested, preferred)
    started = np.zeros(waiting_count, np.bool_)
    may_shrink = strategy not in (RIGID, MARGINAL_GAIN)
    promises = strategy != MARGINAL_GAIN or (waiting_count > 0 and now - submit[waiting[0]] > PATIENCE)
    blocked = False
    slack = 0
    for place in range(running_count):
        slack += size[running[place]] - minimum[running[place]]
    for place in order:
        job = waiting[place]
        wanted = minimum[job]
        if strategy in (PREFERRED, AVERAGE_POOL, AVERAGE_STEAL) and free >= minimum[job]:
            wanted = min(preferred[job], free)
        if strategy == RIGID:
            wanted = preferred[job]
        if free < wanted <= free + slack and may_shrink and (not blocked or strategy == AVERAGE_STEAL):
            freed = shrink_for(strategy, wanted - free, running[:running_count], size, minimum, preferred, maximum)
            free += freed
            slack -= freed
        if free + slack <= 0:
            break  # not even one processor can be had
        fits = wanted <= free
        if fits and blocked and promises:
            if shadow < 0:
                head = waiting[order[0]] if strategy == MARGINAL_GAIN else _first_left(waiting, started)
                needs = preferred[head] if strategy == RIGID else minimum[head]
                shadow, extra = promise_to(
                    running[:running_count], expected, size, was, now, free, needs, believed_average, believed_variance
                )
            asks = rescaled(requested[job], preferred[job], wanted, believed_average[job], believed_variance[job])
            if now + max(asks, 1) > shadow:
                fits = wanted <= extra
                if fits:
                    extra -= wanted
        if not fits:
            blocked = True
            continue
        size[job] = was[job] = wanted
        free -= wanted
        slack += wanted - minimum[job]
        expected[job] = now + rescaled(requested[job], preferred[job], wanted, average[job], variance[job])
        running[running_count] = job
        running_count += 1
        started[place] = True
    kept = 0
    for place in range(waiting_count):
        if not started[place]:
            waiting[kept] = waiting[place]
            kept += 1
    return free, running_count, kept


@compiled
def _to_minimum(running: Int64Array, size: Int64Array, minimum: Int64Array) -> int:
    """Shrink all running jobs as far as they can; how many processors were freed."""
    freed = 0
    for job in running:
        freed += size[job] - minimum[job]
        size[job] = minimum[job]
    return freed


@compiled
def _order(strategy: int, waiting: Int64Array, requested: Int64Array, preferred: Int64Array) -> Int64Array:
    """Return in which order waiting jobs are looked at: places in the queue."""
    if strategy != MARGINAL_GAIN or waiting.size < 2:
        return np.arange(waiting.size)
    work = requested[waiting].astype(np.float64) * preferred[waiting]
    work[0] = -1.0  # the oldest is looked at first
    return np.argsort(work, kind="mergesort")


@compiled
def _first_left(waiting: Int64Array, started: NDArray[np.bool_]) -> int:
    """Return the oldest waiting job that has not been started."""
    for place in range(started.size):
        if not started[place]:
            return int(waiting[place])
    return -1


@dataclass(frozen=True)
class Setting:
    """One simulation: a share of a span's jobs is malleable, and the scheduler knows their speed-up exactly or not."""

    log: str
    span: tuple
    strategy: str
    share: float
    seed: int
    known: bool = True


@lru_cache(maxsize=4)
def jobs_of(log):
    """The jobs of a log that fit its machine; synthetic ones where it is not on this computer."""
    chosen = LOGS[log]
    path = find_log(chosen.file)
    table = (
        jobs_of_log(synthetic_log(chosen.capacity, 30 * 86_400, 1, load=0.9))
        if path is None
        else jobs_of_log(read_swf(path), size_divisor=chosen.divisor)
    )
    return table.select(table.size <= chosen.capacity)


def missing(logs):
    """Logs that are not on this computer."""
    return [log for log in logs if find_log(LOGS[log].file) is None]


def run_case(setting):
    """Run one simulation; setting and measures as one row."""
    capacity = LOGS[setting.log].capacity
    first, last = setting.span
    table = jobs_of(setting.log).select(slice(first, last))
    count = len(table)
    draw = np.random.default_rng([setting.seed, first])
    laws = draw_laws(draw, count, setting.share)
    grows, variance = laws.malleable, laws.variance
    parallelism = np.maximum(1.0, table.size * laws.parallelism)
    error = draw.uniform(1 - BELIEF_ERROR, 1 + BELIEF_ERROR, count)
    believed = parallelism if setting.known else np.maximum(1.0, parallelism * error)
    requested = np.maximum(table.requested_time, 1)
    start, end, area, changes, _ = easy_malleable(
        table.submit_time,
        np.minimum(table.run_time, requested),
        requested,
        table.size,
        np.where(grows, -(-table.size // SMALLER), table.size),
        np.where(grows, np.minimum(LARGER * table.size, capacity), table.size),
        parallelism,
        variance,
        believed,
        variance,
        capacity,
        STRATEGIES[setting.strategy],
        False,
    )
    wait, turnaround = start - table.submit_time, end - table.submit_time
    makespan = int(end.max() - table.submit_time.min())
    return {
        "log": setting.log,
        "first": first,
        "jobs": count,
        "strategy": setting.strategy,
        "share": setting.share,
        "seed": setting.seed,
        "speed_up_known": setting.known,
        "turnaround_h": hours(turnaround),
        "wait_h": hours(wait),
        "rigid_wait_h": hours(wait[~grows]),
        "malleable_wait_h": hours(wait[grows]),
        "longest_wait_h": float(wait.max()) / HOUR,
        "makespan_h": makespan / HOUR,
        "utilisation": float(area.sum()) / (capacity * makespan),
        "changes": int(changes),
    }


def hours(times):
    """Mean in hours; None where there is nothing."""
    return float(times.mean()) / HOUR if len(times) else None


def cases(run):
    """Rigid jobs under EASY, and every strategy with more and more malleable jobs."""
    logs = list(LOGS)[: run.either(None, 2)]
    absent = missing(logs)
    spans = {log: (WHOLE,) if log in absent else run.either(LOGS[log].spans, ((10_000, 12_000),)) for log in logs}
    return {
        "rigid": [Setting(log, span, EASY, 0.0, run.seed) for log in logs for span in spans[log]],
        "malleable": [
            Setting(log, span, strategy, share, seed, known)
            for log in logs
            for span in spans[log]
            for strategy in STRATEGIES
            if strategy != EASY
            for known in ((True, False) if strategy == OURS else (True,))
            for share in run.either((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (0.2, 1.0))
            for seed in run.seeds(5, 2)
        ],
    }


def together(spans):
    """The measures of a log's spans as of one: means over all jobs, the sum of makespans, utilisation over all time."""
    jobs, makespan = (sum(row[column] for row in spans) for column in ("jobs", "makespan_h"))
    return {
        "turnaround_h": sum(row["jobs"] * row["turnaround_h"] for row in spans) / jobs,
        "wait_h": sum(row["jobs"] * row["wait_h"] for row in spans) / jobs,
        "makespan_h": makespan,
        "utilisation": sum(row["utilisation"] * row["makespan_h"] for row in spans) / makespan,
    }


def against_easy(rows, rigid):
    """Every seed of every strategy and share against rigid EASY, in per cent."""
    plain = {log: together(spans) for (log,), spans in grouped(rigid, "log").items()}
    table = []
    keys = ("log", "strategy", "speed_up_known", "share", "seed")
    for group, spans in grouped(rows, *keys).items():
        whole, base = together(spans), plain[group[0]]
        line = dict(zip(keys, group, strict=True))
        for measure in MEASURES:
            line[f"{measure}_percent"] = 100 * (whole[measure] / base[measure] - 1) if base[measure] else 0.0
        table.append(line)
    return table


def gains(found):
    """Means over the seeds, with half of their intervals."""
    seeds = against_easy(found.answers["malleable"], found.answers["rigid"])
    return Means(by=("log", "strategy", "speed_up_known", "share"), of=CHANGES, digits=2).over(seeds)


def theirs(rows, log, share):
    """The study's own strategies, with a share of malleable jobs."""
    return [row for row in rows if (row["log"], row["share"]) == (log, share) and row["strategy"] != OURS]


def comparisons(found):
    """The study's ranges over its three machines, its best strategy each, beside the best of its strategies here."""
    rows, turnaround = found["gains"], "turnaround_h_percent"
    why = "another machine's log, and other sizes and speed-ups than theirs"
    told = []
    for (log,) in grouped(rows, "log"):
        best, few = (min(theirs(rows, log, share), key=lambda row: row[turnaround]) for share in (1.0, 0.2))
        what = f"{log}, all malleable, best of their strategies ({best['strategy']})"
        told += [
            Comparison(f"{what}: turnaround", "-37 to -67 %", best[turnaround], "%", at_most=-37.0, at_least=-67.0,
                       why=why, picture="gains.png"),
            Comparison(f"{log}, the same: wait", "-73 to -99 %", best["wait_h_percent"], "%", at_most=-73.0,
                       at_least=-99.0, why=why, picture="gains.png"),
            Comparison(f"{log}, 20 % malleable, best of their strategies ({few['strategy']}): turnaround",
                       "gains already", few[turnaround], "%", at_most=-1.0, why=why, picture="gains.png"),
        ]  # fmt: skip
    return told


def notes(found):
    """Where ours has surely the lower mean turnaround than each of the others, and where not."""
    told = []
    rows = [row for row in found["gains"] if row["share"]]
    for known, words in ((True, "known exactly"), (False, f"known within {BELIEF_ERROR:.0%}")):
        surely, not_so = [], []
        for ours in rows:
            if (ours["strategy"], ours["speed_up_known"]) == (OURS, known):
                top = ours["turnaround_h_percent"] + ours["turnaround_h_percent_half"]
                others = theirs(rows, ours["log"], ours["share"])
                lower = all(top < row["turnaround_h_percent"] - row["turnaround_h_percent_half"] for row in others)
                (surely if lower else not_so).append(f"{ours['log']} at {ours['share']:.0%}")
        told.append(
            f"Ours, speed-up {words}: lower mean turnaround than each of the others, by their 95 % intervals, in "
            f"{len(surely)} of {len(surely) + len(not_so)} cases" + (f"; not in {', '.join(not_so)}" if not_so else "")
        )
    return told


def style(line, number):
    """A colour for each strategy; dashes where the speed-up is not known."""
    strategy, known = line
    label = strategy if known else f"{strategy}, speed-up within {BELIEF_ERROR:.0%}"
    return {"color": SERIES[number], "marker": "o", "linestyle": "-" if known else "--", "label": label}


def stand_ins(found):
    """Which logs are synthetic."""
    absent = missing(dict.fromkeys(case.log for case in found.cases["rigid"]))
    return f"synthetic in place of {', '.join(absent)}" if absent else ""


STUDY = Study(
    name="malleable-logs",
    about="real logs with malleable jobs, against EASY with rigid ones",
    cases=cases,
    measure=run_case,
    tables={"runs": rows_of("rigid", "malleable"), "gains": gains},
    columns={
        "log": Column("", "workload log"),
        "first": Column("", "first job of the span, in order of submission"),
        "jobs": Column("jobs", "of the span"),
        "strategy": Column("", "who shrinks and grows"),
        "share": Column("share of jobs", "probability that a job is malleable"),
        "speed_up_known": Column("", "whether the scheduler knows the speed-up exactly, or within 30 %"),
        "turnaround_h": Column("h", "mean from submission to end"),
        "wait_h": Column("h", "mean from submission to start"),
        "rigid_wait_h": Column("h", "the same of rigid jobs"),
        "malleable_wait_h": Column("h", "the same of malleable jobs"),
        "longest_wait_h": Column("h", "the longest of all"),
        "makespan_h": Column("h", "from the first submission to the last end"),
        "utilisation": Column("share", "units held x time / (units x makespan)"),
        "changes": Column("", "changes of size"),
        **{name: Column("%", "against EASY with rigid jobs, mean over seeds") for name in CHANGES},
        **{f"{name}_half": Column("%", f"half of the 95 % interval of {name}") for name in CHANGES},
    },
    figures={
        "gains.png": Figure(
            title="Beyond Buisson and others: malleable jobs on logs, against EASY with rigid jobs",
            size=lambda found: (3.2 * len(grouped(found["gains"], "log")) + 1, 7),
            draw=Curves(
                table="gains",
                x=Axis("share", "malleable jobs (%)", 100),
                y=(
                    Axis("turnaround_h_percent", "mean turnaround\nagainst rigid EASY (%)"),
                    Axis("wait_h_percent", "mean wait\nagainst rigid EASY (%)"),
                ),
                panels=("log",),
                lines=("strategy", "speed_up_known"),
                spread="_half",
                style=style,
                title=lambda panel: panel[1],
                bottom=None,
            ),
            note="Bars: 95 % intervals of the mean over the seeds.",
        )
    },
    comparisons=comparisons,
    shown=(Shown("gains", "log share strategy speed_up_known turnaround_h_percent wait_h_percent"),),
    parameters={
        "left out": "jobs that are larger than the machine",
        "sizes": ASSIGNED_SIZES,
        "speed-up": ASSIGNED_SPEED_UP,
        "resize": "costs nothing",
        "ends": "jobs end at their requests",
    },
    notes=notes,
    stand_ins=stand_ins,
)
