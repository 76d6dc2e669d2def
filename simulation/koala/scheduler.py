"""KOALA: jobs come, are placed or wait, run, grow and shrink; the information service is polled.

Job management is triggered by polls: load that local users put on a cluster, and processors that jobs have left, are
acted upon at the next one. A job that comes is tried at once. What has been freed by shrinking for a waiting job is
given out as soon as it is released, from the head of the queue. Times are integers of microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ramp.errors import ConfigurationError
from simulation.kernel import MICROSECONDS_PER_SECOND
from simulation.koala.agenda import Agenda, Kind
from simulation.koala.clusters import Cluster, InformationService, LocalUsers
from simulation.koala.co_allocator import CoAllocator, PlacementQueue, ProcessorClaimer
from simulation.koala.job_resize import Change
from simulation.koala.jobs import Fate, KoalaJob, Obligation, Record
from simulation.koala.malleability_manager import Approach, MalleabilityManager, Sent, standing_wishes
from simulation.koala.placement import PLACEMENT_POLICIES, Assignment, Replicas
from simulation.koala.runner import NO_LATENCY, Latencies, Runner
from simulation.koala.size_policies import SIZE_POLICIES


@dataclass(frozen=True, slots=True)
class KoalaOptions:
    """How KOALA is set up.

    Attributes:
        approach: who has precedence.
        sizes: whose size to change, by name.
        placement: by name.
        poll_interval: microseconds; the paper does not say.
        tries_max: failed tries of a placement after which a submission fails; None = never. The paper does not say.
        fills: malleable jobs begin with what their cluster has for them, not with their smallest size.
        latencies: of the middleware.
    """

    approach: Approach
    sizes: str
    placement: str = "WF"
    poll_interval: int = 10 * MICROSECONDS_PER_SECOND
    tries_max: int | None = None
    fills: bool = False
    latencies: Latencies = NO_LATENCY

    def __post_init__(self) -> None:
        for key, name, known in (
            ("sizes", self.sizes, SIZE_POLICIES),
            ("placement", self.placement, PLACEMENT_POLICIES),
        ):
            if name not in known:
                raise ConfigurationError(f"unknown {name!r}: expected one of {', '.join(known)}", key=key)
        if self.poll_interval < 1:
            raise ConfigurationError(f"got {self.poll_interval} us, expected at least 1", key="poll_interval")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a simulation.

    Attributes:
        records: of all jobs, in the order of their submission.
        used: (time, processors that managed jobs hold), one entry a change, from time 0 on.
        sent: messages of the malleability manager, in order.
    """

    records: tuple[Record, ...]
    used: tuple[tuple[int, int], ...]
    sent: tuple[Sent, ...]


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
        self._agenda = Agenda()
        self._information = InformationService(self.clusters)
        self._allocator = CoAllocator(
            self._information,
            tuple(self.clusters),
            PLACEMENT_POLICIES[options.placement],
            replicas or Replicas(),
            options.fills,
        )
        self._claimer = ProcessorClaimer(self.clusters, self._information)
        policy = SIZE_POLICIES[options.sizes]
        self._steals = policy.steals
        self.manager = MalleabilityManager(policy, self._information, self.runners, lambda: self._agenda.now)
        self._records = [Record(job) for job in jobs]
        self._unfinished = len(self._records)
        self._used: list[tuple[int, int]] = [(0, 0)]
        self._stale = True
        self._local_users = {users.cluster.name: users for users in local_users}
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
            Kind.WISH: self._wish,
            Kind.CLAIM: self._claim,
            Kind.SUBMISSION: self._submission,
            Kind.POLL: self._poll,
        }
        while self._unfinished:
            kind, subject = self._agenda.pop()
            if isinstance(subject, Runner) and self.runners.get(subject.number) is not subject:
                continue  # it has ended meanwhile
            steps[kind](subject)
            managed = sum(cluster.managed for cluster in self.clusters.values())
            if managed != self._used[-1][1]:
                self._used.append((self.now, managed))
            if self.watch is not None:
                self.watch(kind, subject)
        return Outcome(tuple(self._records), tuple(self._used), tuple(self.manager.sent))

    def _refuse_what_never_fits(self) -> None:
        rooms = {name: min(one.room, one.processors - one.local) for name, one in self.clusters.items()}
        place = PLACEMENT_POLICIES[self._options.placement]
        for record in self._records:
            if place(record.job.components, rooms, self._allocator.replicas) is None:
                raise ConfigurationError(
                    f"job {record.job.number} needs {record.job.least} processors, which {self._options.placement} "
                    f"finds on no empty clusters {rooms}",
                    key="components",
                )

    def _submission(self, record: Record) -> None:
        if not self._try(record, ()):
            self._not_placed(record)

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
            self._scan()

    @property
    def _shrinks(self) -> bool:
        return any(self.manager.shrinking(name) for name in self.clusters)

    def _wish(self, runner: Runner) -> None:
        if runner.wishes() is not None:
            self._stale = True

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
        self._agenda.at(self.now + self._options.poll_interval, Kind.POLL, None)
        changed = self._information.poll() or self._stale
        if changed or (self.queue.jobs and self._options.approach is Approach.PWA):
            self._stale = False
            self._manage()
        else:
            for record in list(self.queue.jobs):
                self._not_placed(record)  # nothing has changed, so nothing would come of looking

    def _manage(self) -> None:
        self._answer_wishes()
        if self._options.approach is Approach.PRA:
            for name in self.clusters:
                self.manager.grow(name)
            self._scan()
            return
        unplaced = self._scan()
        if unplaced is not None and (self._shrink_for_all() if self._steals else self._shrink_for(unplaced)):
            return
        for name in self.clusters:
            self.manager.grow(name)

    def _scan(self) -> Record | None:
        closed = {name for name in self.clusters if self.manager.shrinking(name) and not self._steals}
        if self._options.approach is Approach.PRA:
            closed |= {name for name in self.clusters if self.manager.can_still_grow(name)}
        first: Record | None = None
        for record in list(self.queue.jobs):
            if self._try(record, closed):
                self.queue.placed(record)
                continue
            self._not_placed(record)
            if first is None and record in self.queue.jobs:
                first = record
        return first

    def _shrink_for(self, record: Record) -> bool:
        """Let running jobs shrink so that a job of one component can be placed; whether it can be, then or already.

        Of the clusters where idle processors and what can be freed are enough that one is taken which has the most.
        """
        if self._shrinks:
            return True
        wanted = max(component.processors for component in record.job.components)
        best, most = None, wanted - 1
        for name in self.clusters:
            possible = self._information.available(name) + self.manager.can_be_freed(name)
            if possible > most:
                best, most = name, possible
        if best is None:
            return False
        self.manager.shrink(best, wanted - self._information.available(best))
        return True

    def _shrink_for_all(self) -> bool:
        """Let running jobs shrink for every waiting job for which that is enough, from the head of the queue on.

        Whether processors are awaited then. Of the clusters that do not shrink already that one gives which has the
        most left. Who of the queue gets what is released is decided when it is (stealing).
        """
        left = {
            name: self._information.available(name) + self.manager.can_be_freed(name)
            for name in self.clusters
            if not self.manager.shrinking(name)
        }
        wanted = dict.fromkeys(left, 0)
        for record in self.queue.jobs:
            processors = max(component.processors for component in record.job.components)
            best = max(left, key=left.__getitem__, default=None)
            if best is not None and left[best] >= processors:
                left[best] -= processors
                wanted[best] += processors
        for name, processors in wanted.items():
            if processors > self._information.available(name):
                self.manager.shrink(name, processors - self._information.available(name))
        return self._shrinks

    def _answer_wishes(self) -> None:
        """Applications that ask for processors come before policies and queue, those that cannot go on first."""
        wishes = standing_wishes(self.runners.values())
        for runner, change in sorted(wishes, key=lambda each: each[1].obligation is Obligation.VOLUNTARY):
            if runner.change is not change:
                continue  # it was ended so that another can go on
            available = self._information.available(change.cluster)
            if change.obligation is Obligation.VOLUNTARY:
                if runner.would_take(min(available, change.processors)):
                    self.manager.offer(runner, change, min(available, change.processors))
                else:
                    runner.refused()
                continue
            self._meet(runner, change, available)

    def _meet(self, runner: Runner, change: Change, available: int) -> None:
        """Find processors without which a job cannot continue: idle ones, else from others, whatever the precedence."""
        if self.manager.shrinking(change.cluster):
            return
        if available >= change.processors:
            self.manager.offer(runner, change, change.processors)
            return
        missing = change.processors - available
        if self.manager.can_be_freed(change.cluster, Obligation.MANDATORY) >= missing:
            self.manager.shrink(change.cluster, missing, Obligation.MANDATORY)
            return
        here = [one for one in self.runners.values() if one.held_in(change.cluster)]
        stuck = [one for one in here if one.stands_still]
        local = self._local_users.get(change.cluster)
        if len(stuck) == len(here) and not (local is not None and local.running):
            self._end(max(stuck, key=lambda one: one.started), Fate.WISH_UNMET)
