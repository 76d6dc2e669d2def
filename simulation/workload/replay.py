"""A workload log replayed as a live batch queue: what runs and what waits at any instant of the log.

What runs is the log's own decision: a job runs from submit + wait for its run time. What waits was submitted and has
not started. What the future brings is projected from requested times only (`simulation.workload.profile`).

Log time is in microseconds and counts from the log's first submission, since cleaned logs start late (the paper's
base times would lie before the first job otherwise). The log's own numbers are whole seconds.

Decisions where logs leave it open:

- A job without known cores or submission, or wider than the machine, is left out; a wait of -1 counts as 0 (such logs
  state when the job started); a job that never ran (cancelled) waits until submit + wait and is gone then.
- A running job's projected end is its start + requested time. One that has outrun its request is given the next of
  `OVERRUN_STEPS` beyond it, so that the longer it overruns the longer it is expected to go on (after D. Tsafrir,
  Y. Etsion, D. G. Feitelson, "Backfilling Using System-Generated Predictions Rather than User Runtime Estimates",
  IEEE TPDS 18(6), 2007, where predictions that proved too short are corrected by such steps).
- A requested time that the log does not state is taken as the run time that 99 of 100 of its jobs keep within: the
  site's limit as far as the log shows it (12 hours for Thunder, which states next to none), no knowledge of the job.
- Where the log runs more cores at a time than the machine has (time sharing, slips in the log), the jobs that started
  last and do not fit count as waiting, so that no core is taken twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.errors import WorkloadError
from ramp.model.instant import HOUR, MINUTE, SECOND, Duration
from simulation.workload.swf import SwfLog

Int64Array = NDArray[np.int64]

SPACING: Final = 128
"""Starts between two checkpoints: what has to be looked through beyond a checkpoint's own set."""


@dataclass(frozen=True, slots=True, eq=False)
class IntervalIndex:
    """Intervals [start, end), sorted by start, with the set of open ones written down at every `SPACING`-th start.

    Attributes:
        order: shape (intervals,), number of each interval in the caller's arrays, by start.
        starts: shape (intervals,), ascending.
        ends: shape (intervals,), in the order of `starts`.
        open_intervals: positions (in start order) open at each checkpoint, one checkpoint after the other.
        open_offsets: shape (checkpoints + 1,), where each checkpoint's part of `open_intervals` begins.
    """

    order: Int64Array
    starts: Int64Array
    ends: Int64Array
    open_intervals: Int64Array
    open_offsets: Int64Array

    @staticmethod
    def build(starts: Int64Array, ends: Int64Array) -> IntervalIndex:
        """Index intervals; empty ones (end <= start) are left out.

        Args:
            starts: shape (intervals,).
            ends: shape (intervals,), exclusive.
        """
        order = np.flatnonzero(ends > starts)
        order = order[np.argsort(starts[order], kind="stable")]
        starts, ends = starts[order], ends[order]
        positions = np.arange(len(order), dtype=np.int64)
        checkpoint_times = starts[::SPACING]
        first = positions // SPACING + 1
        behind_last = np.searchsorted(checkpoint_times, ends, side="left")
        counts = np.maximum(behind_last - first, 0)
        entries = np.repeat(positions, counts)
        within = np.arange(len(entries)) - np.repeat(np.cumsum(counts) - counts, counts)
        checkpoints = np.repeat(first, counts) + within
        by_checkpoint = np.argsort(checkpoints, kind="stable")
        offsets = np.searchsorted(checkpoints[by_checkpoint], np.arange(len(checkpoint_times) + 1))
        return IntervalIndex(order, starts, ends, entries[by_checkpoint], offsets.astype(np.int64))

    def holding(self, point: int) -> Int64Array:
        """Return the intervals that hold a point.

        Args:
            point: on the axis of starts and ends.

        Returns:
            Numbers of the intervals in the caller's arrays, by start.
        """
        started = int(np.searchsorted(self.starts, point, side="right"))
        if started == 0:
            return self.order[:0]
        checkpoint = (started - 1) // SPACING
        earlier = self.open_intervals[self.open_offsets[checkpoint] : self.open_offsets[checkpoint + 1]]
        later = np.arange(checkpoint * SPACING, started)
        candidates = np.concatenate((earlier, later))
        found: Int64Array = self.order[candidates[self.ends[candidates] > point]]
        return found


OVERRUN_STEPS: Final[tuple[Duration, ...]] = (
    *(minutes * MINUTE for minutes in (1, 5, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 5, 10, 20, 50, 100)),
)
"""How far beyond its request a job is expected to run at most; behind the last one, that once more from now."""
DEFAULT_REQUEST: Final[Duration] = HOUR
"""Requested time where the log states none and no job ran."""


@dataclass(frozen=True, slots=True, eq=False)
class QueueState:
    """What runs and what waits at one instant.

    Attributes:
        running: numbers of the running jobs in the replay's arrays, by start.
        queued: numbers of the waiting jobs, by submission.
    """

    running: Int64Array
    queued: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class ReplayLog:
    """A log indexed for questions about instants; all times in microseconds from the first submission.

    Attributes:
        capacity: cores of the machine.
        job_number: shape (jobs,), the log's job numbers, by submission.
        user_id: shape (jobs,), the log's users, -1 unknown.
        submitted: shape (jobs,), ascending.
        started: shape (jobs,), the log's own start.
        ended: shape (jobs,), the log's own end; equals `started` for a job that never ran.
        cores: shape (jobs,), 1 to `capacity`.
        requested: shape (jobs,), requested times, positive.
        left_out: jobs of the log that are not replayed.
        running_index: intervals [started, ended).
        queued_index: intervals [submitted, started).
    """

    capacity: int
    job_number: Int64Array
    user_id: Int64Array
    submitted: Int64Array
    started: Int64Array
    ended: Int64Array
    cores: Int64Array
    requested: Int64Array
    left_out: int
    running_index: IntervalIndex = field(repr=False)
    queued_index: IntervalIndex = field(repr=False)

    @staticmethod
    def build(log: SwfLog, capacity: int) -> ReplayLog:
        """Index a log for a machine.

        Args:
            log: the log, jobs in any order.
            capacity: cores of the machine.

        Raises:
            WorkloadError: no job of the log can be replayed on this machine.
        """
        usable = np.flatnonzero((log.processors > 0) & (log.processors <= capacity) & (log.submit_time >= 0))
        if usable.size == 0:
            raise WorkloadError(f"the log has no job of 1 to {capacity} cores among its {len(log)} jobs")
        jobs = log.select(usable[np.argsort(log.submit_time[usable], kind="stable")])
        origin = log.submit_time[log.submit_time >= 0].min()
        submitted = (jobs.submit_time - origin) * SECOND
        started = submitted + np.maximum(jobs.wait_time, 0) * SECOND
        ended = started + np.maximum(jobs.run_time, 0) * SECOND
        stated = jobs.requested_time > 0
        ran = jobs.run_time[jobs.run_time > 0]
        default = int(np.percentile(ran, 99, method="higher")) * SECOND if ran.size else DEFAULT_REQUEST
        return ReplayLog(
            capacity=capacity,
            job_number=jobs.job_number.copy(),  # a view keeps the whole log
            user_id=jobs.user_id.copy(),
            submitted=submitted,
            started=started,
            ended=ended,
            cores=jobs.processors,
            requested=np.where(stated, jobs.requested_time * SECOND, default).astype(np.int64),
            left_out=len(log) - len(jobs),
            running_index=IntervalIndex.build(started, ended),
            queued_index=IntervalIndex.build(submitted, started),
        )

    def state_at(self, now: int) -> QueueState:
        """Return what runs and what waits at an instant.

        Args:
            now: log time, microseconds; before 0 and after the log's end the machine is empty.
        """
        running = self.running_index.holding(now)
        queued = self.queued_index.holding(now)
        cores = self.cores[running]
        if cores.sum() > self.capacity:
            fits = self._fitting(cores)
            queued = np.sort(np.concatenate((queued, running[~fits])))
            running = running[fits]
        return QueueState(running, queued)

    def projected_ends(self, running: Int64Array, now: int) -> Int64Array:
        """Return when running jobs are expected to end.

        Args:
            running: numbers of the jobs.
            now: log time, microseconds.

        Returns:
            Shape of `running`; microseconds, all after `now`.
        """
        ends: Int64Array = self.started[running] + self.requested[running]
        if (ends > now).all():
            return ends
        steps = np.array((0, *OVERRUN_STEPS), dtype=np.int64)
        step = np.searchsorted(steps, now - ends, side="right")
        beyond = np.where(step < len(steps), ends + steps[np.minimum(step, len(steps) - 1)], now + steps[-1])
        return np.where(ends > now, ends, beyond).astype(np.int64)

    def _fitting(self, cores: Int64Array) -> NDArray[np.bool_]:
        room = self.capacity
        fits = np.zeros(len(cores), dtype=np.bool_)
        for position, wanted in enumerate(cores.tolist()):
            if wanted <= room:
                room -= wanted
                fits[position] = True
        return fits
