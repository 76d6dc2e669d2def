"""Logs of few jobs, and jobs through one queue: what the tests of machines, schedulers and queues share."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from simulation.machines.interface import Machine
from simulation.queueing.queue_simulation import EndedJob, QueueSimulation
from simulation.schedulers.declaration import make_scheduler
from simulation.schedulers.interface import Job, Scheduler
from simulation.workload.swf import FIELD_COUNT, FIELD_NAMES, SwfLog, write_swf

SUBMIT, RUN, SIZE, ASKED = "submit_time", "run_time", "allocated_processors", "requested_time"


def log_of(fields: Iterable[str], *jobs: tuple[int, ...]) -> SwfLog:
    """A log of jobs 1, 2, ... with these fields; the others are unknown."""
    columns = np.full((FIELD_COUNT, len(jobs)), -1, np.int64)
    columns[0] = np.arange(1, len(jobs) + 1)
    for name, values in zip(fields, zip(*jobs, strict=True), strict=True):
        columns[FIELD_NAMES.index(name)] = values
    return SwfLog(columns)


def write_log(path: Path, *jobs: tuple[int, int, int, int]) -> Path:
    """Write a log of jobs of a submission, a run time, a size and a requested time each."""
    write_swf(path, log_of((SUBMIT, RUN, SIZE, ASKED), *jobs))
    return path


def ended_jobs(machine: Machine, scheduler: Scheduler | str, jobs: Iterable[Job], **options: Any) -> list[EndedJob]:
    """Run jobs on an idle machine until all have ended."""
    ended: list[EndedJob] = []
    made = make_scheduler(scheduler) if isinstance(scheduler, str) else scheduler
    simulation = QueueSimulation(machine, made, on_end=ended.append, **options)
    for job in jobs:
        simulation.submit(job)
    simulation.run()
    return ended


def starts_of(ended: Iterable[EndedJob]) -> dict[int, int]:
    return {one.job.job_number: one.start_time for one in ended}
