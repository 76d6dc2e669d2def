"""KOALA: jobs come, are placed or wait, run, grow and shrink; the information service is polled.

Job management is triggered by polls: load that local users put on a cluster, and processors that jobs have left, are
acted upon at the next one; where nothing is different, it would do nothing. A job that comes is tried at once. What has
been freed by shrinking for a waiting job is given out as soon as it is released, from the head of the queue. Times are
integers of microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ramp.declarations import Sort
from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND
from simulation.koala.clusters import Agenda, Cluster, InformationService, Kind, LocalUsers
from simulation.koala.co_allocator import CoAllocator, PlacementQueue, ProcessorClaimer
from simulation.koala.jobs import Fate, KoalaJob, Record
from simulation.koala.malleability_manager import MalleabilityManager, Sent
from simulation.koala.policy import Approach, Assignment, PlacementPolicy, Replicas, SizePolicy, policies, policy_of
from simulation.koala.runner import NO_LATENCY, Latencies, Runner

APPROACHES: Final[Sort[Approach]] = policies("approach", "approaches", Approach)
SIZE_POLICIES: Final[Sort[SizePolicy]] = policies("size policy", "size_policies", SizePolicy)
PLACEMENT_POLICIES: Final[Sort[PlacementPolicy]] = policies("placement policy", "placement_policies", PlacementPolicy)


@dataclass(frozen=True, slots=True)
class KoalaOptions:
    """How KOALA is set up.

    Attributes:
        approach: who has precedence; this and the next two by name, by place, or as an object.
        sizes: whose size to change.
        placement: where jobs run.
        poll_interval: microseconds; the paper does not say.
        tries_max: failed tries of a placement after which a submission fails; None = never. The paper does not say.
        fills: malleable jobs begin with what their cluster has for them, not with their smallest size.
        latencies: of the middleware.
    """

    approach: str | Approach
    sizes: str | SizePolicy
    placement: str | PlacementPolicy = "WF"
    poll_interval: int = 10 * SECOND
    tries_max: int | None = None
    fills: bool = False
    latencies: Latencies = NO_LATENCY

    def __post_init__(self) -> None:
        for key, value in (("poll_interval", self.poll_interval), ("tries_max", self.tries_max)):
            if value is not None and value < 1:
                raise ConfigurationError(f"must be at least 1, got {value}", key=key)


class Held(NamedTuple):
    """A change of the processors that a managed job holds.

    Attributes:
        time: microseconds.
        cluster: name.
        job: its number.
        processors: taken, or below 0 given back.
    """

    time: int
    cluster: str
    job: int
    processors: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a simulation.

    Attributes:
        records: of all jobs, in the order of their submission.
        held: who took and gave back processors, in order.
        sent: messages of the malleability manager, in order.
    """

    records: tuple[Record, ...]
    held: tuple[Held, ...]
    sent: tuple[Sent, ...]

    @property
    def used(self) -> tuple[tuple[int, int], ...]:
        """Processors that managed jobs hold: (time, number), from time 0 on, one entry an instant of changes."""
        used = {0: 0}
        held = 0
        for change in self.held:
            held += change.processors
            used[change.time] = held
        return tuple(used.items())


class Koala:
    """The scheduler and its clusters.

    Args:
        clusters: in the order of the file.
        jobs: in order of submission.
        options: how it is set up.
        replicas: where input files are.
        local_users: of clusters whose own jobs come from a log.
        crashes: (time, number of a job that crashes then if it runs).

    Attributes:
        clusters: by name.
        runners: of the jobs that run, by number, in the order of their starts.
        queue: of placement.
        watch: is called after every event, for checkers and transcripts.
    """

    def __init__(
        self,
        clusters: Sequence[Cluster],
        jobs: Iterable[KoalaJob],
        options: KoalaOptions,
        *,
        replicas: Replicas | None = None,
        local_users: Sequence[LocalUsers] = (),
        crashes: Iterable[tuple[int, int]] = (),
    ) -> None:
        self.clusters: Mapping[str, Cluster] = {cluster.name: cluster for cluster in clusters}
        self.runners: dict[int, Runner] = {}
        self.queue = PlacementQueue(options.tries_max)
        self.watch: Callable[[Kind, Any], None] | None = None
        self._options = options
        self._approach = policy_of(APPROACHES, options.approach)
        self._agenda = Agenda()
        self._information = InformationService(self.clusters)
        self._allocator = CoAllocator(
            self._information,
            tuple(self.clusters),
            policy_of(PLACEMENT_POLICIES, options.placement),
            replicas or Replicas(),
            options.fills,
        )
        self._claimer = ProcessorClaimer(self.clusters, self._information)
        policy = policy_of(SIZE_POLICIES, options.sizes)
        self._steals = policy.steals
        self.manager = MalleabilityManager(policy, self._information, self.runners, lambda: self._agenda.now)
        self._records = [Record(job) for job in jobs]
        self._unfinished = len(self._records)
        self._held: list[Held] = []
        for cluster in clusters:
            cluster.noted = lambda name, job, processors: self._held.append(Held(self.now, name, job, processors))
        self._stale = True
        for record in self._records:
            self._agenda.at(record.job.submit_time, Kind.SUBMISSION, record)
        for users in local_users:
            for submitted, run_time, processors in users.submissions:
                self._agenda.at(submitted, Kind.LOCAL_SUBMISSION, (users, run_time, processors))
        for time, number in crashes:
            self._agenda.at(time, Kind.CRASH, number)
        self._agenda.at(0, Kind.POLL, None)

    @property
    def now(self) -> int:
        return self._agenda.now

    def run(self) -> Outcome:
        """Let everything happen until no job is left.

        Raises:
            ConfigurationError: a job can never be placed, for no cluster is large enough.
        """
        self._refuse_what_never_fits()
        steps: dict[Kind, Callable[[Any], None]] = {
            Kind.LOCAL_END: self._local_end,
            Kind.JOB_END: self._job_end,
            Kind.CRASH: self._crash,
            Kind.RELEASED: self._released,
            Kind.GIVEN_UP: Runner.given_up,
            Kind.TAKEN_IN: self._taken_in,
            Kind.STUBS_HELD: Runner.stubs_held,
            Kind.LOCAL_SUBMISSION: self._local_submission,
            Kind.CLAIM: self._claim,
            Kind.SUBMISSION: self._submission,
            Kind.POLL: self._poll,
        }
        while self._unfinished:
            kind, subject = self._agenda.pop()
            if isinstance(subject, Runner) and self.runners.get(subject.number) is not subject:
                continue  # it has ended meanwhile
            steps[kind](subject)
            if self.watch is not None:
                self.watch(kind, subject)
        return Outcome(tuple(self._records), tuple(self._held), tuple(self.manager.sent))

    def _refuse_what_never_fits(self) -> None:
        usable = {name: one.usable for name, one in self.clusters.items()}
        for record in self._records:
            if self._allocator.policy.place(record.job.components, usable, self._allocator.replicas) is None:
                raise ConfigurationError(
                    f"job {record.job.number} needs {record.job.least} processors, which the placement policy finds on "
                    f"no empty clusters {usable}",
                    key="components",
                )

    def _submission(self, record: Record) -> None:
        if not self._try(record, ()):
            self._not_placed(record)
            self._stale = True

    def _not_placed(self, record: Record) -> None:
        if not self.queue.failed(record):
            record.fate = Fate.SUBMISSION_FAILED
            self._unfinished -= 1

    def _try(self, record: Record, closed: Iterable[str]) -> bool:
        """Place a job, and claim its processors at once where its files are there; whether it was placed."""
        placed = self._allocator.place(record.job, set(closed))
        if placed is None:
            return False
        transfer = self._allocator.transfer_time(placed)
        when = self._claimer.claim_time(placed, self.now, transfer)
        ready = self.now + transfer
        if when > self.now:
            self._agenda.at(when, Kind.CLAIM, (record, placed, ready))
            return True
        return self._claim_now(record, placed, ready)

    def _claim_now(self, record: Record, placed: tuple[Assignment, ...], ready: int) -> bool:
        if not self._claimer.claim(record.job.number, placed):
            return False
        if ready > self.now:
            self._agenda.at(ready, Kind.CLAIM, (record, placed, ready))
        else:
            self._start(record, placed)
        return True

    def _claim(self, subject: tuple[Record, tuple[Assignment, ...], int]) -> None:
        """Claiming was postponed to this moment; or the files of a job whose processors are held are there."""
        record, placed, ready = subject
        if any(record.job.number in self.clusters[one.cluster].held for one in placed):
            self._start(record, placed)
        elif not self._claim_now(record, placed, ready):
            self._not_placed(record)
            self._stale = True

    def _start(self, record: Record, placed: tuple[Assignment, ...]) -> None:
        runner = Runner(record, self.clusters, self._agenda, self._options.latencies)
        self.runners[record.job.number] = runner
        runner.start(sum(one.processors for one in placed))
        self._stale = True

    def _job_end(self, runner: Runner) -> None:
        self._end(runner, Fate.COMPLETED)

    def _crash(self, number: int) -> None:
        if number in self.runners:
            self._end(self.runners[number], Fate.CRASHED)

    def _end(self, runner: Runner, fate: Fate) -> None:
        del self.runners[runner.number]
        runner.end(fate)
        self._unfinished -= 1
        self._freed(runner.number)

    def _taken_in(self, runner: Runner) -> None:
        runner.taken_in()
        self._stale = True

    def _released(self, runner: Runner) -> None:
        runner.released()
        self._freed(runner.number)

    def _freed(self, number: int) -> None:
        """Wake those who waited for processors that a job has released, local users first."""
        self._stale = True
        was_awaited = self._shrinks
        self.manager.released(number)
        if was_awaited and (self._steals or not self._shrinks):
            self.scan()

    @property
    def _shrinks(self) -> bool:
        return any(self.manager.shrinking(name) for name in self.clusters)

    def _local_submission(self, subject: tuple[LocalUsers, int, int]) -> None:
        users, run_time, processors = subject
        users.submit(run_time, processors)
        self._start_local(users)

    def _local_end(self, subject: tuple[LocalUsers, int]) -> None:
        users, processors = subject
        users.ended(processors)
        self._start_local(users)

    def _start_local(self, users: LocalUsers) -> None:
        for run_time, processors in users.start():
            self._agenda.at(self.now + run_time, Kind.LOCAL_END, (users, processors))

    def _poll(self, _: None) -> None:
        if self._information.poll() or self._stale or (self._steals and self.queue.jobs):
            self._stale = False
            self._approach.manage(self)
        else:
            for record in list(self.queue.jobs):
                self._not_placed(record)  # nothing has changed, so nothing would come of looking
        interval, polls = self._options.poll_interval, 1
        if not self._stale and not (self.queue.jobs and (self._steals or self._options.tries_max)):
            # until something happens, polls would only count as tries
            following = self._agenda.next_time()
            polls = 1 if following is None else max(1, -((self.now - following) // interval))
            for record in self.queue.jobs:
                record.tries += polls - 1
        self._agenda.at(self.now + polls * interval, Kind.POLL, None)

    def grow(self) -> None:
        """Offer idle processors to running malleable jobs, cluster by cluster, as the size policy says."""
        for name in self.clusters:
            self.manager.grow(name)

    def scan(self) -> Record | None:
        """Place waiting jobs, from the head of the queue to its tail; return the first that remains, if any."""
        closed = {name for name in self.clusters if self.manager.shrinking(name) and not self._steals}
        closed.update(self._approach.closed(self))
        first: Record | None = None
        for record in list(self.queue.jobs):
            if self._try(record, closed):
                self.queue.placed(record)
                continue
            self._not_placed(record)
            if first is None and record in self.queue.jobs:
                first = record
        return first

    def shrink_for(self, waiting: Record) -> bool:
        """Let running jobs shrink where the placement policy would place the waiting job, were all they can give idle.

        Returns whether the job can be placed then or already.

        Size policies that steal do this for every waiting job for which that is enough, from the head of the queue on.
        Clusters that shrink already are left out. Who of the queue gets what is released is decided when it is.
        """
        if self._shrinks and not self._steals:
            return True
        left = {
            name: self._information.available(name) + self.manager.can_be_freed(name)
            for name in self.clusters
            if not self.manager.shrinking(name)
        }
        wanted = dict.fromkeys(left, 0)
        for record in self.queue.jobs if self._steals else (waiting,):
            placed = self._allocator.policy.place(record.job.components, left, self._allocator.replicas)
            for one in placed or ():
                left[one.cluster] -= one.processors
                wanted[one.cluster] += one.processors
        for name, processors in wanted.items():
            if processors > self._information.available(name):
                self.manager.shrink(name, processors - self._information.available(name))
        return self._shrinks or any(wanted.values())
