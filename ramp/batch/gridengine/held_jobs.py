"""Held jobs of Grid Engine: `qsub -h`, `qrls`, `qdel`, and `qstat` by name; qsub(1), qrls(1), qstat(1).

`qstat` does not list ended jobs, so a start is seen only while its job runs. Sold jobs keep their cores for the time
bought and are looked up four times a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ramp.batch.commands import CommandRunner, ask, own_account
from ramp.batch.gridengine import questions
from ramp.batch.gridengine.plugin import CellOptions, environment_of
from ramp.batch.gridengine.questions import QUEUES, moment
from ramp.batch.gridengine.records import BatchJob
from ramp.batch.gridengine.system import GridEngine
from ramp.batch.waiting.job_queue import CommandQueue, OwnJob, Standing, WantedJob, runner_of
from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND
from ramp.options import Bounds, read_options, takes
from ramp.plugins.interface import PluginSettings


@dataclass(frozen=True, slots=True)
class GridEngineQueueOptions(CellOptions):
    """Configuration of a cluster queue whose starts are sold.

    Attributes:
        command_limit_s: seconds that one command may take.
    """

    command_limit_s: Annotated[int, Bounds(1, 25)] = 15


class GridEngineQueue(CommandQueue):
    """A cluster queue as a `ramp.batch.waiting.job_queue.JobQueue`."""

    name = "gridengine"

    RELEASE = ("qrls", "-h", "u")
    DELETE = ("qdel",)
    NEVER = ("no suitable queues", "denied", "does not exist", "unknown parallel environment", "Unknown option")
    GONE = ("does not exist", "already in deletion", "is already in")
    ORDER_S = questions.ORDER_S

    _system: GridEngine

    def find(self, name: str, account: str = "", job_id: str = "") -> tuple[OwnJob, ...]:
        report = ask(QUEUES, self._system.run)
        mine = [job for job in report.jobs if job.owner == (account or own_account())]
        found = [job for job in mine if job.name == name or str(job.number) == job_id]
        return tuple(_told(job) for job in sorted(found, key=lambda job: job.number))

    def own(self, prefix: str) -> tuple[tuple[str, OwnJob], ...]:
        report = ask(QUEUES, self._system.run)
        return tuple((job.name, _told(job)) for job in report.jobs if job.name.startswith(prefix))

    def _submission(self, wanted: WantedJob) -> tuple[str, ...]:
        begin = () if wanted.not_before is None else ("-a", moment(wanted.not_before))
        return (
            *("qsub", "-h", "-terse", "-N", wanted.name, "-q", self._system.queue, "-S", "/bin/sh"),
            *("-pe", self._system.environment, str(wanted.cores.total)),
            *("-l", f"h_rt={-(-wanted.length // SECOND)}", *begin, "-r", "n", "-wd", "/", "-j", "y", "-o", "/dev/null"),
        )


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
    variables = environment_of(options, settings.resource)
    run = CommandRunner(variables, options.command_limit_s)
    system = GridEngine(run, options.queue, options.parallel_environment, "")
    if not any(each.queue == options.queue for each in ask(QUEUES, run).instances):
        raise ConfigurationError(f"Grid Engine has no queue {options.queue!r}", key=f"{settings.resource}.queue")
    return GridEngineQueue(system, runner_of(run, settings.acting, variables, options.command_limit_s))
