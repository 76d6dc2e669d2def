"""What a batch system must answer so that it can be sold: the interface between the common plug-in and one system.

A system is asked for one picture of itself (`snapshot`), and told to make, hand over and remove reservations, which it
keeps by the names that we give them. Nothing else of it is used, so a further system is a module that implements
`BatchSystem` by a few questions (`ramp.batch.commands`). All values are frozen; instants and durations are integers of
microseconds as in `ramp.model.instant`. What a system says is checked where it is read; what it does is read back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ramp.model.instant import Duration, Instant

Parts = tuple[tuple[str, int], ...]
"""Which nodes, and how many cores of each, in the order of the nodes' names in the system."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node (Grid Engine: one queue instance).

    Attributes:
        name: its name in the system.
        cores: its cores.
        usable: whether jobs can start on it; false where it is down, drained, disabled or not answering.
        state: its state in the system's own words.
        reason: why it is not usable, in the system's or an administrator's words; empty where nobody said.
        memory_mb: its memory in MB; None where the system does not say.
        waited_for: whether the system itself waits for a node that it does not hear, and has not given it up.
    """

    name: str
    cores: int
    usable: bool = True
    state: str = ""
    reason: str = ""
    memory_mb: int | None = None
    waited_for: bool = False


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs.

    Attributes:
        job_id: its id in the system.
        user: whose it is.
        start: when it started.
        end: when its time limit ends; None where it has none.
        parts: the cores that it has.
        reservation: name of the reservation in which it runs; empty for none.
        submitted: when it was submitted; None where the system does not say.
    """

    job_id: str
    user: str
    start: Instant
    end: Instant | None
    parts: Parts
    reservation: str = ""
    submitted: Instant | None = None

    @property
    def cores(self) -> int:
        """Cores in all."""
        return sum(count for _, count in self.parts)


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits.

    Attributes:
        job_id: its id in the system.
        user: whose it is.
        submitted: when it was submitted; None where the system does not say.
        cores: cores that it wants.
        nodes: nodes that it wants at least.
        time_limit: its limit; None where it has none.
        planned_start: when the system plans to start it; None where it has no plan.
        planned_nodes: where the system plans to start it; empty where it does not say.
        held: whether it waits for a person or another job, and not for cores.
        priority: the system's number, higher first; 0 where there is none.
        reservation: name of the reservation in which it will run; empty for none.
    """

    job_id: str
    user: str
    submitted: Instant | None
    cores: int
    nodes: int
    time_limit: Duration | None
    planned_start: Instant | None = None
    planned_nodes: tuple[str, ...] = ()
    held: bool = False
    priority: int = 0
    reservation: str = ""


@dataclass(frozen=True, slots=True)
class SystemReservation:
    """A reservation that the system has, ours or another's.

    Attributes:
        name: its name; ours begin with `NAME_PREFIX`.
        reservation_id: what jobs say to run in it (Slurm: the name; Grid Engine: the number).
        start: its begin.
        end: its end; None where it has none.
        parts: the cores that it has.
        users: who may run in it, as local accounts.
        active: whether the system has begun it.
        cores_in_all: cores in all, where the system does not tell (yet) how many of each node; `parts` then has all
            cores of each. None where `parts` is exact.
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
        """Whether it has these cores and no others, as far as the system tells."""
        if self.cores_in_all is None:
            return sorted(self.parts) == sorted(parts)
        same_nodes = {name for name, _ in self.parts} == {name for name, _ in parts}
        return same_nodes and self.cores_in_all == sum(count for _, count in parts)


@dataclass(frozen=True, slots=True)
class SystemSnapshot:
    """One picture of a system.

    Attributes:
        taken_at: when it was taken.
        nodes: the nodes of the part that is for sale (a partition, a queue), in the system's order.
        running: jobs with cores on any of them.
        waiting: jobs that wait for that part.
        reservations: reservations, those of others too; parts on other nodes are left out.
    """

    taken_at: Instant
    nodes: tuple[Node, ...]
    running: tuple[RunningJob, ...] = ()
    waiting: tuple[WaitingJob, ...] = ()
    reservations: tuple[SystemReservation, ...] = ()

    @property
    def cores(self) -> int:
        """Cores of all nodes, usable or not."""
        return sum(node.cores for node in self.nodes)


@dataclass(frozen=True, slots=True)
class WantedReservation:
    """What a system is told to set aside.

    Attributes:
        name: its name, at most 64 characters of `[A-Za-z0-9_.-]`.
        start: its begin, a whole second.
        end: its end, a whole second.
        parts: the cores of each node, at least one each.
        user: the only local account that may run in it; empty for the market's own user.
    """

    name: str
    start: Instant
    end: Instant
    parts: Parts
    user: str = ""


NAME_PREFIX = "ramp_"
"""Reservations of the market begin with it, so that whoever manages the system knows them."""


class BatchSystem(Protocol):
    """One live system. Calls come one at a time; each may take as long as its commands.

    Whatever fails raises a `ramp.errors.BatchSystemError`; after `make`, `hand_over` and `remove` nobody knows then
    what has been done. `SystemRefused` alone is a sure no.
    """

    name: str
    """What messages call it: `slurm`."""

    market_user: str
    """The local account that may run in what was not handed over to a buyer."""

    def snapshot(self, now: Instant) -> SystemSnapshot:
        """One picture, taken now."""
        ...

    def reservations(self) -> tuple[SystemReservation, ...]:
        """The reservations alone, read now."""
        ...

    def make(self, wanted: WantedReservation) -> None:
        """Make a reservation in a form that is checked against everything that the system knows.

        That it exists as wanted is for the caller to read back. The same name again changes nothing.

        Raises:
            SystemRefused: it was not made; `busy` tells whether the cores were the reason.
        """
        ...

    def hand_over(self, reservation: SystemReservation, user: str) -> None:
        """Let a local account run in a reservation, and nobody else.

        Raises:
            SystemRefused: there is no such account.
        """
        ...

    def remove(self, reservation: SystemReservation) -> None:
        """Cancel the jobs of a reservation and remove it; one that is gone is no error."""
        ...

    def running_in(self, reservation: SystemReservation) -> tuple[str, ...]:
        """Ids of the jobs that name the reservation, running or waiting."""
        ...


class ChangingSystem(BatchSystem, Protocol):
    """A system that changes reservations while they stand, and lets jobs give nodes up."""

    def change(self, reservation: SystemReservation, wanted: WantedReservation) -> bool:
        """Give a reservation other cores or another end in place; jobs in it go on.

        What it gets is checked against everything that the system knows. That it is as wanted is for the caller to read
        back, and so is what jobs have.

        Args:
            reservation: as it is there.
            wanted: its name, and what it shall have; its begin and its user stay as they are.

        Returns:
            Whether it was ordered; false where the system changes no reservation of that form, or not to that.

        Raises:
            SystemRefused: it was not changed; `busy` tells whether the cores were the reason.
        """
        ...

    def launched_in(self, name: str) -> frozenset[str]:
        """Ids of the jobs in a reservation, as `RunningJob` has them, that a Resource Agent has launched.

        Their agent has promised their buyer that many cores.

        Raises:
            PluginError: nobody knows.
        """
        ...

    def narrow_job(self, job_id: str, nodes: int) -> None:
        """Let a running job keep only the first so many of its nodes.

        Raises:
            SystemRefused: it keeps all.
        """
        ...
