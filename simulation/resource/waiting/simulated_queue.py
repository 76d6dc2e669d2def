"""A queue in memory for trials of the plug-in `queue-bound`: first come, first served, local jobs drawn from a seed.

Everything follows from the time that is asked for, so it runs in real and in virtual time. Jobs that the market submits
join the queue when they are let go. Where a folder is given, they survive a restart.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Annotated, Final

from ramp.batch.system import Node, RunningJob, SystemSnapshot, WaitingJob
from ramp.batch.waiting.job_queue import OwnJob, Standing, WantedJob
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.options import Bounds, read_options, takes
from ramp.plugins.interface import PluginSettings
from ramp.runtime.atomic_writes import write_whole

JOBS_DRAWN: Final = 5_000
"""Local jobs of a run; days at any load, and then the queue runs empty."""


@dataclass(frozen=True, slots=True)
class SimulatedQueueOptions:
    """What the configuration says about such a queue.

    Attributes:
        load: share of the cores that local jobs keep busy in the long run; 0 for no local jobs.
        length_min: minutes that local jobs run on average, drawn from an exponential distribution.
    """

    load: Annotated[float, Bounds(0, 2)] = 0.0
    length_min: Annotated[int, Bounds(1, 1440)] = 30


@dataclass(frozen=True, slots=True)
class _Job:
    """A job, local or ours.

    Attributes:
        job_id: its number.
        name: ours have one.
        cores: that it wants.
        limit: microseconds that it asked for.
        run: microseconds that it runs.
        joins: when it joins the queue; None while it is held.
        start: when it started; None before.
        deleted: whether it was cancelled.
    """

    job_id: int
    name: str
    cores: int
    limit: Duration
    run: Duration
    joins: Instant | None
    start: Instant | None = None
    deleted: Instant | None = None

    def end(self) -> Instant:
        """Return when its cores are free again, once it has started."""
        assert self.start is not None
        end = self.start + self.run
        return end if self.deleted is None else max(min(end, self.deleted), self.start)


class SimulatedQueue:
    """A `ramp.batch.waiting.job_queue.JobQueue`.

    Args:
        cores: of the machine.
        options: its local jobs.
        seed: of the draws.
        begin: when the machine began to run.
        path: file of the market's jobs; None for memory.
    """

    name = "simulated"
    source = "synthetic"

    def __init__(
        self, cores: int, options: SimulatedQueueOptions, seed: int, begin: Instant, path: Path | None = None
    ) -> None:
        self._cores = cores
        self._path = path
        self._now = begin
        self._jobs: list[_Job] = _local_jobs(cores, options, Random(f"{seed}/queue"), begin)
        if path is not None and path.exists():
            self._jobs += [_Job(**each) for each in json.loads(path.read_text("utf-8"))]

    # -- the interface -------------------------------------------------------------------------------------------

    def look(self, now: Instant) -> SystemSnapshot:
        self._advance(now)
        running = [job for job in self._jobs if job.start is not None and job.start <= now < job.end()]
        waiting = [job for job in self._jobs if job.start is None and job.deleted is None and _is_there(job, now)]
        return SystemSnapshot(
            now,
            (Node("node", self._cores),),
            tuple(_running(job) for job in running),
            tuple(
                WaitingJob(str(job.job_id), "local", job.joins, job.cores, 1, job.limit, held=job.joins is None)
                for job in sorted(waiting, key=_turn)
            ),
        )

    def find(self, name: str, account: str = "", job_id: str = "") -> tuple[OwnJob, ...]:
        return tuple(_told(job) for job in self._jobs if job.name == name)

    def submit(self, wanted: WantedJob) -> None:
        number = max((job.job_id for job in self._jobs), default=0) + 1
        self._jobs.append(_Job(number, wanted.name, wanted.cores.total, wanted.length, wanted.length, None))
        self._keep()

    def let_go(self, job_id: str, account: str = "") -> None:
        self._change(job_id, lambda job: replace(job, joins=self._now) if job.joins is None else job)

    def delete(self, job_id: str, account: str = "") -> None:
        self._change(job_id, lambda job: job if job.deleted is not None else replace(job, deleted=self._now))

    # -- what happens --------------------------------------------------------------------------------------------

    def _change(self, job_id: str, change: Callable[[_Job], _Job]) -> None:
        self._jobs = [change(job) if str(job.job_id) == job_id else job for job in self._jobs]
        self._keep()

    def _advance(self, now: Instant) -> None:
        """Start the jobs that start up to an instant: the first in the queue, as soon as enough cores are free."""
        self._now = max(now, self._now)
        turns = sorted(
            (
                place
                for place, job in enumerate(self._jobs)
                if job.start is None and job.deleted is None and job.joins is not None and job.joins <= self._now
            ),
            key=lambda place: _turn(self._jobs[place]),
        )
        last = 0
        for place in turns:
            job = self._jobs[place]
            assert job.joins is not None
            start = self._room(job.cores, max(job.joins, last))
            if start > self._now:
                break
            last = start
            self._jobs[place] = replace(job, start=start)
        if turns:
            self._keep()

    def _room(self, cores: int, earliest: Instant) -> Instant:
        """Return when this number of cores is free, not before an instant."""
        running = sorted((job.end(), job.cores) for job in self._jobs if job.start is not None and job.end() > earliest)
        free = self._cores - sum(taken for _, taken in running)
        for end, taken in running:
            if free >= cores:
                break
            free += taken
            earliest = end
        return earliest

    def _keep(self) -> None:
        if self._path is not None:
            ours = [asdict(job) for job in self._jobs if job.name]
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, json.dumps(ours).encode(), private=False)


def _local_jobs(cores: int, options: SimulatedQueueOptions, random: Random, begin: Instant) -> list[_Job]:
    """Draw jobs of at most a quarter of the machine, enough for the load, that ask for twice their time."""
    if options.load == 0:
        return []
    jobs, at = [], begin
    length = options.length_min * MINUTE
    largest = max(cores // 4, 1)
    pause = length * (largest + 1) / 2 / (cores * options.load)
    for number in range(1, JOBS_DRAWN + 1):
        at += int(random.expovariate(1 / pause))
        run = max(int(random.expovariate(1 / length)), MINUTE)
        jobs.append(_Job(number, "", random.randint(1, largest), 2 * run, run, at))
    return jobs


def _running(job: _Job) -> RunningJob:
    assert job.start is not None
    return RunningJob(
        str(job.job_id), "local", job.start, job.start + job.limit, (("node", job.cores),), submitted=job.joins
    )


def _is_there(job: _Job, now: Instant) -> bool:
    return job.joins is None or job.joins <= now


def _turn(job: _Job) -> tuple[bool, Instant, int]:
    return job.joins is None, job.joins or 0, job.job_id


def _told(job: _Job) -> OwnJob:
    if job.start is not None:
        return OwnJob(str(job.job_id), Standing.STARTED, job.start)
    if job.deleted is not None:
        return OwnJob(str(job.job_id), Standing.GONE)
    return OwnJob(str(job.job_id), Standing.HELD if job.joins is None else Standing.WAITING)


@takes(SimulatedQueueOptions)
def open_queue(settings: PluginSettings) -> SimulatedQueue:
    """Open a queue: the entry point `simulated` of the group `ramp.job_queues`.

    Raises:
        ConfigurationError: an option is wrong.
    """
    options = read_options(settings.options, SimulatedQueueOptions, within=settings.resource)
    path = None if settings.state_dir is None else settings.state_dir / f"{settings.resource}.jobs.json"
    return SimulatedQueue(settings.cores, options, settings.seed, settings.started_at, path)
