"""A workload log as a queue that cannot be reserved: its jobs run by EASY on a flat machine, beside the market's own.

Everything follows from the log, the machine's clock and what the market has done when, so it runs in real and in
virtual time, and a restart lives through the same history. Jobs that the market submits join the queue when they are
let go, and wait their turn as the log's own do; so the log's waits become others as soon as something is sold. Where
there is no copy of the log, a synthetic workload fitted to the machine stands in, and `source` says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import dropwhile
from pathlib import Path
from typing import Annotated, Final

from ramp.batch.system import Node, RunningJob, SystemSnapshot, WaitingJob
from ramp.batch.waiting.job_queue import JobQueue, OwnJob, Standing, WantedJob
from ramp.errors import ConfigurationError, WorkloadError
from ramp.model.instant import DAY, SECOND, Duration, Instant
from ramp.options import Bounds, Wanted, read_options, takes
from ramp.plugins.interface import PluginSettings
from ramp.runtime.atomic_writes import write_whole
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import JobRequest
from simulation.queueing.queue_simulation import EndedJob, QueueSimulation
from simulation.resource.background import Submission, Workload, open_background
from simulation.resource.machine_clock import MachineClock
from simulation.schedulers.interface import Job
from simulation.schedulers.policies.easy import EasyBackfill

HISTORY: Final[Duration] = 14 * DAY
"""What of the log before the machine's clock begins is lived through; jobs run for days, not for weeks."""

FIRST_NUMBER: Final = 900_000_000
"""Number of the market's first job, above the number of jobs in any log."""

_LOAD: Final = Wanted("a load above 0", lambda value: 0 < value <= 10)


@dataclass(frozen=True, slots=True)
class ReplayedQueueOptions:
    """What the configuration says about such a queue.

    Attributes:
        log: name or path of the log, or synthetic.
        base_time_s: where the log stands when the machine's clock begins, seconds from its first submission.
        speed: how many times faster than the wall clock the machine's clock runs.
        load: share of the machine that the log's jobs want in the long run; the log's own by default.
    """

    log: Annotated[str, Wanted("the name or path of a workload log, or 'synthetic'", bool)]
    base_time_s: Annotated[int, Bounds(0)] = 0
    speed: Annotated[Fraction, Bounds(1, 10**9)] = Fraction(1)
    load: Annotated[float | None, _LOAD] = None


@dataclass(frozen=True, slots=True)
class _Own:
    """A job of the market's; times of the log, microseconds.

    Attributes:
        number: of the job.
        name: what it is found by.
        cores: that it wants.
        length: that it may run, and does.
        not_before: when it may begin at the earliest.
        joins: when it has joined, or will join, the queue; None while it is held.
        deleted: when it was deleted.
    """

    number: int
    name: str
    cores: int
    length: Duration
    not_before: int
    joins: int | None = None
    deleted: int | None = None


class ReplayedQueue(JobQueue):
    """A `ramp.batch.waiting.job_queue.JobQueue`.

    Args:
        cores: of the machine.
        submissions: the log's, in order of time.
        source: `log` or `synthetic`.
        clock: the machine's.
        path: file of the market's jobs; None for memory.
        name: of the queue in messages.

    Raises:
        ConfigurationError: the file is not one of jobs.
    """

    def __init__(
        self,
        cores: int,
        submissions: Iterator[Submission],
        source: str,
        clock: MachineClock,
        path: Path | None = None,
        *,
        name: str = "log",
    ) -> None:
        self.name = name
        self.source = source
        self._cores = cores
        self._clock = clock
        self._path = path
        self._submissions = submissions
        self._next = next(submissions, None)
        self._users: dict[int, int | None] = {}
        self._queue = QueueSimulation(FlatMachine(cores), EasyBackfill(), on_end=self._ended)
        self._starts: dict[int, int] = {}
        """Of the market's jobs that have started."""
        self._own: dict[int, _Own] = {each.number: each for each in _kept(path)}
        done = [(job.joins, each, False) for each, job in self._own.items() if job.joins is not None]
        done += [(job.deleted, each, True) for each, job in self._own.items() if job.deleted is not None]
        self._todo: list[tuple[int, int, bool]] = sorted(done)
        """What the market's jobs are still to do: when, which, and whether it is deleted; else it joins."""

    # -- the interface -------------------------------------------------------------------------------------------

    def look(self, now: Instant) -> SystemSnapshot:
        self._advance(self._clock.log_time(now))
        running = tuple(
            RunningJob(
                str(each.job.job_number),
                self._user(each.job.job_number),
                self._clock.instant(each.start_time),
                self._clock.instant(each.expected_end(self._queue.now)),
                (("node", each.placement.size),),
                submitted=self._clock.instant(each.job.submit_time),
            )
            for each in self._queue.running.values()
        )
        held = (each for each in self._own.values() if each.joins is None and each.deleted is None)
        return SystemSnapshot(
            now,
            (Node("node", self._cores),),
            running,
            (
                *(
                    self._waiting(each.job_number, each.submit_time, each.request.size, each.planned_length)
                    for each in self._queue.waiting
                ),
                *(self._waiting(each.number, None, each.cores, each.length) for each in held),
            ),
        )

    def find(self, name: str, account: str = "", job_id: str = "") -> tuple[OwnJob, ...]:
        return tuple(self._told(each) for each in self._own.values() if each.name == name)

    def submit(self, wanted: WantedJob) -> None:
        number = max(self._own, default=FIRST_NUMBER - 1) + 1
        begin = 0 if wanted.not_before is None else self._clock.log_time(wanted.not_before)
        length = max(self._clock.log_duration(wanted.length), 1)
        self._own[number] = _Own(number, wanted.name, wanted.cores.total, length, begin)
        self._keep()

    def let_go(self, job_id: str, account: str = "") -> None:
        job = self._own.get(int(job_id))
        if job is not None and job.joins is None and job.deleted is None:
            joins = max(self._queue.now, job.not_before)
            self._change(replace(job, joins=joins), (joins, job.number, False))

    def delete(self, job_id: str, account: str = "") -> None:
        job = self._own.get(int(job_id))
        if job is not None and job.deleted is None:
            now = self._queue.now
            self._change(replace(job, deleted=now), (now, job.number, True))

    # -- what happens --------------------------------------------------------------------------------------------

    def _change(self, job: _Own, then: tuple[int, int, bool]) -> None:
        self._own[job.number] = job
        self._todo = sorted([*self._todo, then])
        self._keep()
        self._advance(self._queue.now)

    def _advance(self, until: int) -> None:
        """Let everything happen up to a time, the log's jobs before the market's."""
        until = max(until, self._queue.now)
        while self._todo and self._todo[0][0] <= until:
            when, number, is_deleted = self._todo.pop(0)
            self._advance_log(when)
            job = self._own[number]
            if is_deleted:
                self._queue.withdraw(number)
            elif job.deleted is None or job.deleted > when:
                request = JobRequest(number, job.cores)
                self._queue.submit(Job(number, max(when, self._queue.now), job.length, job.length, request))
            self._queue.advance(when)
        self._advance_log(until)
        for number, running in self._queue.running.items():
            if number >= FIRST_NUMBER:
                self._starts[number] = running.start_time

    def _advance_log(self, until: int) -> None:
        while self._next is not None and self._next.job.submit_time <= until:
            self._users[self._next.job.job_number] = self._next.user
            self._queue.submit(self._next.job)
            self._next = next(self._submissions, None)
        self._queue.advance(until)

    def _ended(self, ended: EndedJob) -> None:
        self._users.pop(ended.job.job_number, None)
        if ended.job.job_number >= FIRST_NUMBER:
            self._starts[ended.job.job_number] = ended.start_time

    # -- telling -------------------------------------------------------------------------------------------------

    def _waiting(self, number: int, submitted: int | None, cores: int, length: Duration) -> WaitingJob:
        since = None if submitted is None else self._clock.instant(submitted)
        lasts = max(length * self._clock.speed.denominator // self._clock.speed.numerator, 1)
        return WaitingJob(str(number), self._user(number), since, cores, lasts, held=since is None)

    def _user(self, number: int) -> str:
        user = self._users.get(number)
        return "market" if number >= FIRST_NUMBER else "" if user is None else str(user)

    def _told(self, job: _Own) -> OwnJob:
        start, number = self._starts.get(job.number), str(job.number)
        if start is not None:
            ended = job.number not in self._queue.running
            return OwnJob(number, Standing.STARTED, self._clock.instant(start), ended=ended)
        if job.deleted is not None:
            return OwnJob(number, Standing.GONE)
        return OwnJob(number, Standing.HELD if job.joins is None else Standing.WAITING)

    def _keep(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps([asdict(each) for each in self._own.values()])
            write_whole(self._path, text.encode(), private=False)


def _kept(path: Path | None) -> list[_Own]:
    """Return the market's jobs of an earlier run."""
    if path is None or not path.exists():
        return []
    try:
        return [_Own(**each) for each in json.loads(path.read_text("utf-8"))]
    except (ValueError, TypeError) as error:
        raise ConfigurationError("invalid file of queued jobs: expected the list that RAMP wrote", path=path) from error


def jobs_path(settings: PluginSettings) -> Path | None:
    """Return the file of a queue's jobs of the market; None for memory."""
    return None if settings.state_dir is None else settings.state_dir / f"{settings.resource}.jobs.json"


def _since(begin: int) -> Callable[[Submission], bool]:
    return lambda each: each.job.submit_time < begin


@takes(ReplayedQueueOptions)
def open_queue(settings: PluginSettings) -> ReplayedQueue:
    """Open a queue: the entry point `log` of the group `ramp.job_queues`.

    Raises:
        ConfigurationError: an option is wrong, or there is no such log.
    """
    options = read_options(settings.options, ReplayedQueueOptions, within=settings.resource)
    base = options.base_time_s * SECOND
    try:
        workload = Workload(options.log, options.load, seed=settings.seed)
        background = open_background(workload, FlatMachine(settings.cores))
        submissions = dropwhile(_since(base - HISTORY), background.submissions)
        clock = MachineClock(settings.started_at, base, options.speed)
        return ReplayedQueue(settings.cores, submissions, background.source, clock, jobs_path(settings))
    except WorkloadError as error:
        raise ConfigurationError(str(error), key=f"{settings.resource}.log") from error
