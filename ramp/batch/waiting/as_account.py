"""Run commands of a batch system as a buyer's local account, through the worker that launches jobs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from ramp.batch.commands import TIME_LIMIT_S, CommandRunner, Completed, Question, Runner, ask
from ramp.batch.system import BatchSystem, SystemSnapshot
from ramp.batch.waiting.job_queue import JobQueue, WantedJob
from ramp.errors import CommandFailed, ConfigurationError, SystemRefused, command_error
from ramp.launching.acting import Acting
from ramp.launching.worker import VERSION
from ramp.model.instant import Instant

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
