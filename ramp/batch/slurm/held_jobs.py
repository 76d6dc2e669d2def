"""Held jobs of Slurm: `sbatch --hold`, `scontrol release`, `scancel`, and `squeue` by name.

sbatch(1), squeue(1) ("JOB STATE CODES"), scontrol(1). For a waiting job `squeue` shows the planned start, and for one
cancelled while it waited the cancellation; so only starts of jobs that have run are used.
"""

from __future__ import annotations

from typing import Final

from ramp.batch.commands import Question, ask, own_account
from ramp.batch.slurm.partition import cluster_variables
from ramp.batch.slurm.plugin import ClusterOptions, open_partition
from ramp.batch.slurm.system import SlurmSystem
from ramp.batch.slurm.times import instant_of
from ramp.batch.waiting.job_queue import CommandQueue, OwnJob, Standing, WantedJob, runner_of
from ramp.errors import CommandFailed
from ramp.model.instant import SECOND, to_datetime
from ramp.model.request import Nodes
from ramp.options import read_options, takes
from ramp.plugins.interface import PluginSettings

_RAN: Final = frozenset(
    {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "COMPLETED", "TIMEOUT", "FAILED", "NODE_FAIL", "PREEMPTED"}
)
_RUNS: Final = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"})
_WAITS: Final = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"})
_JOB: Final = "%i|%T|%S|%M|%r"
"""Id, state, start, time that it ran, reason; the last may contain any character."""
_HELD: Final = ("JobHeldUser", "JobHeldAdmin")


class SlurmQueue(CommandQueue):
    """A partition as a `ramp.batch.waiting.job_queue.JobQueue`."""

    name = "slurm"

    RELEASE = ("scontrol", "release")
    DELETE = ("scancel", "--quiet")
    NEVER = ("Invalid partition", "Invalid account", "configuration is not available", "more processors", "limit")
    GONE = ("Invalid job id", "already completed", "Job is no longer pending")

    _system: SlurmSystem

    def find(self, name: str, account: str = "", job_id: str = "") -> tuple[OwnJob, ...]:
        """See `JobQueue.find`; Slurm forgets jobs some minutes after their end."""
        owner = account or own_account()
        found = ask(_jobs_with("-n", name, owner), self._system.run)
        if job_id and all(job.job_id != job_id for job in found):
            try:
                found += ask(_jobs_with("-j", job_id, owner), self._system.run)
            except CommandFailed as failed:
                if not any(words in failed.said for words in self.GONE):
                    raise
        return found

    def own(self, prefix: str) -> tuple[tuple[str, OwnJob], ...]:
        return ask(_jobs_of(prefix), self._system.run)

    def _submission(self, wanted: WantedJob) -> tuple[str, ...]:
        seconds = -(-wanted.length // SECOND)
        size: tuple[str, ...] = ("-n", str(wanted.cores.total))
        if isinstance(wanted.cores, Nodes):
            size = ("-N", f"{wanted.cores.count}", *size, "--ntasks-per-node", f"{wanted.cores.cores_per_node}")
        begin = () if wanted.not_before is None else ("-b", f"{to_datetime(wanted.not_before):%Y-%m-%dT%H:%M:%S}")
        return (
            *("sbatch", "--hold", "--parsable", "--no-requeue", "-J", wanted.name, "-p", self._system.partition),
            *(*size, "-t", f"{seconds // 60}:{seconds % 60:02}", *begin, "-D", "/", "-o", "/dev/null"),
            f"--gres={wanted.gres}",
        )


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
        if len(words) != 5:
            raise ValueError(f"invalid job line: {line[:120]!r}")
        if not words[0].isdecimal():
            continue  # a buyer's own job array or heterogeneous job, which has the name of ours
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


@takes(ClusterOptions)
def open_queue(settings: PluginSettings) -> SlurmQueue:
    """Open the partition that the options name (entry point `slurm` of the group `ramp.job_queues`).

    Raises:
        ConfigurationError: an option is wrong, or Slurm's commands are missing.
        BatchSystemError: the cluster cannot be asked now.
    """
    options = read_options(settings.options, ClusterOptions, within=settings.resource)
    system = open_partition(settings, options)
    variables = cluster_variables(options.conf)
    return SlurmQueue(system, runner_of(system.run, settings.acting, variables, options.command_limit_s))
