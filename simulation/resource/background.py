"""The jobs that a live machine's own users submit: from a workload log, or generated month by month without end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Final

import numpy as np

from ramp.errors import WorkloadError
from ramp.model.instant import SECOND
from simulation.machines.grid import Grid
from simulation.machines.interface import Machine, has_cables
from simulation.malleable.malleability import MALLEABLE_STREAM, assigned_malleability
from simulation.queueing.job_table import JobTable, jobs_of_log, shaped_jobs
from simulation.schedulers.interface import Job
from simulation.workload.generators.lublin import DAY_S, synthetic_log
from simulation.workload.logs import find_log, known_logs
from simulation.workload.replay_source import SYNTHETIC
from simulation.workload.swf import SwfLog, read_swf

_MONTH_S: Final = 30 * DAY_S
_NUMBERS_A_MONTH: Final = 1_000_000
"""Job numbers set aside for each generated month; none has as many jobs."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a machine's own users submit.

    Attributes:
        log: name or path of a log, or `synthetic`.
        load: offered load, share of the machine; None leaves a log's arrivals as they are.
        size_divisor: processors of the log that make one unit of the machine.
        fat_probability: share of jobs with at least two units in each dimension, on machines with cables.
        torus_probability: share of jobs that are tori, on machines with cables.
        seed: of all that is drawn.
        malleable_share: probability with which a job is malleable, as `simulation.malleable.malleability` says.
        resize_cost: for how long a job stands still when its size changes, microseconds.
    """

    log: str
    load: float | None
    size_divisor: int = 1
    fat_probability: float = 0.0
    torus_probability: float = 0.0
    seed: int = 0
    malleable_share: float = 0.0
    resize_cost: int = 0


@dataclass(frozen=True, slots=True)
class Submission:
    """A job with its owner; `user` is None where that is unknown."""

    job: Job
    user: int | None


@dataclass(frozen=True, slots=True)
class Background:
    """Submissions in order of time, and what they come from (`log` or `synthetic`)."""

    source: str
    submissions: Iterator[Submission]


def open_background(workload: Workload, machine: Machine) -> Background:
    """Return the submissions of a workload for a machine.

    Args:
        workload: what its users submit.
        machine: the machine.

    Raises:
        WorkloadError: the log is damaged, or unknown and no synthetic workload can replace it.
    """
    path = None if workload.log == SYNTHETIC else find_log(workload.log)
    if path is not None:
        return Background("log", _of_log(workload, machine, path))
    if workload.log != SYNTHETIC and workload.log not in known_logs():
        known = ", ".join((*known_logs(), SYNTHETIC))
        raise WorkloadError(f"no copy of the log {workload.log!r}; known logs are {known}")
    return Background("synthetic", _generated(workload, machine))


def _of_log(workload: Workload, machine: Machine, path: Path) -> Iterator[Submission]:
    log = read_swf(path)
    jobs = jobs_of_log(log, size_divisor=workload.size_divisor)
    jobs = replace(jobs, submit_time=jobs.submit_time - jobs.submit_time[0])
    if workload.load is not None:
        jobs = jobs.with_load(Grid(machine.extents).size, workload.load)
    return _submissions(workload, machine, log, jobs, workload.seed)


def _generated(workload: Workload, machine: Machine) -> Iterator[Submission]:
    load = 0.7 if workload.load is None else workload.load
    if load == 0:
        return
    for month in count():
        digest = hashlib.sha256(f"{workload.seed}/{workload.log}/{month}".encode()).digest()
        seed = int.from_bytes(digest[:6], "big")
        log = synthetic_log(Grid(machine.extents).size, _MONTH_S, seed, load=load)
        jobs = jobs_of_log(log)
        jobs = replace(
            jobs,
            job_number=jobs.job_number + month * _NUMBERS_A_MONTH,
            submit_time=jobs.submit_time + month * _MONTH_S * SECOND,
        )
        yield from _submissions(workload, machine, log, jobs, seed)


def _submissions(workload: Workload, machine: Machine, log: SwfLog, jobs: JobTable, seed: int) -> Iterator[Submission]:
    shaped = shaped_jobs(
        jobs,
        machine,
        fat_probability=workload.fat_probability,
        torus_probability=workload.torus_probability if has_cables(machine) else 0.0,
        seed=seed,
        any_shape=machine.traits.chooses_shapes,
    )
    requests = shaped.requests
    accounts = jobs.accounts if jobs.accounts is not None else np.full((3, len(jobs)), -1)
    rows = zip(jobs.submit_time.tolist(), jobs.run_time.tolist(), jobs.requested_time.tolist(), strict=True)
    sizes, draw = [request.size for request in requests], np.random.default_rng([seed, MALLEABLE_STREAM])
    may_change = assigned_malleability(sizes, machine.capacity, workload.malleable_share, draw, workload.resize_cost)
    found = zip(requests, accounts.T.tolist(), rows, may_change, strict=True)
    for request, owners, times, malleability in found:
        job = Job(request.job_id, *times, request, malleability, *owners)
        yield Submission(job, job.user if job.user >= 0 else None)
