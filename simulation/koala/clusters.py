"""The clusters, which hold processors, and the information service (KIS), which tells the scheduler about them.

What managed jobs hold it knows at once, for the runners say so. What local users hold it knows from the last poll.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ramp.errors import MachineError
from simulation.kernel import EventQueue


class Cluster:
    """One cluster's processors.

    Args:
        name: of the cluster.
        processors: how many.
        threshold: processors that managed jobs never have, so that local users find some.
        local: held by local users from the beginning.
        reserves: the batch system can set processors aside for a time to come.

    Attributes:
        held: processors of managed jobs, by number.
        local: processors of local users.
        noted: is called with the cluster's name, a job and the processors that it takes, below 0 those it gives back.
    """

    def __init__(
        self, name: str, processors: int, *, threshold: int = 0, local: int = 0, reserves: bool = False
    ) -> None:
        self.name = name
        self.processors = processors
        self.threshold = threshold
        self.reserves = reserves
        self.local = local
        self.held: dict[int, int] = {}
        self.noted: Callable[[str, int, int], None] = lambda cluster, job, processors: None
        self._managed = 0

    @property
    def managed(self) -> int:
        """Processors of all managed jobs."""
        return self._managed

    @property
    def idle(self) -> int:
        """Processors that are not held."""
        return self.processors - self.local - self._managed

    @property
    def room(self) -> int:
        """Processors that managed jobs may have beyond those that they have, were all of them idle."""
        return self.processors - self.threshold - self._managed

    @property
    def usable(self) -> int:
        """Processors that managed jobs could have were no other managed job here."""
        return max(0, self.processors - max(self.threshold, self.local))

    @property
    def free(self) -> int:
        """Processors that managed jobs can have now: idle, and not within the threshold."""
        return max(0, min(self.idle, self.room))

    def take(self, job: int, processors: int) -> int:
        """Give a job as many processors as can be had now, within the threshold; how many it got."""
        got = max(0, min(processors, self.free))
        if got:
            self.held[job] = self.held.get(job, 0) + got
            self._managed += got
            self.noted(self.name, job, got)
        return got

    def give_back(self, job: int, processors: int) -> None:
        """Take processors from a job.

        Raises:
            MachineError: it has fewer.
        """
        has = self.held.get(job, 0)
        if not 0 <= processors <= has:
            raise MachineError(f"cluster {self.name}: job {job} gives back {processors} processors of {has}")
        self._managed -= processors
        self.noted(self.name, job, -processors)
        if has == processors:
            self.held.pop(job, None)
        else:
            self.held[job] = has - processors


class LocalUsers:
    """A cluster's own users, whose jobs come from a log and start first come, first served.

    Args:
        cluster: theirs.
        jobs: (submission, run time, processors) in order of submission; microseconds. Jobs that are larger than the
            cluster are left out.

    Attributes:
        running: how many of their jobs run.
    """

    def __init__(self, cluster: Cluster, jobs: Iterable[tuple[int, int, int]]) -> None:
        self.cluster = cluster
        self.submissions = [job for job in jobs if job[2] <= cluster.processors - cluster.local]
        self.running = 0
        self._waiting: list[tuple[int, int]] = []

    def submit(self, run_time: int, processors: int) -> None:
        """Add a job to the local queue."""
        self._waiting.append((run_time, processors))

    def start(self) -> list[tuple[int, int]]:
        """Start those that fit, in order; run time and processors of each."""
        started = []
        while self._waiting and self._waiting[0][1] <= self.cluster.idle:
            job = self._waiting.pop(0)
            self.cluster.local += job[1]
            self.running += 1
            started.append(job)
        return started

    def ended(self, processors: int) -> None:
        """Note that a local job has ended."""
        self.cluster.local -= processors
        self.running -= 1


class InformationService:
    """Idle processors as the scheduler sees them (KIS); clusters by name, in the order of the file."""

    def __init__(self, clusters: Mapping[str, Cluster]) -> None:
        self._clusters = clusters
        self._local: dict[str, int] = {name: cluster.local for name, cluster in clusters.items()}

    def poll(self) -> bool:
        """Ask the providers again; whether anything is different from what was known."""
        now = {name: cluster.local for name, cluster in self._clusters.items()}
        changed = now != self._local
        self._local = now
        return changed

    def correct(self, name: str) -> None:
        """Correct the known number of a cluster's idle processors after a failed claim."""
        self._local[name] = self._clusters[name].local

    def available(self, name: str) -> int:
        """Return how many processors of a cluster that managed jobs may be given, as far as is known."""
        cluster = self._clusters[name]
        return max(0, min(cluster.processors - self._local[name] - cluster.managed, cluster.room))


class Kind(enum.IntEnum):
    """Kinds of events in the order in which simultaneous ones happen: what frees processors comes first."""

    LOCAL_END = 0
    JOB_END = 1
    CRASH = 2
    RELEASED = 3
    GIVEN_UP = 4
    TAKEN_IN = 5
    STUBS_HELD = 6
    LOCAL_SUBMISSION = 7
    CLAIM = 8
    SUBMISSION = 9
    POLL = 10


class Agenda(EventQueue[tuple[Kind, Any]]):
    """Future events, each with its subject."""

    __slots__ = ()

    def at(self, time: int, kind: Kind, subject: Any) -> int:
        """Put an event on the agenda; a ticket for `cancel`."""
        return self.schedule(time, (kind, subject), kind)
