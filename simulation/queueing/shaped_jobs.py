"""Requests for jobs of which a log tells only the size: shapes and connections drawn as in the 2005 study."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from simulation.kernel import MICROSECONDS_PER_SECOND
from simulation.machines.interface import Connection, JobRequest, Machine, has_places
from simulation.queueing.job_table import JobTable
from simulation.workload.shapes import Shape, check_probability, choose_shapes, choose_tori


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
        around = np.array([around_s(request.size) for request in self.requests], np.int64) * MICROSECONDS_PER_SECOND
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
