"""The launcher of a Resource Agent: one short process a question, which acts as the buyer's local account.

Never as the agent's own account where that can be helped: an agent that is root becomes the account; any other asks
`sudo` for it, which needs one line of sudoers and the installed worker (docs/launching.md). Only for a machine that is
simulated may the site map a buyer to the agent's own account, or to `nobody` where the agent is root.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError
from ramp.launching import worker
from ramp.launching.acting import Acting, account_of, becoming, folder_for, worker_inside
from ramp.launching.messages import ANSWER_BYTES_MAX, answer_of, in_doubt, question_text
from ramp.model.instant import Instant
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import GuestFailed, Progress
from ramp.protocol.resource.jobs.launching import OWN_ACCOUNT

NOBODY: Final = "nobody"
AT_ONCE: Final = 8
"""Worker processes of one resource at a time."""

LIMIT_S: Final = 45.0
"""Seconds that a question may take: a batch system's own commands give up after 10 to 20."""

FOLDERS_OF_NOBODY: Final = Path("/var/tmp/ramp-jobs")  # noqa: S108 - made by root, owned by root, checked below
"""Where jobs of simulated machines run if their agent is root."""


@dataclass(frozen=True, slots=True)
class LauncherSettings:
    """How a resource's jobs are launched on this computer.

    Attributes:
        executor: what runs the jobs; see `ramp.protocol.resource.jobs.launching.LaunchTerms`.
        acting: by what other accounts are acted as.
        own_folder: for jobs of the agent's own account.
        environment: variables of the agent's environment that the worker is given.
        variables: further ones, by which the batch system's commands find it.
        psij_python: interpreter that has PSI/J, for a batch system.
    """

    executor: str
    acting: Acting
    own_folder: Path
    environment: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    psij_python: str = ""


@dataclass(slots=True)
class JobLauncher:
    """Asks the worker; a guest of the resource's party.

    Attributes:
        settings: how.
        deliver: takes the answers.
        watch: told whether the launcher is well.
    """

    settings: LauncherSettings
    deliver: Callable[[ev.Answer], None]
    watch: Callable[[Progress], None]
    _last: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _ill: bool = False

    def ask(self, question: fx.AskLauncher, now: Instant) -> None:
        """See `ramp.runtime.host.Guest`; the questions about one job are asked one after another."""
        job_id = question.job.job_id
        task = asyncio.get_running_loop().create_task(self._answer(question, self._last.get(job_id)))
        self._last[job_id] = task
        task.add_done_callback(lambda done: self._last.pop(job_id) if self._last.get(job_id) is done else None)

    async def stop(self) -> None:
        """Ask no more; what has been launched goes on."""
        tasks = tuple(self._last.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, question: fx.AskLauncher, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.gather(before, return_exceptions=True)
        answer: ev.Answer
        async with self._at_once:
            try:
                answer = answer_of(question, await self._asked(question))
            except (ValueError, OSError, ConfigurationError, TimeoutError) as error:
                reason = str(error) or f"the worker did not answer within {LIMIT_S:g} s"
                answer = in_doubt(question, f"the launcher failed: {reason}")
                self._ill = True
                self.watch(GuestFailed("launcher", reason))
            else:
                if self._ill:
                    self._ill = False
                    self.watch(GuestFailed("launcher", ""))
        self.deliver(answer)

    async def _asked(self, question: fx.AskLauncher) -> bytes:
        """What the worker prints.

        Raises:
            OSError, TimeoutError, ValueError, ConfigurationError: if it cannot be started, or fails.
        """
        command, options, root = self._command(question.job.account)
        how = self.settings
        given = {name: os.environ[name] for name in how.environment if name in os.environ}
        text = question_text(
            question, how.executor, root, {**given, **how.variables}, how.psij_python, how.acting.python
        )
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env={"PATH": worker.PATH, "LC_ALL": "C.UTF-8"},
            start_new_session=True,
            limit=2 * ANSWER_BYTES_MAX,
            **options,
        )
        try:
            async with asyncio.timeout(LIMIT_S):
                printed, complaints = await process.communicate(text)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode != 0:
            last = complaints.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it says nothing"]
            raise ValueError(f"{command[0]} ended with {process.returncode}: {last[0][:300]}")
        return printed

    def _command(self, account: str) -> tuple[tuple[str, ...], Mapping[str, Any], str]:
        """The worker's command as an account, what its process is made with, and the folder of its jobs.

        Raises:
            ConfigurationError: if there is no such account, or it is the agent's own.
        """
        how = self.settings.acting
        if account != OWN_ACCOUNT:
            return how.command(account)
        inside = worker_inside(how.python)
        if os.geteuid() != 0:
            return inside, {}, str(self.settings.own_folder)
        nobody = account_of(NOBODY)
        return inside, becoming(nobody), str(folder_for(nobody, FOLDERS_OF_NOBODY))
