"""What a queue must answer so that starts on it can be sold: a picture of itself, and jobs that are held and let go.

Jobs are known by the names that we give them, for after a crash nobody knows the number of the last. Whatever fails
raises a `ramp.errors.BatchSystemError`; what was to be done may have been done all the same, and is looked up by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from ramp.batch.system import SystemSnapshot
from ramp.model.instant import Duration, Instant
from ramp.model.request import Nodes, TotalCores


@dataclass(frozen=True, slots=True)
class WantedJob:
    """A job that is to join the queue, held.

    Attributes:
        name: its name, at most 64 characters of `[A-Za-z0-9_.-]`.
        cores: cores, or nodes with cores of each.
        length: microseconds that it may run.
        not_before: when it may begin at the earliest; None for at once.
        script: what it runs, beginning with `#!`.
        account: the local account whose job it is; empty for the agent's own.
    """

    name: str
    cores: TotalCores | Nodes
    length: Duration
    not_before: Instant | None
    script: str
    account: str = ""


class Standing(StrEnum):
    """How one of our jobs stands."""

    HELD = "held"
    WAITING = "waiting"
    STARTED = "started"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class OwnJob:
    """One of our jobs, as the queue has it.

    Attributes:
        job_id: its id in the system.
        standing: held, waiting, started (and perhaps ended since), or gone without having started.
        started_at: when it started; None before.
        ended: whether it has started and ended since; some systems tell of such jobs for minutes.
    """

    job_id: str
    standing: Standing
    started_at: Instant | None = None
    ended: bool = field(default=False, compare=False)


class JobQueue(Protocol):
    """One queue of one system. Calls come one at a time.

    Whose a job is, is said with every call: a job of the same name of somebody else's is none of ours.
    """

    name: str
    """What messages call it: `slurm`."""

    source: str
    """What drives it: `live`, or of a simulated one `log` or `synthetic`; shown in every offer."""

    def look(self, now: Instant) -> SystemSnapshot:
        """The queue as it is now: nodes, jobs that run, and jobs that wait in the order of their turns."""
        ...

    def find(self, name: str, account: str = "") -> tuple[OwnJob, ...]:
        """Our jobs of a name, by their ids; those that ended long ago may be missing.

        Args:
            name: which.
            account: whose jobs they are; empty for the agent's own, as in all calls.
        """
        ...

    def submit(self, wanted: WantedJob) -> None:
        """Submit a job held, so that it does not start before it is let go.

        Raises:
            SystemRefused: the system surely will not have it.
        """
        ...

    def let_go(self, job_id: str, account: str = "") -> None:
        """Let a held job take its turn."""
        ...

    def delete(self, job_id: str, account: str = "") -> None:
        """Cancel a job, waiting or running; one that is gone is no error."""
        ...


@runtime_checkable
class ListedQueue(Protocol):
    """A queue that outlives the agent and can tell all of the market's jobs, for those who look from outside."""

    def own(self, prefix: str) -> tuple[tuple[str, OwnJob], ...]:
        """All jobs whose names begin with a prefix, with their names; those that ended long ago may be missing.

        Args:
            prefix: of a resource's names (`ramp.batch.reconciling.own_prefix`).
        """
        ...
