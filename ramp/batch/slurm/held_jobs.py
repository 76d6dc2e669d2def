"""Held jobs of Slurm: `sbatch --hold`, `scontrol release`, `scancel`, and `squeue` by name.

sbatch(1), squeue(1) ("JOB STATE CODES"), scontrol(1). For a waiting job `squeue` shows the planned start, and for one
cancelled while it waited the cancellation; so only starts of jobs that have run are used.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from ramp.batch.commands import CommandRunner, Question, ask
from ramp.batch.slurm.finding import CONF_VARIABLE
from ramp.batch.slurm.system import SlurmSystem, node_shortage
from ramp.batch.slurm.times import instant_of
from ramp.batch.system import SystemSnapshot
from ramp.batch.waiting.as_account import RunnerOf, own_account, runner_of
from ramp.batch.waiting.job_queue import OwnJob, Standing, WantedJob
from ramp.errors import CommandFailed, ConfigurationError, SystemRefused
from ramp.model.instant import SECOND, Instant, to_datetime
from ramp.model.request import Nodes
from ramp.options import Bounds, Wanted, read_options, takes
from ramp.plugins.interface import PluginSettings

_PARTITION: Final = Wanted("a partition's name", lambda text: re.fullmatch(r"[\w.-]+", text) is not None)

_RAN: Final = frozenset(
    {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "COMPLETED", "TIMEOUT", "FAILED", "NODE_FAIL", "PREEMPTED"}
)
_RUNS: Final = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"})
_WAITS: Final = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"})
_JOB: Final = "%i|%T|%S|%M|%r"
"""Id, state, start, time that it ran, reason; the last may contain any character."""
_HELD: Final = ("JobHeldUser", "JobHeldAdmin")
_NUMBER: Final = re.compile(r"(\d+)(;[\w.-]+)?")
_NEVER: Final = ("Invalid partition", "Invalid account", "configuration is not available", "more processors", "limit")
_GONE: Final = ("Invalid job id", "already completed", "Job is no longer pending")


class SlurmQueue:
    """A partition as a `ramp.batch.waiting.job_queue.JobQueue`.

    Args:
        system: the partition's cluster; questions are asked as the agent's own account.
        as_account: runs commands as the account that owns the jobs.
    """

    name = "slurm"
    source = "live"

    def __init__(self, system: SlurmSystem, as_account: RunnerOf) -> None:
        self._system = system
        self._run = system.run
        self._as_account = as_account

    def look(self, now: Instant) -> SystemSnapshot:
        return self._system.snapshot(now)

    def find(self, name: str, account: str = "", job_id: str = "") -> tuple[OwnJob, ...]:
        """See `JobQueue.find`; Slurm forgets jobs some minutes after their end."""
        owner = account or own_account()
        found = ask(_jobs_with("-n", name, owner), self._run)
        if job_id and all(job.job_id != job_id for job in found):
            try:
                found += ask(_jobs_with("-j", job_id, owner), self._run)
            except CommandFailed as failed:
                if not any(words in failed.said for words in _GONE):
                    raise
        return found

    def own(self, prefix: str) -> tuple[tuple[str, OwnJob], ...]:
        return ask(_jobs_of(prefix), self._run)

    def submit(self, wanted: WantedJob) -> None:
        seconds = -(-wanted.length // SECOND)
        size: tuple[str, ...] = ("-n", str(wanted.cores.total))
        if isinstance(wanted.cores, Nodes):
            size = ("-N", f"{wanted.cores.count}", *size, "--ntasks-per-node", f"{wanted.cores.cores_per_node}")
        begin = () if wanted.not_before is None else ("-b", f"{to_datetime(wanted.not_before):%Y-%m-%dT%H:%M:%S}")
        argv = (
            *("sbatch", "--hold", "--parsable", "--no-requeue", "-J", wanted.name, "-p", self._system.partition),
            *(*size, "-t", f"{seconds // 60}:{seconds % 60:02}", *begin, "-D", "/", "-o", "/dev/null"),
        )
        try:
            ask(Question(argv, _number, stdin=wanted.script), self._as_account(wanted.account))
        except CommandFailed as failed:
            if any(words in failed.said for words in _NEVER):
                raise SystemRefused(failed.reason) from failed
            raise

    def let_go(self, job_id: str, account: str = "") -> None:
        self._done(("scontrol", "release", job_id), account)

    def delete(self, job_id: str, account: str = "") -> None:
        self._done(("scancel", "--quiet", job_id), account)

    def _done(self, argv: tuple[str, ...], account: str) -> None:
        try:
            ask(Question(argv, str), self._as_account(account))
        except CommandFailed as failed:
            if not any(words in failed.said for words in _GONE):
                raise


def _jobs_with(option: str, value: str, account: str) -> Question[tuple[OwnJob, ...]]:
    return Question(("squeue", "-a", "-h", "-t", "all", "-u", account, option, value, "-o", _JOB), parse_jobs)


def _jobs_of(prefix: str) -> Question[tuple[tuple[str, OwnJob], ...]]:
    def parse(text: str) -> tuple[tuple[str, OwnJob], ...]:
        # a stranger's job may have any name; only lines that begin as ours do are read
        ours = (line.partition("|") for line in text.splitlines() if line.startswith(prefix))
        return tuple((name, job) for name, _, rest in ours for job in parse_jobs(rest))

    return Question(("squeue", "-a", "-h", "-t", "all", "-o", f"%j|{_JOB}"), parse)


def parse_jobs(text: str) -> tuple[OwnJob, ...]:
    """Read `squeue -o "%i|%T|%S|%M|%r"`: id, state, start, time that it ran, reason.

    Raises:
        ValueError: at an invalid line.
    """
    found = []
    for line in text.splitlines():
        if not line.strip():
            continue
        words = line.strip().split("|", 4)
        if len(words) != 5 or not words[0].isdecimal():
            raise ValueError(f"invalid job line: {line[:120]!r}")
        job_id, state, start, ran, reason = words
        if state in _RAN or (state == "CANCELLED" and ran.strip(":0") != ""):
            began = instant_of(start)
            if began is None:
                raise ValueError(f"job {job_id} is {state} and has no start")
            found.append(OwnJob(job_id, Standing.STARTED, began, ended=state not in _RUNS))
        elif state in _WAITS:
            held = reason in _HELD
            found.append(OwnJob(job_id, Standing.HELD if held else Standing.WAITING))
        else:
            found.append(OwnJob(job_id, Standing.GONE))
    return tuple(sorted(found, key=lambda job: int(job.job_id)))


def _number(text: str) -> str:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"invalid job number: {text[:120]!r}")
    return found[1]


@dataclass(frozen=True, slots=True)
class SlurmQueueOptions:
    """Configuration of a partition whose starts are sold.

    Attributes:
        partition: its name.
        conf: path of the cluster's `slurm.conf`; empty for the one that Slurm's commands find by themselves.
        command_limit_s: seconds that one command may take.
    """

    partition: Annotated[str, _PARTITION]
    conf: str = ""
    command_limit_s: Annotated[int, Bounds(1, 25)] = 15


@takes(SlurmQueueOptions)
def open_queue(settings: PluginSettings) -> SlurmQueue:
    """Open the partition that the options name (entry point `slurm` of the group `ramp.job_queues`).

    Raises:
        ConfigurationError: an option is wrong, or Slurm's commands are missing.
        BatchSystemError: the cluster cannot be asked now.
    """
    options = read_options(settings.options, SlurmQueueOptions, within=settings.resource)
    if options.conf and not Path(options.conf).is_file():
        raise ConfigurationError(f"{options.conf} is not a file", key=f"{settings.resource}.conf")
    if shutil.which("sbatch") is None:
        raise ConfigurationError("command sbatch not found; install Slurm's commands on this computer")
    run = CommandRunner({CONF_VARIABLE: options.conf} if options.conf else {}, options.command_limit_s)
    system = SlurmSystem(run, options.partition, "")
    wrong = node_shortage(system.nodes(), settings.cores, settings.cores_per_node, options.partition)
    if wrong:
        raise ConfigurationError(wrong, key=settings.resource)
    conf = options.conf or os.environ.get(CONF_VARIABLE, "")
    variables = {CONF_VARIABLE: conf} if conf else {}
    return SlurmQueue(system, runner_of(run, settings.acting, variables, options.command_limit_s))
