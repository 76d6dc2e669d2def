"""Malleable jobs on real logs, against EASY with rigid jobs.

After P. Zojer, J. Posner, T. Oezden, "Evaluating Malleable Job Scheduling in HPC Clusters using Real-World Workloads",
arXiv 2602.17318, 2026, whose logs are Cori's, Eagle's and Theta's. Its strategies are read from its description:
rigid jobs and starts as under EASY; who shrinks and grows first differs. A strategy of our own stands beside them.

ramp experiment run examples/studies/malleable_logs.py:STUDY --out results --quick
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.means import Means
from simulation.experiments.result import Column, grouped
from simulation.experiments.study import Comparison, Shown, Study, rows_of
from simulation.malleable.assignment import ASSIGNED_SIZES, ASSIGNED_SPEED_UP, LARGER, SMALLER, draw_laws
from simulation.plots.style import SERIES
from simulation.queueing.job_table import jobs_of_log
from simulation.schedulers.compiled import malleable
from simulation.schedulers.compiled.malleable import easy_malleable
from simulation.workload.generators.lublin import synthetic_log
from simulation.workload.logs import find_log
from simulation.workload.swf import read_swf

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
    EASY: malleable.RIGID,
    "minimum": malleable.MINIMUM,
    "preferred": malleable.PREFERRED,
    "average pool": malleable.AVERAGE_POOL,
    "average steal": malleable.AVERAGE_STEAL,
    OURS: malleable.MARGINAL_GAIN,
}
BELIEF_ERROR = 0.3  # the believed parallelism is off by up to this share, where it is not known
MEASURES = ("turnaround_h", "wait_h", "makespan_h", "utilisation")
CHANGES = tuple(f"{measure}_percent" for measure in MEASURES)


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
