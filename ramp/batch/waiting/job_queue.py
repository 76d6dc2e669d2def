"""The interface of a queue whose starts are sold: a picture of itself, and jobs that are held and released.

Jobs are known by names of ours, because after a crash the number of the last one is unknown. Failures raise a
`ramp.errors.BatchSystemError`; the order may have had its effect all the same, and is looked up by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ramp.batch.system import SystemSnapshot
from ramp.model.instant import Duration, Instant
from ramp.model.request import Nodes, TotalCores


@dataclass(frozen=True, slots=True)
class WantedJob:
    """A job to submit in the held state.

    Attributes:
        name: at most 64 characters of `[A-Za-z0-9_.-]`.
        cores: cores, or nodes with cores of each.
        length: microseconds that it may run.
        not_before: earliest begin; None for at once.
        script: its text, beginning with `#!`.
        account: the local account that owns the job; empty for the agent's own.
        gres: GPUs of each node in Slurm's words; `none` without.
    """

    name: str
    cores: TotalCores | Nodes
    length: Duration
    not_before: Instant | None
    script: str
    account: str = ""
    gres: str = "none"


class Standing(StrEnum):
    """State of one of our jobs."""

    HELD = "held"
    WAITING = "waiting"
    STARTED = "started"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class OwnJob:
    """One of our jobs in the queue.

    Attributes:
        job_id: its id in the system.
        standing: held, waiting, started (and perhaps ended since), or gone without having started.
        started_at: when it started; None before.
        ended: whether it has started and ended since; some systems list such jobs for minutes.
    """

    job_id: str
    standing: Standing
    started_at: Instant | None = None
    ended: bool = field(default=False, compare=False)


class JobQueue(Protocol):
    """One queue of one system. Calls come one at a time.

    Every call names the owner: jobs of the same name of other accounts are not ours.
    """

    name: str
    """The name in messages: `slurm`."""

    source: str
    """Either `live`, or for simulated queues `log` or `synthetic`; shown in every offer."""

    def look(self, now: Instant) -> SystemSnapshot:
        """Return nodes, running jobs, and waiting jobs in the order of their turns."""
        ...

    def find(self, name: str, account: str = "", job_id: str = "") -> tuple[OwnJob, ...]:
        """Return our jobs of a name, and the one of a number; those that ended long ago may be missing.

        Args:
            name: of the jobs.
            job_id: of a job known by its number, because its owner may have renamed it; may be empty.
            account: their owner; empty for the agent's own, as in all calls.
        """
        ...

    def submit(self, wanted: WantedJob) -> None:
        """Submit a job held, so that it does not start before it is released.

        Raises:
            SystemRefused: the system definitely refused it.
        """
        ...

    def let_go(self, job_id: str, account: str = "") -> None:
        """Release a held job."""
        ...

    def delete(self, job_id: str, account: str = "") -> None:
        """Cancel a job, waiting or running; one that is gone is no error."""
        ...

    def own(self, prefix: str) -> tuple[tuple[str, OwnJob], ...] | None:
        """Return all jobs whose names begin with a prefix, with their names; those that ended long ago may be missing.

        None, as by default, for a queue within its agent, which nobody inspects.

        Args:
            prefix: of a resource's names (`ramp.batch.reconciling.own_prefix`).
        """
        return None
