"""The job launcher of a Resource Agent: one short process for each question, run as the buyer's local account.

A job on this computer has a keeper, which survives the agent (`ramp/launching/keeper.py`); its record, in the agent's
state folder, answers all questions but those for files. An agent that is root switches to that account. Any other agent
uses `sudo`, which needs one line of sudoers and the installed worker (docs/launching.md). Only for a simulated machine
may a site map a buyer to the agent's own account, or to `nobody` if the agent is root.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError
from ramp.launching import worker
from ramp.launching.acting import Acting, account_of, becoming, folder_for, worker_inside
from ramp.launching.keeper import ENVIRONMENT, KeeperTask, keeper_of, read_record
from ramp.launching.messages import ANSWER_BYTES_MAX, answer_of, in_doubt, job_plain, question_text
from ramp.launching.worker import STREAMS, is_over
from ramp.model.instant import SECOND, Instant
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import GuestFailed, Progress
from ramp.protocol.resource.jobs.launching import LOCAL, OWN_ACCOUNT

KEEPER: tuple[str, ...] = (sys.executable, "-m", "ramp.launching.keeper")
"""Command of a keeper."""

END_LIMIT_S: Final = 20.0
"""Longest wait for the end of a cancelled job in seconds; its keeper gives it some seconds."""

NOBODY: Final = "nobody"
AT_ONCE: Final = 8
"""Maximum number of simultaneous worker processes of one resource."""

LIMIT_S: Final = 45.0
"""Timeout of a question in seconds; commands of batch systems have timeouts of 10 to 20 s."""

FOLDERS_OF_NOBODY: Final = Path("/var/tmp/ramp-jobs")  # noqa: S108 - made by root, owned by root, checked below
"""Working folder of jobs on simulated machines if their agent is root."""


@dataclass(slots=True)
class JobLauncher:
    """Passes questions of the resource's party to workers on this computer.

    Attributes:
        executor: executor of the jobs, as in `ramp.protocol.resource.jobs.launching.LaunchTerms`.
        acting: means of running commands as other accounts.
        own_folder: folder for jobs of the agent's own account.
        records: folder of the keepers' records.
        variables: with which commands find the batch system.
        deliver: called with each answer.
        watch: called when the launcher starts or stops failing.
    """

    executor: str
    acting: Acting
    own_folder: Path
    records: Path
    variables: Mapping[str, str]
    deliver: Callable[[ev.Answer], None]
    watch: Callable[[Progress], None]
    _last: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _ill: bool = False

    def ask(self, question: fx.AskLauncher, now: Instant) -> None:
        """Put a question, whose answer is delivered later."""
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
                asked = self._kept if self.executor == LOCAL else self._asked
                answer = answer_of(question, await asked(question))
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

    async def _kept(self, question: fx.AskLauncher) -> bytes:
        """Return the answer about a job on this computer, by the record of its keeper."""
        record = self.records / question.job.resource / question.job.job_id
        known = read_record(record)
        if isinstance(question, fx.StageJobInput):
            return await self._asked(question)
        if isinstance(question, fx.ReadJobFile):
            answer = json.loads(await self._asked(question))
            over = known is not None and is_over(known)
            if known is not None and not over and "data" not in answer and question.name in STREAMS:
                answer = {"version": worker.VERSION, "data": "", "size": 0}  # it has not started
            return json.dumps({**answer, "complete": over}).encode()
        is_open = isinstance(question, fx.SubmitJob) if known is None else not is_over(known)
        if is_open:
            if not keeper_of(record):
                await self._keep(question.job, record)
            end = asyncio.get_running_loop().time() + END_LIMIT_S
            while isinstance(question, fx.CancelJob) and asyncio.get_running_loop().time() < end:
                keeper = keeper_of(record)
                if not keeper:
                    break
                with contextlib.suppress(ProcessLookupError):
                    os.kill(keeper, signal.SIGTERM)
                await asyncio.sleep(0.1)
            known = read_record(record)
        return json.dumps({"version": worker.VERSION, "seen": known}).encode()

    async def _keep(self, job: fx.JobToRun, record: Path) -> None:
        """Start the keeper of a job, and wait until it has the job on record."""
        command, root = self._command(job.account)
        task = KeeperTask(
            str(record),
            list(command),
            self._uid(job.account),
            job_plain(job, root),
            job.begin_at / SECOND,
            job.start_by / SECOND,
            job.end_at / SECOND,
        )
        own = {**ENVIRONMENT, "PYTHONPATH": str(Path(worker.__file__).parents[2])}
        await self._output_of(KEEPER, json.dumps(dataclasses.asdict(task)).encode(), own)

    async def _asked(self, question: fx.AskLauncher) -> bytes:
        command, root = self._command(question.job.account)
        text = question_text(question, self.executor, root, self.variables)
        return await self._output_of(command, text, ENVIRONMENT)

    async def _output_of(self, command: Sequence[str], text: bytes, environment: Mapping[str, str]) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env=environment,
            start_new_session=True,
            limit=2 * ANSWER_BYTES_MAX,
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

    def _uid(self, account: str) -> int:
        if account == OWN_ACCOUNT:
            return os.geteuid() or account_of(NOBODY).pw_uid
        return account_of(account).pw_uid

    def _command(self, account: str) -> tuple[tuple[str, ...], str]:
        how = self.acting
        if account != OWN_ACCOUNT:
            return how.command(account)
        inside = worker_inside(how.python)
        if os.geteuid() != 0:
            return inside, str(self.own_folder)
        nobody = account_of(NOBODY)
        return (*becoming(nobody), *inside), str(folder_for(nobody, FOLDERS_OF_NOBODY))
