"""Commands of a batch system run as a buyer's local account, through the worker that launches jobs."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ramp.batch.commands import TIME_LIMIT_S, CommandRunner, Completed, Runner
from ramp.errors import AnswerUnreadable, CommandMissing, CommandTimedOut, ConfigurationError
from ramp.launching.acting import Acting
from ramp.launching.worker import VERSION

RunnerOf = Callable[[str], Runner]
"""What runs commands as a local account, by its name; the empty one is the agent's own."""

MARGIN_S: Final = 3.0
"""Seconds that the worker has beyond its command's."""


@dataclass(frozen=True, slots=True)
class AccountRunner:
    """A `ramp.batch.commands.Runner` as somebody else.

    Attributes:
        acting: by what others are acted as.
        account: as whom.
        variables: by which the commands find their system; `PATH` is a folder of them.
        time_limit_s: seconds that a command may take.
    """

    acting: Acting
    account: str
    variables: Mapping[str, str]
    time_limit_s: float = TIME_LIMIT_S

    def __call__(self, argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        """See `Runner`."""
        limit = self.time_limit_s if time_limit_s is None else time_limit_s
        try:
            command, options, _ = self.acting.command(self.account)
        except (ConfigurationError, OSError) as error:
            raise CommandMissing(argv, str(error)) from error
        question = {"version": VERSION, "verb": "command", "argv": argv, "stdin": stdin, "limit_s": limit}
        text = json.dumps({**question, "variables": dict(self.variables)})
        done = CommandRunner({}, limit + MARGIN_S, process=options)(command, text)
        if done.code:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise CommandMissing(argv, f"as {self.account}: {last[:300]}")
        try:
            answer = json.loads(done.stdout)
            if "error" in answer:
                raise CommandMissing(argv, f"as {self.account}: {answer['error']}")
            if "timed_out" in answer:
                raise CommandTimedOut(argv, f"it took more than {limit:g} s")
            return Completed(argv, int(answer["code"]), str(answer["stdout"]), str(answer["stderr"]))
        except (ValueError, KeyError, TypeError) as error:
            raise AnswerUnreadable(argv, f"the worker says {done.stdout[:120]!r}") from error


def runner_of(own: Runner, acting: Mapping[str, str], variables: Mapping[str, str], time_limit_s: float) -> RunnerOf:
    """Runners by account.

    Args:
        own: as the agent's own account.
        acting: by what others are acted as, see `PluginSettings.acting`; empty where they are not.
        variables: by which the commands find their system.
        time_limit_s: seconds that a command may take.
    """
    how = Acting.told(acting)

    def runner(account: str) -> Runner:
        if not account:
            return own
        if how is None:
            raise CommandMissing(("sudo",), f"no way to act as account {account} is configured")
        return AccountRunner(how, account, variables, time_limit_s)

    return runner


def own_account() -> str:
    """The name of the account that this process is of."""
    return pwd.getpwuid(os.geteuid()).pw_name
