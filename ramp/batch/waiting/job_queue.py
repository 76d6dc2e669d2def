"""Queues whose starts are sold: a picture of each, and jobs that are held and released.

The jobs of a batch system's queue are submitted by commands as the buyer's local account, through the worker that
launches jobs.

Jobs are known by names of ours, because after a crash the number of the last one is unknown. Failures raise a
`ramp.errors.BatchSystemError`; the order may have had its effect all the same, and is looked up by name.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, Protocol

from ramp.batch.commands import TIME_LIMIT_S, CommandRunner, Completed, Question, Runner, ask
from ramp.batch.system import BatchSystem, SystemSnapshot
from ramp.errors import CommandFailed, ConfigurationError, SystemRefused, command_error
from ramp.launching.acting import Acting
from ramp.launching.worker import VERSION
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


RunnerOf = Callable[[str], Runner]
"""Returns the runner for a local account; the empty name is the agent's own."""

MARGIN_S: Final = 3.0
"""Extra seconds of the worker beyond its command's limit."""


@dataclass(frozen=True, slots=True)
class AccountRunner:
    """A `ramp.batch.commands.Runner` as another account.

    Attributes:
        acting: starts the worker.
        account: the local account.
        variables: by which the commands find their system; `PATH` is a folder of them.
        time_limit_s: seconds that a command may take.
    """

    acting: Acting
    account: str
    variables: Mapping[str, str]
    time_limit_s: float = TIME_LIMIT_S

    def __call__(self, argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        limit = self.time_limit_s if time_limit_s is None else time_limit_s
        try:
            command, _ = self.acting.command(self.account)
        except (ConfigurationError, OSError) as error:
            raise command_error(argv, f"cannot be run: {error}", transient=False) from error
        question = {"version": VERSION, "verb": "command", "argv": argv, "stdin": stdin, "limit_s": limit}
        text = json.dumps({**question, "variables": dict(self.variables)})
        done = CommandRunner({}, limit + MARGIN_S)(command, text)
        if done.code:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise command_error(argv, f"cannot be run: as {self.account}: {last[:300]}", transient=False)
        try:
            answer = json.loads(done.stdout)
            if "error" in answer:
                raise command_error(argv, f"cannot be run: as {self.account}: {answer['error']}", transient=False)
            if "timed_out" in answer:
                raise command_error(argv, f"it took more than {limit:g} s")
            return Completed(argv, int(answer["code"]), str(answer["stdout"]), str(answer["stderr"]))
        except (ValueError, KeyError, TypeError) as error:
            raise command_error(argv, f"unreadable output: the worker says {done.stdout[:120]!r}") from error


def runner_of(own: Runner, acting: Mapping[str, str], variables: Mapping[str, str], time_limit_s: float) -> RunnerOf:
    """Return a function that gives runners by account.

    Args:
        own: for the agent's own account.
        acting: see `PluginSettings.acting`; empty without other accounts.
        variables: by which the commands find their system.
        time_limit_s: seconds that a command may take.
    """
    how = Acting.told(acting)

    def runner(account: str) -> Runner:
        if not account:
            return own
        if how is None:
            raise command_error(
                ("sudo",), f"cannot be run: no way to act as account {account} is configured", transient=False
            )
        return AccountRunner(how, account, variables, time_limit_s)

    return runner


class CommandQueue(JobQueue, ABC):
    """A queue whose jobs are submitted, released and deleted by commands, as the accounts that own them.

    Args:
        system: the live system; questions are asked as the agent's own account.
        as_account: runs commands as the account that owns the jobs.
    """

    source = "live"

    RELEASE: ClassVar[tuple[str, ...]]
    DELETE: ClassVar[tuple[str, ...]]
    """Commands, followed by a job's id."""

    NEVER: ClassVar[tuple[str, ...]]
    """Words of a definite refusal."""

    GONE: ClassVar[tuple[str, ...]]
    """Words about a job that is gone."""

    ORDER_S: ClassVar[float | None] = None
    """Time limit of an order; None for that of the runner."""

    def __init__(self, system: BatchSystem, as_account: RunnerOf) -> None:
        self._system = system
        self._as_account = as_account

    @abstractmethod
    def _submission(self, wanted: WantedJob) -> tuple[str, ...]:
        """Return the command that submits a held job; its script is the input."""

    @abstractmethod
    def own(self, prefix: str) -> tuple[tuple[str, OwnJob], ...]:
        """Return the jobs whose names begin with a prefix, with their names; those ended long ago may be missing."""

    def look(self, now: Instant) -> SystemSnapshot:
        return self._system.snapshot(now)

    def submit(self, wanted: WantedJob) -> None:
        self._order(self._submission(wanted), wanted.account, wanted.script)

    def let_go(self, job_id: str, account: str = "") -> None:
        self._order_about(self.RELEASE, job_id, account)

    def delete(self, job_id: str, account: str = "") -> None:
        self._order_about(self.DELETE, job_id, account)

    def _order_about(self, command: tuple[str, ...], job_id: str, account: str) -> None:
        try:
            self._order((*command, job_id), account)
        except (CommandFailed, SystemRefused) as failed:
            if not any(words in failed.reason for words in self.GONE):
                raise

    def _order(self, argv: tuple[str, ...], account: str, stdin: str = "") -> None:
        try:
            ask(Question(argv, str, stdin=stdin, time_limit_s=self.ORDER_S), self._as_account(account))
        except CommandFailed as failed:
            if any(words in failed.said for words in self.NEVER):
                raise SystemRefused(failed.reason) from failed
            raise
