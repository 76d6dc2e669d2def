"""The interface between the common plug-in and one batch system.

A system gives a picture of itself (`snapshot`), and makes, hands over and removes reservations under names of ours. So
support for a further system is a module that implements `BatchSystem` by a few questions (`ramp.batch.commands`). All
values are frozen; instants and durations are integers of microseconds as in `ramp.model.instant`. A system's answers
are checked where they are read, and the effects of orders are read back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol

from ramp.errors import SystemRefused
from ramp.model.instant import DAY, Duration, Instant
from ramp.model.request import RequestUnit

Parts = tuple[tuple[str, int], ...]
"""Nodes and the cores of each, in the order of the nodes' names in the system."""

FOREVER: Final[Duration] = 365 * DAY
"""Assumed length of a job without a limit; Slurm itself takes a year."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node (Grid Engine: one queue instance).

    Attributes:
        name: its name in the system.
        cores: its cores.
        usable: whether jobs can start on it; false if it is down, drained, disabled or not answering.
        state: its state in the system's own words.
        reason: why it is not usable, in the system's or an administrator's words; may be empty.
        memory_mb: its memory in MB; None if unknown.
        waited_for: whether the system still waits for a node that does not answer.
        gpus: its GPUs, by model; empty for one that the system does not name.
    """

    name: str
    cores: int
    usable: bool = True
    state: str = ""
    reason: str = ""
    memory_mb: int | None = None
    waited_for: bool = False
    gpus: tuple[tuple[str, int], ...] = ()

    def has_gpus(self, unit: RequestUnit) -> bool:
        """Whether it has the GPUs of a request's nodes."""
        has = sum(count for model, count in self.gpus if unit.gpu_model in (None, model))
        return has >= (unit.gpus_per_node or 0)


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs.

    Attributes:
        job_id: its id in the system.
        user: its owner.
        start: when it started.
        end: when its time limit ends; None without a limit.
        parts: its cores.
        reservation: name of the reservation in which it runs; may be empty.
        submitted: None if unknown.
        takes: cores of each node that others cannot use: its own, and those whose memory it has.
    """

    job_id: str
    user: str
    start: Instant
    end: Instant | None
    parts: Parts
    reservation: str = ""
    submitted: Instant | None = None
    takes: Parts = ()

    @property
    def cores(self) -> int:
        return sum(count for _, count in self.parts)

    @property
    def taken(self) -> Parts:
        """Return the cores that others cannot use; without a look at memory, its own."""
        return self.takes or self.parts


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits.

    Attributes:
        job_id: its id in the system.
        user: its owner.
        submitted: None if unknown.
        cores: cores that it wants.
        time_limit: its limit; None without a limit.
        planned_start: the system's plan; None without a plan.
        planned_nodes: nodes of that plan; empty if unknown.
        held: whether it waits for a person or another job, and not for cores.
        reservation: name of the reservation in which it will run; may be empty.
    """

    job_id: str
    user: str
    submitted: Instant | None
    cores: int
    time_limit: Duration | None
    planned_start: Instant | None = None
    planned_nodes: tuple[str, ...] = ()
    held: bool = False
    reservation: str = ""


@dataclass(frozen=True, slots=True)
class SystemReservation:
    """A reservation that the system has, ours or another's.

    Attributes:
        name: ours begin with `NAME_PREFIX`.
        reservation_id: what jobs say to run in it (Slurm: the name; Grid Engine: the number).
        start: its begin.
        end: None without an end.
        parts: its cores.
        users: local accounts that may run in it.
        active: whether it has begun.
        cores_in_all: cores in all, if the system does not (yet) say how many of each node; `parts` then has all of
            each. None if `parts` is exact.
    """

    name: str
    reservation_id: str
    start: Instant
    end: Instant | None
    parts: Parts
    users: tuple[str, ...] = ()
    active: bool = False
    cores_in_all: int | None = None

    def has_just(self, parts: Parts) -> bool:
        """Whether it has exactly these cores, as far as the system tells."""
        if self.cores_in_all is None:
            return sorted(self.parts) == sorted(parts)
        same_nodes = {name for name, _ in self.parts} == {name for name, _ in parts}
        return same_nodes and self.cores_in_all == sum(count for _, count in parts)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the part that is for sale allows a job; None for no limit.

    Attributes:
        closed: why no job starts there now; empty if jobs start.
        longest: maximum length of a job.
        cores: maximum number of cores of a job.
        nodes: maximum number of nodes of a job.
        cores_per_node: maximum number of cores of a node in use at a time.
    """

    closed: str = ""
    longest: Duration | None = None
    cores: int | None = None
    nodes: int | None = None
    cores_per_node: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class SystemSnapshot:
    """One picture of a system.

    Attributes:
        taken_at: when it was taken.
        nodes: the nodes of the part that is for sale (a partition, a queue), in the system's order.
        running: jobs with cores on any of them.
        waiting: jobs that wait for that part.
        reservations: reservations, those of others too; parts on other nodes are left out.
        limits: limits on every job in that part.
    """

    taken_at: Instant
    nodes: tuple[Node, ...]
    running: tuple[RunningJob, ...] = ()
    waiting: tuple[WaitingJob, ...] = ()
    reservations: tuple[SystemReservation, ...] = ()
    limits: Limits = NO_LIMITS

    @property
    def free_cores(self) -> int:
        """Return the cores of usable nodes that neither a job nor a begun reservation has; 0 if no job starts."""
        if self.limits.closed:
            return 0
        begun = {each.name: each.parts for each in self.reservations if each.active}
        jobs = [job.taken for job in self.running if job.reservation not in begun]
        taken: Counter[str] = Counter()
        for name, count in chain.from_iterable((*begun.values(), *jobs)):
            taken[name] += count
        return sum(max(node.cores - taken[node.name], 0) for node in self.nodes if node.usable)


@dataclass(frozen=True, slots=True)
class WantedReservation:
    """An order for a reservation.

    Attributes:
        name: at most 64 characters of `[A-Za-z0-9_.-]`.
        start: a whole second.
        end: a whole second.
        parts: the cores of each node, at least one each.
        user: the only local account that may run in it; empty for the market's own user.
    """

    name: str
    start: Instant
    end: Instant
    parts: Parts
    user: str = ""


NAME_PREFIX = "ramp_"
"""Begin of the names of the market's reservations, by which administrators recognise them."""


class BatchSystem(Protocol):
    """One live system. Calls come one at a time; each may take as long as its commands.

    Failures raise a `ramp.errors.BatchSystemError`; after a failed `make`, `hand_over` or `remove` the result is
    unknown. `SystemRefused` alone is a definite no.
    """

    name: str
    """The name in messages: `slurm`."""

    market_user: str
    """The local account that may run in reservations before they are handed over to buyers."""

    chooses_parts: bool
    """Whether the system itself chooses the cores of each node; the book then records its choice."""

    begin_lag: Duration
    """Maximum delay of a reservation that begins at once; 0 if the system accepts a begin in the past."""

    def snapshot(self, now: Instant) -> SystemSnapshot:
        """Take a picture of the system."""
        ...

    def reservations(self) -> tuple[SystemReservation, ...]:
        """Read the reservations alone."""
        ...

    def make(self, wanted: WantedReservation) -> None:
        """Make a reservation in a form that the system checks against everything that it knows.

        The caller reads it back. Repeating the same name changes nothing.

        Raises:
            SystemRefused: it was not made; `busy` tells whether the cores were the reason.
        """
        ...

    def hand_over(self, reservation: SystemReservation, user: str) -> None:
        """Make a local account the only one that may run in a reservation.

        Raises:
            SystemRefused: there is no such account.
        """
        ...

    def remove(self, reservation: SystemReservation) -> None:
        """Cancel the jobs of a reservation and remove it; one that is gone is no error."""
        ...

    def running_in(self, reservation: SystemReservation) -> tuple[str, ...]:
        """Return the ids of the jobs that name the reservation, running or waiting."""
        ...

    def change(self, reservation: SystemReservation, wanted: WantedReservation) -> bool:
        """Give a reservation other cores or another end in place, without disturbing its jobs.

        The system checks additions against everything that it knows. The caller reads back the result, and the jobs'
        cores.

        Args:
            reservation: as it is now.
            wanted: its name, and its new cores and end; its begin and its user stay as they are.

        Returns:
            Whether it was ordered; false, as by default, if the system does not support this change.

        Raises:
            SystemRefused: it was not changed; `busy` tells whether the cores were the reason.
        """
        return False

    def launched_in(self, name: str) -> frozenset[str]:
        """Return the ids (see `RunningJob`) of jobs that a Resource Agent launched; their cores are promised."""
        return frozenset()

    def narrow_job(self, job_id: str, nodes: int) -> None:
        """Reduce a running job to its first `nodes` nodes; `SystemRefused`, as by default, if it keeps all."""
        raise SystemRefused(f"{self.name} cannot narrow job {job_id} to {nodes} nodes")
