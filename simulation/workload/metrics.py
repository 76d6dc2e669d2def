"""Measures of a finished schedule: utilisation, waits, slowdowns.

Sources: utilisation as work done over capacity times makespan (A. V. Mukosey and others 2019, section 4; the reading of
Y. Aridor and others 2005 that fits their figures); relative wait from the same study of 2019; bounded slowdown from
D. G. Feitelson and others, "Theory and practice in parallel job scheduling", JSSPP 1997.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.model.instant import SECOND

Int64Array = NDArray[np.int64]

BOUNDED_SLOWDOWN_THRESHOLD_S: Final = 10
"""Run times below this count as this, so that very short jobs do not rule the mean."""
SHORTEST_RUN_S: Final = 1
"""Run times below this count as this in the relative wait, which is a plain ratio."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The segments of runs whose size changed, by columns; times in microseconds.

    Attributes:
        job: index of the job in the schedule, shape (pieces,).
        begin: shape (pieces,).
        end: shape (pieces,).
        held: units, shape (pieces,).
    """

    job: Int64Array
    begin: Int64Array
    end: Int64Array
    held: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """A finished schedule by columns; one entry a job, times in microseconds.

    Attributes:
        submit_time: shape (jobs,).
        start_time: shape (jobs,).
        end_time: shape (jobs,).
        size: units the job can use, shape (jobs,).
        held: units it was given, shape (jobs,); not below `size`.
        capacity: units of the machine.
        pieces: of all jobs whose size changed while they ran; None where none did. What such a job held is its work,
            and its `size` and `held` are the means over its run, rounded.
    """

    submit_time: Int64Array
    start_time: Int64Array
    end_time: Int64Array
    size: Int64Array
    held: Int64Array
    capacity: int
    pieces: Pieces | None = None

    def __len__(self) -> int:
        return int(self.submit_time.size)

    def segments(self) -> Pieces:
        """Return all runs in segments: one of each job whose size stayed, all of the others; in order of the jobs."""
        count = len(self)
        whole = Pieces(np.arange(count, dtype=np.int64), self.start_time, self.end_time, self.held)
        if self.pieces is None:
            return whole
        stayed = np.ones(count, np.bool_)
        stayed[self.pieces.job] = False
        columns = [
            np.concatenate((getattr(whole, name)[stayed], getattr(self.pieces, name)))
            for name in ("job", "begin", "end", "held")
        ]
        order = np.lexsort((columns[1], columns[0]))
        return Pieces(*(column[order] for column in columns))

    @property
    def makespan(self) -> int:
        """Microseconds from the first submission to the last end; 0 without jobs."""
        return int(self.end_time.max() - self.submit_time.min()) if len(self) else 0


@dataclass(frozen=True, slots=True)
class Summary:
    """The measures of a schedule.

    Attributes:
        jobs: number of jobs.
        utilisation: work done / (capacity x makespan), 0 to 1; work = units the jobs asked for x run time.
        occupancy: the same with the units the jobs held, needed or not.
        mean_wait_s: seconds from submission to start.
        mean_relative_wait: wait / run time.
        mean_bounded_slowdown: max(1, (wait + run) / max(run, 10 s)).
        makespan_s: first submission to last end, seconds.
    """

    jobs: int
    utilisation: float
    occupancy: float
    mean_wait_s: float
    mean_relative_wait: float
    mean_bounded_slowdown: float
    makespan_s: float


def summarise(schedule: Schedule) -> Summary:
    """Return all measures of a schedule; zeros without jobs."""
    if not len(schedule):
        return Summary(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    wait = schedule.start_time - schedule.submit_time
    run = schedule.end_time - schedule.start_time
    return Summary(
        jobs=len(schedule),
        utilisation=utilisation(schedule),
        occupancy=occupancy(schedule),
        mean_wait_s=float(wait.mean()) / SECOND,
        mean_relative_wait=float((wait / np.maximum(run, SHORTEST_RUN_S * SECOND)).mean()),
        mean_bounded_slowdown=float(bounded_slowdown(wait, run).mean()),
        makespan_s=schedule.makespan / SECOND,
    )


def bounded_slowdown(wait: Int64Array, run: Int64Array) -> NDArray[np.float64]:
    """Return the bounded slowdown of each job: max(1, (wait + run) / max(run, 10 s)); arguments in microseconds."""
    bounded = np.maximum(run, BOUNDED_SLOWDOWN_THRESHOLD_S * SECOND)
    slowdown: NDArray[np.float64] = np.maximum(1.0, (wait + run) / bounded)
    return slowdown


def utilisation(schedule: Schedule) -> float:
    """Work done / (capacity x makespan): 0 to 1.

    The makespan runs from the first submission to the last end, so the drain at the end of a log counts as idle.
    """
    if schedule.makespan == 0:
        return 0.0
    return _work(schedule, int(schedule.end_time.max())) / (schedule.capacity * schedule.makespan)


def utilisation_while_arriving(schedule: Schedule) -> float:
    """Work done until the last submission / (capacity x time from first to last submission): 0 to 1.

    Leaves out the drain after the last submission, when no new job can fill the machine.
    """
    if not len(schedule):
        return 0.0
    last = int(schedule.submit_time.max())
    length = last - int(schedule.submit_time.min())
    return _work(schedule, last) / (schedule.capacity * length) if length else 0.0


def occupancy(schedule: Schedule) -> float:
    """Return the units held, needed or not, x time / (capacity x makespan): 0 to 1."""
    if schedule.makespan == 0:
        return 0.0
    return _area(schedule, schedule.held, int(schedule.end_time.max())) / (schedule.capacity * schedule.makespan)


def _work(schedule: Schedule, until: int) -> float:
    """Return the unit-microseconds of work done before `until`."""
    return _area(schedule, schedule.size, until)


def _area(schedule: Schedule, units: Int64Array, until: int) -> float:
    """Return the unit-microseconds before `until`, with the units of each job; of changed ones those held."""
    run = np.maximum(np.minimum(schedule.end_time, until) - schedule.start_time, 0)
    area = units.astype(np.float64) * run
    pieces = schedule.pieces
    if pieces is not None:
        lasted = np.maximum(np.minimum(pieces.end, until) - pieces.begin, 0)
        area[pieces.job] = 0.0
        np.add.at(area, pieces.job, pieces.held.astype(np.float64) * lasted)
    return float(area.sum())
