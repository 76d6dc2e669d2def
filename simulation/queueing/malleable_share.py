"""A share of a run's jobs that may change their size: who, how, and what came of them beside the rigid ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND
from simulation.malleable.malleability import (
    ASSIGNED_SIZES,
    ASSIGNED_SPEED_UP,
    MALLEABLE_STREAM,
    Malleability,
    assigned_malleability,
)
from simulation.queueing.whole_log import EventOrder, LogRun


@dataclass(frozen=True, slots=True)
class MalleableSummary:
    """Of a run in which a share of the jobs was made malleable. Means are None where there is no such job.

    Attributes:
        share: probability with which a job was made malleable.
        resize_cost_s: for how long a job stood still at every change of its size, seconds.
        sizes: how sizes were assigned, in words.
        speed_up: how speed-ups were assigned, in words.
        jobs: malleable jobs that ran.
        changed_jobs: of them, those whose size was changed, if only at the instant of the start.
        changes: of size while they ran, those at the instant of the start not counted.
        mean_turnaround_s: from submission to end, seconds, of all jobs.
        mean_malleable_wait_s: from submission to start, seconds, of malleable jobs.
        mean_rigid_wait_s: the same of rigid ones.
    """

    share: float
    resize_cost_s: int
    sizes: str
    speed_up: str
    jobs: int
    changed_jobs: int
    changes: int
    mean_turnaround_s: float | None
    mean_malleable_wait_s: float | None
    mean_rigid_wait_s: float | None

    @property
    def measures(self) -> dict[str, int | float]:
        """What came out by the names that tables have for it, without means of no job."""
        found = {
            "malleable_jobs": self.jobs,
            "changed_jobs": self.changed_jobs,
            "changes_of_size": self.changes,
            "mean_turnaround_s": self.mean_turnaround_s,
            "mean_malleable_wait_s": self.mean_malleable_wait_s,
            "mean_rigid_wait_s": self.mean_rigid_wait_s,
        }
        return {name: value for name, value in found.items() if value is not None}

    @property
    def notes(self) -> tuple[str, ...]:
        """How jobs were made malleable, in lines for people and for the headers of logs."""
        cost = f"a change of size costs {self.resize_cost_s} s"
        return (
            f"malleable with probability {self.share:g}: {self.jobs} jobs; {cost}",
            f"sizes, {self.sizes}",
            f"speed-up, {self.speed_up}",
        )


@dataclass(frozen=True, slots=True, eq=False)
class MalleableShare:
    """Who of the jobs of a run is malleable.

    Attributes:
        share: probability with which a job was made so.
        resize_cost_s: seconds for which a job stands still at every change of its size.
        job_number: of all jobs, in the order of submission, shape (jobs,).
        malleability: of each of them; None of a rigid one.
        sizes: how sizes were assigned, in words.
        speed_up: how speed-ups were assigned, in words.
    """

    share: float
    resize_cost_s: int
    job_number: NDArray[np.int64]
    malleability: tuple[Malleability | None, ...]
    sizes: str = ASSIGNED_SIZES
    speed_up: str = ASSIGNED_SPEED_UP

    def summary(self, run: LogRun) -> MalleableSummary:
        """Summarise a run of these jobs, some of which may have been refused."""
        can_change = self.job_number[[each is not None for each in self.malleability]]
        malleable = np.isin(run.jobs.job_number, can_change)
        schedule = run.schedule
        wait = schedule.start_time - schedule.submit_time
        pieces = schedule.pieces
        changed = 0 if pieces is None else len(np.unique(pieces.job))
        return MalleableSummary(
            share=self.share,
            resize_cost_s=self.resize_cost_s,
            sizes=self.sizes,
            speed_up=self.speed_up,
            jobs=int(malleable.sum()),
            changed_jobs=changed,
            changes=0 if pieces is None else len(pieces.job) - changed,
            mean_turnaround_s=_mean_s(schedule.end_time - schedule.submit_time),
            mean_malleable_wait_s=_mean_s(wait[malleable]),
            mean_rigid_wait_s=_mean_s(wait[~malleable]),
        )


def malleable_share_of(
    job_number: NDArray[np.int64],
    sizes: Sequence[int],
    capacity: int,
    share: float | None,
    resize_cost_s: int,
    seed: int,
    event_order: EventOrder = EventOrder.BATCH,
) -> MalleableShare | None:
    """Make a share of jobs malleable; None where none is asked for.

    Args:
        job_number: of all jobs of the run.
        sizes: units that each asks for.
        capacity: the most units that a malleable job may have.
        share: probability that a job is malleable.
        resize_cost_s: seconds that a change of size takes.
        seed: of the draws.
        event_order: of the run.

    Raises:
        ConfigurationError: share or cost cannot be, or does not go with the rest.
    """
    if share is None:
        if resize_cost_s:
            raise ConfigurationError("needs --malleable-share", key="resize-cost")
        return None
    if not 0 <= share <= 1:
        raise ConfigurationError(f"must be 0 to 1, got {share}", key="malleable-share")
    if resize_cost_s < 0:
        raise ConfigurationError(f"must be at least 0 s, got {resize_cost_s} s", key="resize-cost")
    if event_order is EventOrder.PYSS:
        raise ConfigurationError(
            f"needs the event order {EventOrder.BATCH}, got {EventOrder.PYSS}, which has only rigid jobs",
            key="malleable-share",
        )
    suspension = resize_cost_s * SECOND
    draw = np.random.default_rng([seed, MALLEABLE_STREAM])
    made = tuple(assigned_malleability(sizes, capacity, share, draw, suspension))
    return MalleableShare(share, resize_cost_s, job_number, made)


def _mean_s(times: NDArray[np.int64]) -> float | None:
    return float(times.mean()) / SECOND if len(times) else None
