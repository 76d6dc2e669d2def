"""Held jobs of Grid Engine: `qsub -h`, `qrls`, `qdel`, and `qstat` by name; qsub(1), qrls(1), qstat(1).

`qstat` does not list ended jobs, so a start is seen only while its job runs. Sold jobs keep their cores for the time
bought and are looked up four times a minute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from ramp.batch.commands import CommandRunner, Question, Runner, ask
from ramp.batch.gridengine import questions
from ramp.batch.gridengine.plugin import GridEngineOptions, environment_of
from ramp.batch.gridengine.questions import ORDER_S, programs_in
from ramp.batch.gridengine.records import BatchJob
from ramp.batch.gridengine.system import GridEngine
from ramp.batch.system import SystemSnapshot
from ramp.batch.waiting.as_account import RunnerOf, own_account, runner_of
from ramp.batch.waiting.job_queue import OwnJob, Standing, WantedJob
from ramp.errors import CommandFailed, ConfigurationError, SystemRefused
from ramp.model.instant import SECOND, Instant, to_datetime
from ramp.options import Bounds, Wanted, read_options, takes
from ramp.plugins.interface import PluginSettings

_NAME: Final = Wanted("a name", lambda text: re.fullmatch(r"[\w.-]+", text) is not None)
_NEVER: Final = ("no suitable queues", "denied", "does not exist", "unknown parallel environment", "Unknown option")
_GONE: Final = ("does not exist", "already in deletion", "is already in")


@dataclass(frozen=True, slots=True)
class GridEngineQueueOptions:
    """Configuration of a cluster queue whose starts are sold.

    Attributes:
        queue: the cluster queue.
        parallel_environment: in which jobs get their slots.
        commands: folder of Grid Engine's commands; empty for those on the path.
        root: SGE_ROOT; empty for the agent's own.
        cell: SGE_CELL.
        environment: further variables of the commands, such as SGE_QMASTER_PORT.
        command_limit_s: seconds that one command may take.
    """

    queue: Annotated[str, _NAME]
    parallel_environment: Annotated[str, _NAME]
    commands: str = ""
    root: str = ""
    cell: str = "default"
    environment: Mapping[str, str] = field(default_factory=dict)
    command_limit_s: Annotated[int, Bounds(1, 25)] = 15


class GridEngineQueue:
    """A cluster queue as a `ramp.batch.waiting.job_queue.JobQueue`.

    Args:
        system: the cell; questions are asked as the agent's own account.
        as_account: runs commands as the account that owns the jobs.
        folder: of the commands; empty for those on the path.
    """

    name = "gridengine"
    source = "live"

    def __init__(self, system: GridEngine, as_account: RunnerOf, folder: str = "") -> None:
        self._system = system
        self._as_account = as_account
        self._folder = folder

    def look(self, now: Instant) -> SystemSnapshot:
        return self._system.snapshot(now)

    def find(self, name: str, account: str = "", job_id: str = "") -> tuple[OwnJob, ...]:
        report = ask(questions.queues(self._system.programs), self._system.run)
        mine = [job for job in report.jobs if job.owner == (account or own_account())]
        found = [job for job in mine if job.name == name or str(job.number) == job_id]
        return tuple(_told(job) for job in sorted(found, key=lambda job: job.number))

    def own(self, prefix: str) -> tuple[tuple[str, OwnJob], ...]:
        report = ask(questions.queues(self._system.programs), self._system.run)
        return tuple((job.name, _told(job)) for job in report.jobs if job.name.startswith(prefix))

    def submit(self, wanted: WantedJob) -> None:
        begin = () if wanted.not_before is None else ("-a", f"{to_datetime(wanted.not_before):%Y%m%d%H%M.%S}")
        argv = (
            *self._command("qsub", "-h", "-terse", "-N", wanted.name, "-q", self._system.queue, "-S", "/bin/sh"),
            *("-pe", self._system.environment, str(wanted.cores.total)),
            *("-l", f"h_rt={-(-wanted.length // SECOND)}", *begin, "-r", "n", "-wd", "/", "-j", "y", "-o", "/dev/null"),
        )
        self._done(argv, wanted.account, wanted.script)

    def let_go(self, job_id: str, account: str = "") -> None:
        self._done(self._command("qrls", "-h", "u", job_id), account)

    def delete(self, job_id: str, account: str = "") -> None:
        try:
            self._done(self._command("qdel", job_id), account)
        except (CommandFailed, SystemRefused) as failed:
            if not any(words in failed.reason for words in _GONE):
                raise

    def _command(self, name: str, *words: str) -> tuple[str, ...]:
        return (str(Path(self._folder) / name) if self._folder else name, *words)

    def _done(self, argv: tuple[str, ...], account: str, stdin: str = "") -> None:
        try:
            ask(Question(argv, str, stdin=stdin, time_limit_s=ORDER_S), self._as_account(account))
        except CommandFailed as failed:
            if any(words in failed.said for words in _NEVER):
                raise SystemRefused(failed.reason) from failed
            raise


def _told(job: BatchJob) -> OwnJob:
    if job.started is not None and "t" not in job.state:  # one that is on its way to its host may come back in error
        return OwnJob(str(job.number), Standing.STARTED, job.started)
    return OwnJob(str(job.number), Standing.HELD if "h" in job.state else Standing.WAITING)


@takes(GridEngineQueueOptions)
def open_queue(settings: PluginSettings) -> GridEngineQueue:
    """Open the queue that the options name (entry point `gridengine` of the group `ramp.job_queues`).

    Raises:
        ConfigurationError: an option is wrong, or there is no such queue.
        BatchSystemError: the cell cannot be asked now.
    """
    options = read_options(settings.options, GridEngineQueueOptions, within=settings.resource)
    folder = options.commands
    own = variables_of(options, settings.resource)
    run: Runner = CommandRunner(own, options.command_limit_s)
    programs = programs_in(folder)
    system = GridEngine(run, options.queue, options.parallel_environment, "", programs=programs)
    if not any(each.queue == options.queue for each in ask(questions.queues(programs), run).instances):
        raise ConfigurationError(f"Grid Engine has no queue {options.queue!r}", key=f"{settings.resource}.queue")
    as_account = runner_of(run, settings.acting, own, options.command_limit_s)
    return GridEngineQueue(system, as_account, folder)


def variables_of(options: GridEngineQueueOptions, resource: str) -> dict[str, str]:
    """Return the variables by which the commands find the cell; see `environment_of`."""
    cell = GridEngineOptions(root=options.root, cell=options.cell, environment=options.environment)
    return dict(environment_of(cell, resource))
