"""Real logs with some of their jobs made malleable: how jobs are made, and one simulation of a strategy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simulation.malleable.assignment import LARGER, SMALLER, draw_laws
from simulation.queueing.job_table import JobTable, jobs_of_log
from simulation.schedulers.compiled.malleable import (
    AVERAGE_POOL,
    AVERAGE_STEAL,
    MARGINAL_GAIN,
    MINIMUM,
    PREFERRED,
    RIGID,
    easy_malleable,
)
from simulation.workload.generators.lublin import synthetic_log
from simulation.workload.logs import find_log
from simulation.workload.swf import read_swf

HOUR: Final = 3_600_000_000
"""Microseconds."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some of a log's jobs.

    Attributes:
        first: the first of them, in order of submission.
        jobs: how many; None for all that follow.
    """

    first: int
    jobs: int | None


WHOLE: Final = Span(0, None)


def span_words(span: Span) -> str:
    """A span for people."""
    return "all" if span == WHOLE else f"{span.jobs} from job {span.first} on"


@dataclass(frozen=True, slots=True)
class LogOfStudy:
    """A log and the machine that it is run on.

    Attributes:
        file: name of the log.
        capacity: units of the machine.
        divisor: processors of the log that make one unit.
        spans: parts of its jobs, each simulated by itself; empty = the whole log.
    """

    file: str
    capacity: int
    divisor: int = 1
    spans: tuple[Span, ...] = (WHOLE,)


def _spans(every: int) -> tuple[Span, ...]:
    """Return five spans of 20 000 jobs, `every` jobs from begin to begin; a log's first 10 000 are left out."""
    return tuple(Span(10_000 + number * every, 20_000) for number in range(5))


LOGS: Final = {
    "CTC": LogOfStudy("CTC-SP2-1996-3.1-cln", 338),
    "SDSC": LogOfStudy("SDSC-SP2-1998-4.2-cln", 128),
    "Curie": LogOfStudy("CEA-Curie-2011-2.1-cln", 5832, 16, _spans(60_000)),
    "RICC": LogOfStudy("RICC-2010-2", 1024, 8, _spans(100_000)),
}
"""Curie and RICC by nodes, of 16 and 8 cores; jobs that are larger than the machine are left out."""

STRATEGIES: Final = {
    "EASY": RIGID,
    "minimum": MINIMUM,
    "preferred": PREFERRED,
    "average pool": AVERAGE_POOL,
    "average steal": AVERAGE_STEAL,
    "marginal gain (ours)": MARGINAL_GAIN,
}
OURS: Final = "marginal gain (ours)"
BELIEF_ERROR: Final = 0.3
"""The believed average parallelism is off by a factor uniform within 1 plus and minus this, where it is not known."""
STAND_IN_DAYS: Final = 30


@dataclass(frozen=True, slots=True)
class LogSetting:
    """All that decides one simulation.

    Attributes:
        log: name in `LOGS`.
        span: the jobs taken.
        strategy: name in `STRATEGIES`.
        share: probability that a job is malleable.
        seed: of what is drawn; jobs that are malleable at a share are so at every larger one.
        known: the scheduler knows the speed-up exactly.
    """

    log: str
    span: Span
    strategy: str
    share: float
    seed: int
    known: bool = True


def is_stand_in(log: str) -> bool:
    """Whether the log is not on this computer, so that a synthetic one is taken."""
    return find_log(LOGS[log].file) is None


@lru_cache(maxsize=4)
def jobs_of(log: str) -> JobTable:
    """The jobs of a log that fit its machine."""
    chosen = LOGS[log]
    path = find_log(chosen.file)
    if path is None:
        table = jobs_of_log(synthetic_log(chosen.capacity, STAND_IN_DAYS * 86_400, 1, load=0.9))
    else:
        table = jobs_of_log(read_swf(path), size_divisor=chosen.divisor)
    return table.select(table.size <= chosen.capacity)


def run_log_setting(setting: LogSetting) -> dict[str, Any]:
    """Run one simulation; setting and measures as one row."""
    capacity = LOGS[setting.log].capacity
    first, jobs = setting.span.first, setting.span.jobs
    table = jobs_of(setting.log).select(slice(first, None if jobs is None else first + jobs))
    count = len(table)
    draw = np.random.default_rng([setting.seed, first])
    laws = draw_laws(draw, count, setting.share)
    malleable, variance = laws.malleable, laws.variance
    parallelism = np.maximum(1.0, table.size * laws.parallelism)
    error = draw.uniform(1 - BELIEF_ERROR, 1 + BELIEF_ERROR, count)
    believed = parallelism if setting.known else np.maximum(1.0, parallelism * error)
    requested = np.maximum(table.requested_time, 1)
    start, end, area, changes, _ = easy_malleable(
        table.submit_time,
        np.minimum(table.run_time, requested),
        requested,
        table.size,
        np.where(malleable, -(-table.size // SMALLER), table.size),
        np.where(malleable, np.minimum(LARGER * table.size, capacity), table.size),
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
        "turnaround_h": _hours(turnaround),
        "wait_h": _hours(wait),
        "rigid_wait_h": _hours(wait[~malleable]),
        "malleable_wait_h": _hours(wait[malleable]),
        "longest_wait_h": float(wait.max()) / HOUR,
        "makespan_h": makespan / HOUR,
        "utilisation": float(area.sum()) / (capacity * makespan),
        "changes": int(changes),
    }


def _hours(times: NDArray[np.int64]) -> float | str:
    return float(times.mean()) / HOUR if len(times) else ""
