"""Values that Grid Engine reports.

The words are those of its manual pages (qstat(1), qrstat(1), sge_pe(5), access_list(5)). A *queue instance*
is a queue on a host. A *slot* of it takes one process, which is a core here. An *advance reservation* has a number
beside a name that need not be unique.
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
        slots_reserved: slots of advance reservations that have begun; Grid Engine does not count later ones.
        states: letters as of qstat(1): `d` disabled, `u` unreachable, `a` and `A` load alarms, `E` error, and so on.
        load: load average of the host, None if it has not reported.
        architecture: of the host (`lx-amd64`), empty if it has not reported.
    """

    name: str
    slots_total: int
    slots_used: int
    slots_reserved: int
    states: str = ""
    load: float | None = None
    architecture: str = ""

    @property
    def queue(self) -> str:
        return self.name.rpartition("@")[0]


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job, or the tasks of an array in the same state.

    Attributes:
        number: of the job.
        name: chosen by its owner.
        owner: the account that submitted it.
        state: letters as of qstat(1): `r`, `t`, `qw`, `hqw`, `Eqw`, `dr` and so on.
        slots: taken or wanted (the fewest, of a range).
        tasks: number of the array's tasks in this line; 1 for a job that is not an array.
        started: None while it waits.
        submitted: None once it runs, because Grid Engine tells only one of the two.
        run_limit: its hard limit of running time (`h_rt`), None without a limit.
        slots_at: slots of each queue instance; empty while it waits.
        task: text of the tasks (`1-5:1`, `3`); empty for a job that is not an array.
        priority: as the scheduler sees it, 0 to 1 where it is normal.
        environment: parallel environment requested; may be empty.
        slot_range: slots requested of that, as written (`8`, `50-80`).
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
        return self.started is not None


@dataclass(frozen=True, slots=True)
class QueueReport:
    """Queue instances, and the running and waiting jobs, of one answer."""

    instances: tuple[QueueInstance, ...]
    jobs: tuple[BatchJob, ...]


@dataclass(frozen=True, slots=True)
class AdvanceReservation:
    """An advance reservation; a list leaves fields empty or None.

    Attributes:
        number: Grid Engine's id of it.
        name: not unique, may be empty.
        owner: the account that made it.
        state: `w` waits for its start, `r` has begun, `W` and `E` the same with slots that are out of order, `d` is
            being deleted.
        start: its begin.
        end: its end.
        slots_at: slots granted on each queue instance.
        users: accounts that may use it, `@NAME` for a userset.
        submitted: when it was made.
        group: its maker's.
        account: charged for its jobs.
        environment: parallel environment of its slots; may be empty.
    """

    number: int
    name: str
    owner: str
    state: str
    start: Instant
    end: Instant
    slots_at: tuple[tuple[str, int], ...] = ()
    users: tuple[str, ...] = ()
    submitted: Instant | None = None
    group: str = ""
    account: str = ""
    environment: str = ""

    @property
    def slots(self) -> int:
        return sum(slots for _, slots in self.slots_at)
