"""The job launcher of a Resource Agent: one short process for each question, run as the buyer's local account.

An agent that is root switches to that account. Any other agent uses `sudo`, which needs one line of sudoers and the
installed worker (docs/launching.md). Only for a simulated machine may a site map a buyer to the agent's own account, or
to `nobody` if the agent is root.
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
"""Maximum number of simultaneous worker processes of one resource."""

LIMIT_S: Final = 45.0
"""Timeout of a question in seconds; commands of batch systems have timeouts of 10 to 20 s."""

FOLDERS_OF_NOBODY: Final = Path("/var/tmp/ramp-jobs")  # noqa: S108 - made by root, owned by root, checked below
"""Working folder of jobs on simulated machines if their agent is root."""


@dataclass(frozen=True, slots=True)
class LauncherSettings:
    """Settings for launching a resource's jobs on this computer.

    Attributes:
        executor: executor of the jobs, as in `ramp.protocol.resource.jobs.launching.LaunchTerms`.
        acting: means of running commands as other accounts.
        own_folder: folder for jobs of the agent's own account.
        environment: variables that the worker inherits from the agent.
        variables: further variables, with which commands find the batch system.
        psij_python: interpreter with PSI/J, for a batch system.
    """

    executor: str
    acting: Acting
    own_folder: Path
    environment: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    psij_python: str = ""


@dataclass(slots=True)
class JobLauncher:
    """Passes questions of the resource's party to workers.

    Attributes:
        deliver: called with each answer.
        watch: called when the launcher starts or stops failing.
    """

    settings: LauncherSettings
    deliver: Callable[[ev.Answer], None]
    watch: Callable[[Progress], None]
    _last: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _ill: bool = False

    def ask(self, question: fx.AskLauncher, now: Instant) -> None:
        # questions about one job wait for each other
        job_id = question.job.job_id
        task = asyncio.get_running_loop().create_task(self._answer(question, self._last.get(job_id)))
        self._last[job_id] = task
        task.add_done_callback(lambda done: self._last.pop(job_id) if self._last.get(job_id) is done else None)

    async def stop(self) -> None:
        """Stop asking; launched jobs continue."""
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
            last = complaints.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no error message"]
            raise ValueError(f"{command[0]} ended with status {process.returncode}: {last[0][:300]}")
        return printed

    def _command(self, account: str) -> tuple[tuple[str, ...], Mapping[str, Any], str]:
        """Return the worker's command for an account, the options of its process, and the folder of its jobs."""
        how = self.settings.acting
        if account != OWN_ACCOUNT:
            return how.command(account)
        inside = worker_inside(how.python)
        if os.geteuid() != 0:
            return inside, {}, str(self.settings.own_folder)
        nobody = account_of(NOBODY)
        return inside, becoming(nobody), str(folder_for(nobody, FOLDERS_OF_NOBODY))
