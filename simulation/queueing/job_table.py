"""The jobs of a log as a simulator takes them: who is left out, which times count, in which order.

Decisions where logs leave it open:

- A job without known processors, without a known time of submission, or without a known run time (it was cancelled
  before it started), is left out; one that ran for less than a second (run time 0) is kept.
- The size is what the job was given, and what it asked for where that is unknown, divided by the size divisor and
  rounded up (the 2005 Blue Gene/L study divides the CTC log's sizes by 4).
- A requested time that the log does not state is taken as the run time.
- Jobs are taken in order of submission; equal times keep the order of the log.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import isfinite, prod

import numpy as np
from numpy.typing import NDArray

from ramp.errors import WorkloadError
from ramp.model.instant import SECOND
from simulation.machines.interface import Connection, JobRequest, Machine, has_places
from simulation.workload.shapes import Shape, check_probability, choose_shapes, choose_tori
from simulation.workload.swf import SwfLog

Int64Array = NDArray[np.int64]

ARRIVALS_MAX = 10**12
"""Span of the arrivals, in the unit given, above which a load is refused: no simulation wants to last so long."""


def offered_load(submit_time: Int64Array, run_time: Int64Array, size: Int64Array, capacity: int) -> float:
    """Work submitted / (capacity x time from the first to the last submission).

    Args:
        submit_time: any unit, shape (jobs,).
        run_time: same unit, shape (jobs,).
        size: units each job asks for, shape (jobs,).
        capacity: units of the machine.

    Raises:
        WorkloadError: all jobs are submitted at one time, or the machine has no unit: there is no load to speak of.
    """
    if capacity < 1:
        raise WorkloadError("the offered load needs a machine with units in service")
    length = int(submit_time.max() - submit_time.min()) if submit_time.size else 0
    if length <= 0:
        raise WorkloadError("the offered load needs jobs submitted at two or more times")
    return float((size.astype(np.float64) * run_time).sum()) / (capacity * length)


def scale_arrivals(
    submit_time: Int64Array, run_time: Int64Array, size: Int64Array, capacity: int, load: float
) -> Int64Array:
    """Return the submission times that offer the machine a given load; the first submission stays where it is.

    Args:
        submit_time: any unit, shape (jobs,).
        run_time: same unit, shape (jobs,).
        size: units each job asks for, shape (jobs,).
        capacity: units of the machine.
        load: offered load wanted, above 0 (1 = as much work as the machine can do).

    Returns:
        New submission times in the same order and unit, shape (jobs,).

    Raises:
        WorkloadError: the load is not positive, or so small that the arrivals would not fit `ARRIVALS_MAX`, or the
            jobs have none.
    """
    if not load > 0 or not isfinite(load):
        raise WorkloadError(f"load must be above 0, got {load}")
    offered = offered_load(submit_time, run_time, size, capacity)
    first, last = int(submit_time.min()), int(submit_time.max())
    least = (last - first) * offered / ARRIVALS_MAX
    if load < least:
        raise WorkloadError(f"load must be at least {least:.2g} for these jobs, got {load}")
    factor = offered / load
    scaled: Int64Array = first + np.rint((submit_time - first) * factor).astype(np.int64)
    return scaled


LOG_SECONDS_MAX = 10**12
"""Seconds from 0 within which all jobs must end even one after the other: times in microseconds stay in 64 bits then,
and a request may still be doubled when a job outruns it."""


@dataclass(frozen=True, slots=True, eq=False)
class JobTable:
    """Jobs by columns in order of submission; times in microseconds.

    Attributes:
        job_number: the log's numbers, unique, shape (jobs,).
        submit_time: ascending, shape (jobs,).
        run_time: shape (jobs,).
        requested_time: shape (jobs,).
        size: units asked for, at least 1, shape (jobs,).
        line: index of the job in the log it comes from, shape (jobs,).
        accounts: user, group and queue, -1 = unknown, shape (3, jobs); None where all are unknown.
    """

    job_number: Int64Array
    submit_time: Int64Array
    run_time: Int64Array
    requested_time: Int64Array
    size: Int64Array
    line: Int64Array
    accounts: Int64Array | None = None

    def __len__(self) -> int:
        return int(self.job_number.size)

    def select(self, jobs: NDArray[np.bool_] | slice) -> JobTable:
        """Return the chosen jobs, in the same order."""
        # the last axis is that of the jobs
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(self, **{name: column[..., jobs] for name, column in columns.items() if column is not None})

    def with_load(self, capacity: int, load: float) -> JobTable:
        """Return the same jobs with arrivals that offer a machine a load; they fall on whole seconds, as in logs.

        Args:
            capacity: units of the machine.
            load: work submitted / (capacity x time from first to last submission), above 0.

        Raises:
            WorkloadError: the load is not positive, or the jobs have none.
        """
        seconds = self.submit_time // SECOND
        run_time_s = self.run_time // SECOND
        scaled = scale_arrivals(seconds, run_time_s, self.size, capacity, load)
        return replace(self, submit_time=scaled * SECOND)

    def with_size(self, size: Int64Array) -> JobTable:
        """Return the same jobs with other sizes, shape (jobs,)."""
        return replace(self, size=size)


def jobs_of_log(log: SwfLog, *, size_divisor: int = 1, max_jobs: int | None = None) -> JobTable:
    """Return the jobs of a log.

    Args:
        log: the log.
        size_divisor: processors that make one unit of the machine.
        max_jobs: number of jobs to take, the first submitted; all by default.

    Raises:
        WorkloadError: the log has no job to simulate, a job number twice, or times beyond `LOG_SECONDS_MAX`.
    """
    processors, usable = log.processors, jobs_to_simulate(log)
    order = usable[np.argsort(log.submit_time[usable], kind="stable")][:max_jobs]
    if not order.size:
        raise WorkloadError(f"no job has a known size, submission time and run time among the log's {len(log)} jobs")
    _check_numbers(log, order)
    run_time = log.run_time[order]
    requested = log.requested_time[order]
    _check_times(log, order)
    return JobTable(
        job_number=log.job_number[order],
        submit_time=log.submit_time[order] * SECOND,
        run_time=run_time * SECOND,
        requested_time=np.where(requested > 0, requested, run_time) * SECOND,
        size=-(-processors[order] // size_divisor),
        line=order.astype(np.int64),
        accounts=np.stack([log.user_id[order], log.group_id[order], log.queue_number[order]]),
    )


def jobs_to_simulate(log: SwfLog) -> Int64Array:
    """Return lines of the jobs whose size, submission and run time the log knows, in its order, shape (jobs,)."""
    return np.flatnonzero((log.processors > 0) & (log.submit_time >= 0) & (log.run_time >= 0))


def _check_numbers(log: SwfLog, jobs: Int64Array) -> None:
    numbers = log.job_number[jobs]
    order = np.lexsort((jobs, numbers))
    twice = np.flatnonzero(np.diff(numbers[order]) == 0)
    if not twice.size:
        return
    # of all of them the one whose second job comes first in the log
    second = twice[np.argmin(jobs[order][twice + 1])] + 1
    one, other = (int(jobs[order[place]]) for place in (second - 1, second))
    first = f", first on line {log.lines[one]}" if log.lines is not None else ""
    raise WorkloadError(
        f"job number {log.job_number[one]} occurs twice{first}; each job needs its own number",
        path=log.source,
        line_number=None if log.lines is None else int(log.lines[other]),
    )


def _check_times(log: SwfLog, jobs: Int64Array) -> None:
    """Refuse times that would not fit 64 bits; summed as floats, which do not overflow."""
    submit, run, requested = (
        column[jobs].astype(np.float64) for column in (log.submit_time, log.run_time, log.requested_time)
    )
    longest = np.maximum(run, requested)
    if submit.max() + run.sum() + longest.max() <= LOG_SECONDS_MAX:
        return
    worst = int(np.argmax(np.maximum(submit, longest)))
    raise WorkloadError(
        f"job {int(log.job_number[jobs[worst]])}: submitted at {submit[worst]:.0f} s, runs {run[worst]:.0f} s, asks "
        f"for {requested[worst]:.0f} s; all jobs one after the other must end within {LOG_SECONDS_MAX} s"
    )


@dataclass(frozen=True, slots=True, eq=False)
class ShapedJobs:
    """Jobs and what each asks of a machine.

    Attributes:
        jobs: sizes are the shapes' volumes.
        requests: in the same order; ids are the job numbers.
    """

    jobs: JobTable
    requests: tuple[JobRequest, ...]

    def with_load(self, capacity: int, load: float) -> ShapedJobs:
        """Return the same jobs arriving so that their shapes offer a machine a load (`JobTable.with_load`)."""
        return ShapedJobs(self.jobs.with_load(capacity, load), self.requests)

    def in_blocks(self, around_s: Callable[[int], int]) -> ShapedJobs:
        """Return the same jobs, each as long as its block: configuring, booting and deallocating count as run time."""
        around = np.array([around_s(request.size) for request in self.requests], np.int64) * SECOND
        jobs = replace(
            self.jobs, run_time=self.jobs.run_time + around, requested_time=self.jobs.requested_time + around
        )
        return ShapedJobs(jobs, self.requests)


def shaped_jobs(
    jobs: JobTable,
    machine: Machine,
    *,
    fat_probability: float,
    torus_probability: float,
    seed: int,
    any_shape: bool = False,
) -> ShapedJobs:
    """Draw a shape and a connection for each job.

    Draws come from two streams of the seed, one number a job each, so that workloads of one seed differ only where
    their probabilities say so. A job that is larger than the machine keeps its size and has no shape.

    Args:
        jobs: the jobs.
        machine: gives the extents; a flat machine has no shapes, and its jobs just keep their sizes.
        fat_probability: share of jobs with at least two units in each dimension.
        torus_probability: share of jobs that are tori; the others are meshes.
        seed: of the draws.
        any_shape: jobs keep their sizes and leave the shape to the machine's allocator.

    Raises:
        WorkloadError: a probability is not one.
    """
    sizes = jobs.size.tolist()
    shapes: list[Shape | None]
    if any_shape or not has_places(machine):
        check_probability("fat probability", fat_probability)
        shapes = [None] * len(jobs)
    else:
        shapes = choose_shapes(sizes, machine.extents, fat_probability, random.Random(f"{seed}/shapes"))
    tori = choose_tori(len(jobs), torus_probability, random.Random(f"{seed}/tori"))
    requests = tuple(
        _request(number, size, shape, Connection.TORUS if torus else machine.traits.connection)
        for number, size, shape, torus in zip(jobs.job_number.tolist(), sizes, shapes, tori, strict=True)
    )
    return ShapedJobs(jobs.with_size(np.array([request.size for request in requests], dtype=np.int64)), requests)


def _request(number: int, size: int, shape: Shape | None, connection: Connection) -> JobRequest:
    if shape is None:
        return JobRequest(number, size, connection=connection)
    return JobRequest(number, prod(shape), shape, connection=connection)
