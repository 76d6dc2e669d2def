"""Malleable jobs on real logs, against EASY with rigid jobs.

After P. Zojer, J. Posner, T. Oezden, "Evaluating Malleable Job Scheduling in HPC Clusters using Real-World Workloads",
arXiv 2602.17318, 2026, whose logs are Cori's, Eagle's and Theta's. Its strategies are read from its description:
rigid jobs and starts as under EASY; who shrinks and grows first differs. A strategy of our own stands beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from simulation.experiments.comparison import Comparison, tell_comparison
from simulation.experiments.means import confidence_interval
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.koala.logs_runs import (
    BELIEF_ERROR,
    LOGS,
    OURS,
    STRATEGIES,
    WHOLE,
    LogSetting,
    Span,
    is_stand_in,
    run_log_setting,
    span_words,
)
from simulation.experiments.koala.plots import draw_gains
from simulation.experiments.result import Column, Columns, grouped, write_rows, write_summary
from simulation.experiments.worker_processes import run_all
from simulation.malleable.assignment import ASSIGNED_SIZES, ASSIGNED_SPEED_UP

SHARES: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""At none all strategies but ours are EASY; what ours gains there is the order in which it starts jobs."""
QUICK_SHARES: Final = (0.2, 1.0)
SEEDS: Final = 5
QUICK_SEEDS: Final = 2
QUICK_SPAN: Final = Span(10_000, 2_000)
"""Of each log, in the small version."""
MEASURES: Final = ("turnaround_h", "wait_h", "makespan_h", "utilisation")
EASY: Final = "EASY"

_COLUMNS: Final[Columns] = {
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
    **{f"{name}_percent": Column("%", f"{name} against EASY with rigid jobs, mean over seeds") for name in MEASURES},
    **{f"{name}_half": Column("%", f"half of the 95 % interval of {name}_percent") for name in MEASURES},
}

Row = Mapping[str, Any]


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Run the study; see `simulation.experiments.discovery.RunExperiment`."""
    logs = list(LOGS)[:2] if quick else list(LOGS)
    shares = QUICK_SHARES if quick else SHARES
    stand_ins = [log for log in logs if is_stand_in(log)]  # shorter than the logs: taken whole
    spans = {log: (WHOLE,) if log in stand_ins else (QUICK_SPAN,) if quick else LOGS[log].spans for log in logs}
    seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
    rigid = [LogSetting(log, span, EASY, 0.0, seed) for log in logs for span in spans[log]]
    main = [
        LogSetting(log, span, strategy, share, one, known)
        for log in logs
        for span in spans[log]
        for strategy in STRATEGIES
        for known in ((True, False) if strategy == OURS else (True,))
        for share in shares
        for one in seeds
        if strategy != EASY
    ]
    rows = run_all(run_log_setting, [*rigid, *main], processes=processes, on_progress=on_progress)
    gains = _gains(rows[len(rigid) :], rows[: len(rigid)])
    write_rows(out / "runs.csv", rows)
    write_rows(out / "gains.csv", gains)
    draw_gains(out / "gains.csv", out / "gains.png", quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters=_parameters(spans, len(seeds)),
        comparisons=_comparisons(gains, logs),
        findings={"gains": gains, "notes": [*_notes(gains, logs, shares), _span_note(rows, shares)]},
        columns=_COLUMNS,
        stand_ins=f"synthetic in place of {', '.join(stand_ins)}" if stand_ins else "",
    )


def _gains(rows: Sequence[Row], rigid: Sequence[Row]) -> list[dict[str, Any]]:
    """Every strategy and share against rigid EASY: per cent, mean over seeds with half intervals."""
    plain = {log: _together(spans) for (log,), spans in grouped(rigid, "log").items()}
    found = []
    for (log, strategy, known, share), mine in grouped(rows, "log", "strategy", "speed_up_known", "share").items():
        line: dict[str, Any] = {"log": log, "strategy": strategy, "speed_up_known": known, "share": share}
        seeds = [_together(spans) for spans in grouped(mine, "seed").values()]
        for measure in MEASURES:
            base = plain[log][measure]
            value = confidence_interval([100 * (one[measure] / base - 1) if base else 0.0 for one in seeds])
            line |= {f"{measure}_percent": round(value.mean, 2), f"{measure}_half": round(value.half_width, 2)}
        still = [row["rigid_wait_h"] for row in mine if row["rigid_wait_h"] != ""]
        line["rigid_wait_h"] = round(sum(still) / len(still), 3) if still else ""
        line["longest_wait_h"] = round(max(row["longest_wait_h"] for row in mine), 1)
        found.append(line)
    return found


def _together(spans: Sequence[Row]) -> dict[str, float]:
    """The measures of a log's spans as of one: means over all jobs, the sum of makespans, utilisation over all time."""
    jobs = sum(row["jobs"] for row in spans)
    makespan = sum(row["makespan_h"] for row in spans)
    return {
        "turnaround_h": sum(row["jobs"] * row["turnaround_h"] for row in spans) / jobs,
        "wait_h": sum(row["jobs"] * row["wait_h"] for row in spans) / jobs,
        "makespan_h": makespan,
        "utilisation": sum(row["utilisation"] * row["makespan_h"] for row in spans) / makespan,
    }


def _of(gains: Sequence[Row], log: str, strategy: str, share: float, *, known: bool = True) -> Row:
    return next(
        row
        for row in gains
        if (row["log"], row["strategy"], row["share"], row["speed_up_known"]) == (log, strategy, share, known)
    )


def _theirs() -> list[str]:
    return [name for name in STRATEGIES if name not in {EASY, OURS}]


def _comparisons(gains: Sequence[Row], logs: Sequence[str]) -> list[Comparison]:
    """The study's ranges over its three machines, its best strategy each, beside the best of its strategies here."""
    found = []
    for log in logs:
        best = min((_of(gains, log, name, 1.0) for name in _theirs()), key=lambda row: row["turnaround_h_percent"])
        few = min((_of(gains, log, name, 0.2) for name in _theirs()), key=lambda row: row["turnaround_h_percent"])
        why = "another machine's log, and other sizes and speed-ups than theirs"
        found += [
            Comparison(f"{log}, all malleable, best of their strategies ({best['strategy']}): turnaround",
                       "-37 to -67 %", best["turnaround_h_percent"], "%", at_most=-37.0, at_least=-67.0, why=why,
                       picture="gains.png"),
            Comparison(f"{log}, the same: wait", "-73 to -99 %", best["wait_h_percent"], "%", at_most=-73.0,
                       at_least=-99.0, why=why, picture="gains.png"),
            Comparison(f"{log}, 20 % malleable, best of their strategies ({few['strategy']}): turnaround",
                       "gains already", few["turnaround_h_percent"], "%", at_most=-1.0, why=why, picture="gains.png"),
        ]  # fmt: skip
    return found


def _notes(gains: Sequence[Row], logs: Sequence[str], shares: Sequence[float]) -> list[str]:
    """Where ours has surely the lower mean turnaround than each of the others, and where not."""
    notes = []
    for known, words in ((True, "known exactly"), (False, f"known within {BELIEF_ERROR:.0%}")):
        surely: list[str] = []
        not_so: list[str] = []
        for log in logs:
            for share in filter(None, shares):
                ours = _of(gains, log, OURS, share, known=known)
                top = ours["turnaround_h_percent"] + ours["turnaround_h_half"]
                others = [_of(gains, log, name, share) for name in _theirs()]
                lower = all(top < row["turnaround_h_percent"] - row["turnaround_h_half"] for row in others)
                (surely if lower else not_so).append(f"{log} at {share:.0%}")
        notes.append(
            f"Ours, speed-up {words}: lower mean turnaround than each of the others, by their 95 % intervals, in "
            f"{len(surely)} of {len(surely) + len(not_so)} cases" + (f"; not in {', '.join(not_so)}" if not_so else "")
        )
    return notes


def _span_note(rows: Sequence[Row], shares: Sequence[float]) -> str:
    """In how many spans the mean turnaround over the seeds is the lowest with ours, at each share."""
    lowest = dict.fromkeys((share for share in shares if share), 0)
    spans = grouped(rows, "log", "first")
    for mine in spans.values():
        for share in lowest:
            told = [row for row in mine if row["share"] == share and row["speed_up_known"]]
            of = {name: sum(row["turnaround_h"] for row in ones) for (name,), ones in grouped(told, "strategy").items()}
            lowest[share] += min(of, key=lambda name: of[name]) == OURS
    words = ", ".join(f"{count} at {share:.0%}" for share, count in lowest.items())
    return f"Of {len(spans)} spans ours has the lowest mean turnaround in {words}"


def _parameters(spans: Mapping[str, Sequence[Span]], seeds: int) -> dict[str, Any]:
    return {
        "logs": {name: {"file": log.file, "units": log.capacity, "processors_per_unit": log.divisor}
                 for name, log in LOGS.items()},
        "jobs": {log: [span_words(span) for span in chosen] for log, chosen in spans.items()},
        "left out": "jobs that are larger than the machine",
        "sizes": ASSIGNED_SIZES,
        "speed-up": ASSIGNED_SPEED_UP,
        "resize": "costs nothing",
        "ends": "jobs end at their requests",
        "knowledge": f"speed-up known exactly, or the average parallelism within {BELIEF_ERROR:.0%}, uniform; only "
                     "ours looks at it",
        "seeds": seeds,
        "against": "EASY with the same jobs, all rigid",
    }  # fmt: skip


def _tell(summary: Mapping[str, Any]) -> list[str]:
    lines = [*tell_comparison(summary), "", *(f"Note: {note}" for note in summary["notes"]), ""]
    lines.append(f"{'log':6} {'share':>5} {'strategy':34} {'turnaround %':>15} {'wait %':>15} {'rigid wait h':>13}")
    for row in summary["gains"]:
        name = row["strategy"] + ("" if row["speed_up_known"] else ", within 30 %")
        lines.append(
            f"{row['log']:6} {row['share']:5.0%} {name:34}"
            f" {row['turnaround_h_percent']:8.1f} ±{row['turnaround_h_half']:5.1f}"
            f" {row['wait_h_percent']:8.1f} ±{row['wait_h_half']:5.1f} {row['rigid_wait_h']!s:>13}"
        )
    return lines


EXPERIMENTS: Final = (
    Experiment("malleable-logs", "real logs with malleable jobs, against EASY with rigid ones", run, _tell),
)
