"""A runner looks after one running job: its progress, its processors, and its side of a change of size.

Every message of the malleability manager is a hint (voluntary, section 2.3); an application may give processors back
unasked.

As in section 5.1 of the paper a malleable job is a set of jobs of one processor each. When it grows, stubs are
submitted while it computes; it stands still only when all are held. When it shrinks, it continues before processors are
freed.

The application's side has the four parts of DYNACO (section 4.2, figure 2). It observes messages (`offered`,
`requested`), decides how many processors it takes or gives (`would_take`, `would_give`), plans the steps of a change
(the table of `TRANSITIONS`), and executes them (`stubs_held` and `taken_in`, `given_up` and
`released`). AFPAC carries out a step from one point of progress of all processes: `_synchronise` stops them there,
`_resize` continues.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ramp.errors import InvariantViolated
from simulation.koala.clusters import Agenda, Cluster, Kind
from simulation.koala.jobs import Fate, KoalaJob, Record


class State(enum.StrEnum):
    """Of a change."""

    NEW = "new"
    OFFERED = "offered"
    ALLOCATING = "allocating"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    REQUESTED = "requested"
    RECLAIMING = "reclaiming"
    RELEASING = "releasing"
    RELEASED = "released"
    DECLINED = "declined"
    ENDED = "ended"


class Stimulus(enum.StrEnum):
    """What moves a change on."""

    OFFER = "the manager offers"
    ACCEPT = "the application accepts"
    DECLINE = "the application declines"
    STUBS_HELD = "all stubs are held"
    TAKEN_IN = "processes are started and data are redistributed"
    REQUEST = "the manager asks for processors"
    GIVE_BACK = "the application gives processors back unasked"
    GIVEN_UP = "data are redistributed"
    RELEASED = "the batch system has them back"
    JOB_ENDED = "the job ends or crashes"


FINAL: Final = frozenset({State.RESUMED, State.RELEASED, State.DECLINED, State.ENDED})
"""States of changes that are over."""

TRANSITIONS: Final[dict[tuple[State, Stimulus], State]] = {
    (State.NEW, Stimulus.OFFER): State.OFFERED,
    (State.NEW, Stimulus.REQUEST): State.REQUESTED,
    (State.NEW, Stimulus.GIVE_BACK): State.RECLAIMING,
    (State.OFFERED, Stimulus.ACCEPT): State.ALLOCATING,
    (State.OFFERED, Stimulus.DECLINE): State.DECLINED,
    (State.ALLOCATING, Stimulus.STUBS_HELD): State.SUSPENDED,
    (State.ALLOCATING, Stimulus.JOB_ENDED): State.ENDED,
    (State.SUSPENDED, Stimulus.TAKEN_IN): State.RESUMED,
    (State.SUSPENDED, Stimulus.JOB_ENDED): State.ENDED,
    (State.REQUESTED, Stimulus.ACCEPT): State.RECLAIMING,
    (State.REQUESTED, Stimulus.DECLINE): State.DECLINED,
    (State.RECLAIMING, Stimulus.GIVEN_UP): State.RELEASING,
    (State.RECLAIMING, Stimulus.JOB_ENDED): State.ENDED,
    (State.RELEASING, Stimulus.RELEASED): State.RELEASED,
    (State.RELEASING, Stimulus.JOB_ENDED): State.ENDED,
}
"""Every legal step; all others are bugs."""


@dataclass(slots=True)
class Change:
    """One change of a job's size in one cluster.

    Attributes:
        job: its number.
        cluster: where processors come or go.
        processors: offered or asked for at first, accepted later.
        state: where it stands.
    """

    job: int
    cluster: str
    processors: int = 0
    state: State = State.NEW

    def step(self, stimulus: Stimulus) -> None:
        """Move on.

        Raises:
            InvariantViolated: the table has no such step.
        """
        following = TRANSITIONS.get((self.state, stimulus))
        if following is None:
            raise InvariantViolated(
                "changes of size", f"job {self.job}: a change that is {self.state} cannot go on when {stimulus}"
            )
        self.state = following

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in FINAL


@dataclass(frozen=True, slots=True)
class Latencies:
    """Times that the middleware takes; the paper states none. How long an application stands still is its own cost.

    Attributes:
        stub: from the submission of stubs to their being held, microseconds.
        release: from an application's giving processors up to their being idle, microseconds.
    """

    stub: int = 0
    release: int = 0


NO_LATENCY: Final = Latencies()
"""A middleware that takes no time."""


class Runner:
    """One running job.

    Args:
        record: of the job.
        clusters: by name.
        agenda: of the simulation.
        latencies: of the middleware.

    Attributes:
        job: the job.
        size: processors that it computes with.
        change: the one that is open, or None.
    """

    def __init__(self, record: Record, clusters: Mapping[str, Cluster], agenda: Agenda, latencies: Latencies) -> None:
        self.job: KoalaJob = record.job
        self.size = 0
        self.change: Change | None = None
        self._record = record
        self._clusters = clusters
        self._agenda = agenda
        self._latencies = latencies
        self._left = 0
        self._since: int | None = None
        self._ticket = -1

    @property
    def number(self) -> int:
        """Of the job."""
        return self.job.number

    @property
    def started(self) -> int:
        """Microseconds."""
        assert self._record.started is not None, "a runner looks after running jobs"
        return self._record.started

    @property
    def computing(self) -> bool:
        """Whether the job makes progress now."""
        return self._since is not None

    def held_in(self, cluster: str) -> int:
        """Return how many processors of a cluster that it holds, stubs and those in release among them."""
        return self._clusters[cluster].held.get(self.number, 0)

    def clusters(self) -> list[str]:
        """Return the names of the clusters where it holds processors."""
        return [name for name in self._clusters if self.held_in(name)]

    def start(self, processors: int) -> None:
        """Begin to run with processors that are held already; those that it cannot use it gives back at once."""
        now = self._agenda.now
        usable = self.job.malleability.sizes.most_of(processors) if self.job.malleable else processors
        self.size = processors
        self._left = self._time_at_size(self.job.run_time, self.job.reference, processors)
        self._record.started = now
        self._record.sizes.append((now, processors))
        if usable is not None and usable < processors:
            largest = max(self.clusters(), key=self.held_in)
            self.change = Change(self.number, largest, processors=processors - usable)
            self.change.step(Stimulus.GIVE_BACK)
            self._agenda.at(now, Kind.GIVEN_UP, self)
        else:
            self._go()

    def would_take(self, offered: int) -> int:
        """Decide (DYNACO) how many of the offered processors the application accepts."""
        larger = self.job.malleability.sizes.most_of(self.size + offered)
        return max(0, larger - self.size) if larger is not None else 0

    def would_give(self, cluster: str, requested: int) -> int:
        """Decide (DYNACO) how many processors of a cluster it releases if asked for a number; may be more than that."""
        sizes = self.job.malleability.sizes
        here, elsewhere = self.held_in(cluster), len(self.clusters()) > 1
        for asked in range(requested, 0, -1):
            smaller = sizes.most_of(max(self.size - asked, sizes.least))
            assert smaller is not None, "no job shrinks below its least size"
            if self.size - smaller <= here - (1 if elsewhere else 0):
                return max(0, self.size - smaller)
        return 0

    def offered(self, cluster: str, processors: int) -> int:
        """Observe (DYNACO) an offer of processors; return how many are accepted and held from now on."""
        change = self.change if self.change is not None else Change(self.number, cluster)
        change.step(Stimulus.OFFER)
        usable = self.would_take(processors)
        if not usable:
            change.step(Stimulus.DECLINE)
            return 0
        # offers are made right after a poll, so nobody can have been quicker
        if usable > (free := self._clusters[cluster].free):
            raise InvariantViolated(
                "processors", f"job {self.number} is offered {usable} of {cluster}, where {free} are"
            )
        self._clusters[cluster].take(self.number, usable)
        change.step(Stimulus.ACCEPT)
        change.processors = usable
        self.change = change
        self._agenda.at(self._agenda.now + self._latencies.stub, Kind.STUBS_HELD, self)
        return usable

    def stubs_held(self) -> None:
        """Execute (DYNACO) growth: suspend the application to take in its stubs, which are all held."""
        self._open(Stimulus.STUBS_HELD)
        self._synchronise()
        self._agenda.at(self._agenda.now + self.job.malleability.suspension, Kind.TAKEN_IN, self)

    def taken_in(self) -> None:
        """Continue the application with more processors."""
        change = self._open(Stimulus.TAKEN_IN)
        self._resize(self.size + change.processors)
        self._closed(change)

    def requested(self, cluster: str, processors: int) -> int:
        """Observe (DYNACO) a request for processors; return how many will be released later."""
        change = Change(self.number, cluster)
        change.step(Stimulus.REQUEST)
        given = self.would_give(cluster, processors)
        if not given:
            change.step(Stimulus.DECLINE)
            return 0
        change.step(Stimulus.ACCEPT)
        change.processors = given
        self.change = change
        self._synchronise()
        self._agenda.at(self._agenda.now + self.job.malleability.suspension, Kind.GIVEN_UP, self)
        return given

    def given_up(self) -> None:
        """Continue the application with fewer processors, before they are released."""
        change = self._open(Stimulus.GIVEN_UP)
        self._resize(self.size - change.processors)
        self._agenda.at(self._agenda.now + self._latencies.release, Kind.RELEASED, self)

    def released(self) -> None:
        """Note that the batch system has the processors back."""
        change = self._open(Stimulus.RELEASED)
        self._clusters[change.cluster].give_back(self.number, change.processors)
        self._closed(change)

    def end(self, fate: Fate) -> None:
        """End the job, also in the middle of a change; it gives back all that it holds."""
        self._synchronise()
        if self.change is not None:
            self.change.step(Stimulus.JOB_ENDED)
            self.change = None
        for name in self.clusters():
            self._clusters[name].give_back(self.number, self.held_in(name))
        self._record.ended = self._agenda.now
        self._record.fate = fate

    def _open(self, stimulus: Stimulus) -> Change:
        change = self.change
        if change is None:
            raise InvariantViolated("changes of size", f"job {self.number} is in no change when {stimulus}")
        change.step(stimulus)
        return change

    def _closed(self, change: Change) -> None:
        assert change.over, "closed changes are over"
        self.change = None
        if not self.computing:
            self._go()

    def _time_at_size(self, length: int, before: int, after: int) -> int:
        return self.job.malleability.time_at(length, before, after)

    def _resize(self, size: int) -> None:
        self._left = self._time_at_size(self._left, self.size, size)
        self.size = size
        self._record.sizes.append((self._agenda.now, size))
        self._go()

    def _go(self) -> None:
        now = self._agenda.now
        self._since = now
        self._ticket = self._agenda.at(now + self._left, Kind.JOB_END, self)

    def _synchronise(self) -> None:
        """Stop all processes at one point of progress (AFPAC, section 4.2); they are taken to reach it at once."""
        if self._since is None:
            return
        self._left -= self._agenda.now - self._since
        self._since = None
        self._agenda.cancel(self._ticket)
