"""What Grid Engine says of itself, as values.

The words are those of its manual pages (qstat(1), qhost(1), qrstat(1), sge_pe(5), access_list(5)): a *queue instance*
is a queue on a host, a *slot* of it takes one process, which is a core here, and an *advance reservation* has a number
of its own beside a name that need not be unique.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.instant import Duration, Instant


@dataclass(frozen=True, slots=True)
class QueueInstance:
    """A queue on a host.

    Attributes:
        name: `all.q@node1`.
        slots_total: processes that it may run at once.
        slots_used: those that run.
        slots_reserved: slots of advance reservations that have begun; later ones are not counted by Grid Engine.
        states: letters as of qstat(1): `d` disabled, `u` unreachable, `a` and `A` load alarms, `E` error, and so on.
        load: load average of the host, None where it has not reported.
        architecture: of the host (`lx-amd64`), empty where it has not reported.
    """

    name: str
    slots_total: int
    slots_used: int
    slots_reserved: int
    states: str = ""
    load: float | None = None
    architecture: str = ""

    @property
    def host(self) -> str:
        """The host's name."""
        return self.name.rpartition("@")[2]

    @property
    def queue(self) -> str:
        """The cluster queue's name."""
        return self.name.rpartition("@")[0]


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job, or the tasks of an array that stand alike.

    Attributes:
        number: of the job.
        name: what its owner calls it.
        owner: who submitted it.
        state: letters as of qstat(1): `r`, `t`, `qw`, `hqw`, `Eqw`, `dr` and so on.
        slots: that it takes, or wants (the fewest, of a range).
        tasks: how many tasks of an array stand in this line; 1 for a job that is none.
        started: when it began, None while it waits.
        submitted: when it was submitted, None once it runs, for Grid Engine tells only one of the two.
        run_limit: its hard limit of running time (`h_rt`), None where it asked for none or without end.
        slots_at: slots that it takes of each queue instance; empty while it waits.
        task: text of the tasks (`1-5:1`, `3`); empty for a job that is none.
        priority: as the scheduler sees it, 0 to 1 where it is normal.
        environment: parallel environment that it asked for; empty for none.
        slot_range: slots that it asked of that, as it wrote them (`8`, `50-80`).
    """

    number: int
    name: str
    owner: str
    state: str
    slots: int
    tasks: int = 1
    started: Instant | None = None
    submitted: Instant | None = None
    run_limit: Duration | None = None
    slots_at: tuple[tuple[str, int], ...] = ()
    task: str = ""
    priority: float = 0.0
    environment: str = ""
    slot_range: str = ""

    @property
    def running(self) -> bool:
        """Whether it takes slots now."""
        return self.started is not None


@dataclass(frozen=True, slots=True)
class QueueReport:
    """Queue instances and jobs of one answer.

    Attributes:
        instances: of all queues.
        jobs: those that run and those that wait.
    """

    instances: tuple[QueueInstance, ...]
    jobs: tuple[BatchJob, ...]


@dataclass(frozen=True, slots=True)
class ExecutionHost:
    """A host.

    Attributes:
        name: of the host.
        architecture: `lx-amd64`; empty where it has not reported.
        processors: of it, None where it has not reported.
        load: load average, None where it has not reported.
    """

    name: str
    architecture: str = ""
    processors: int | None = None
    load: float | None = None


@dataclass(frozen=True, slots=True)
class AdvanceReservation:
    """An advance reservation.

    Attributes:
        number: Grid Engine's id of it.
        name: as it was made with; not unique, may be empty.
        owner: who made it.
        state: `w` waits for its start, `r` has begun, `W` and `E` the same with slots that are out of order, `d` is
            being deleted.
        start: its begin.
        end: its end.
        slots_at: slots that were granted on each queue instance; empty in a list, which does not tell.
        users: who may use it, `@NAME` for a userset; empty in a list.
        messages: why it cannot run as things stand.
        submitted: when it was made, None in a list.
        group: its maker's; empty in a list.
        account: what its jobs are charged to; empty in a list.
        environment: parallel environment that its slots were granted in; empty in a list, and for none.
    """

    number: int
    name: str
    owner: str
    state: str
    start: Instant
    end: Instant
    slots_at: tuple[tuple[str, int], ...] = ()
    users: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    submitted: Instant | None = None
    group: str = ""
    account: str = ""
    environment: str = ""

    @property
    def slots(self) -> int:
        """Slots in all; 0 in a list."""
        return sum(slots for _, slots in self.slots_at)
