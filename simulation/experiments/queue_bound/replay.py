"""A whole log once more, job by job, as predictors of waits would have seen it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.queue_bound.predictor import Predictor, QueuedJob
from ramp.queue_bound.queue_plan import JobShape, Planner, QueuePlan

Int64Array = NDArray[np.int64]
FloatArray = NDArray[np.float64]

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
    plan = QueuePlan(history.capacity, planner)
    planned = np.zeros(history.submit.size, np.int64)
    sizes, lengths = history.size.tolist(), history.length.tolist()
    for now, kind, job in history.events():
        if kind == SUBMISSION:
            planned[job] = plan.submit(job, JobShape(sizes[job], lengths[job]), now) - now
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
    for now, kind, job in history.events():
        if kind == SUBMISSION:
            predictor.passes(now)
            for column, deadline in enumerate(deadlines):
                chance = predictor.chance(queued[job], deadline)
                if chance is not None:
                    chances[job, column] = chance
            bound = predictor.submitted(job, queued[job], now)
            if bound is not None:
                bounds[job] = bound
        elif kind == START:
            predictor.started(job, now)
    return Predictions(bounds, chances)
