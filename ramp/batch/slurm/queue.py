"""Slurm's running and waiting jobs: `squeue`, and `scontrol show job` if that does not say enough.

`squeue` is asked only for fields that no user can write into (no names of jobs, no paths). The reason, which may
contain spaces and commas, comes last. The total of CPUs gives the cores of each node for jobs on one node or on whole
nodes. For other jobs `scontrol` lists the CPUs of each node; without a list a job counts with as much of each node as
it may have. Where Slurm allots memory, a further question asks for that of each running job. squeue(1), scontrol(1).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Final

from ramp.batch.commands import Question
from ramp.batch.node_lists import count_of, expand
from ramp.batch.slurm.times import duration_of, instant_of
from ramp.batch.system import Node, Parts, RunningJob, WaitingJob
from ramp.model.instant import Duration, Instant

_FIELDS: Final = "%i|%T|%u|%P|%l|%S|%e|%V|%C|%D|%N|%v|%Q|%Y|%r"
_HAVING: Final = "R,S,CG,CF,SO,RS"
"""States of jobs that have cores."""

_STATES: Final = f"PD,{_HAVING}"
_MEMORY: Final = re.compile(r"(?:^|,)mem=([\d.]+)([KMGTP]?)(?:,|$)")
_MEGABYTES: Final = {"K": Decimal(1) / 1024, "": Decimal(1), "M": Decimal(1), "G": Decimal(2**10), "T": Decimal(2**20)}
_MEGABYTES["P"] = Decimal(2**30)
_DETAILED: Final = re.compile(r"JobId=(\d+) (?:ArrayJobId=(\d+) ArrayTaskId=(\d+) )?")
_CPUS: Final = re.compile(r" Nodes=(\S+) CPU_IDs=([\d,-]+) ")
_WAITING: Final = "PENDING"
_ABSENT: Final = frozenset({"", "(null)", "N/A", "None"})
_NOT_FOR_CORES: Final = re.compile(
    r"Job(?:Held|Array)|Dependency|BeginTime|Licenses|Association|QOS|Assoc|InvalidAccount"
)
"""Reasons (squeue(1), "Job reason codes") of jobs that do not wait for cores."""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One line of the queue.

    Attributes:
        job_id: with the index of an array's element.
        state: Slurm's word.
        user: its owner.
        partitions: where it may run or runs.
        start: its start, or the planned one.
        cpus: CPUs in all.
        node_names: where it runs.
        held: see `WaitingJob`, as of the other fields.
    """

    job_id: str
    state: str
    user: str
    partitions: tuple[str, ...]
    time_limit: Duration | None
    start: Instant | None
    end: Instant | None
    submitted: Instant | None
    cpus: int
    node_names: tuple[str, ...]
    reservation: str
    planned_nodes: tuple[str, ...]
    held: bool


def parse_queue(text: str) -> tuple[QueuedJob, ...]:
    """Read the lines of `QUEUE`; `ValueError` at an invalid line."""
    return tuple(_queued(line) for line in text.splitlines() if line.strip())


def _queued(line: str) -> QueuedJob:
    words = line.split("|", 14)
    if len(words) != 15:
        raise ValueError(f"{line[:120]!r} has {len(words)} of 15 fields")
    job_id, state, user, partitions, limit, *times, cpus, _, names, reservation, priority, plan, why = words
    start, end, submitted = map(instant_of, times)
    return QueuedJob(
        job_id,
        state,
        user,
        tuple(partitions.split(",")),
        duration_of(limit),
        start,
        end,
        submitted,
        _count(cpus),
        () if state == _WAITING else expand(names),
        "" if reservation in _ABSENT else reservation,
        () if plan in _ABSENT else expand(plan),
        int(priority) == 0 or _NOT_FOR_CORES.match(why) is not None,
    )


def _count(text: str) -> int:
    """Read a number of squeue, which shortens some (`4K`)."""
    return int(text[:-1]) * 1024 if text.endswith("K") else int(text)


def parse_memories(text: str) -> dict[str, int]:
    """Read the lines of `MEMORY`; `ValueError` at an invalid line."""
    found = {}
    for line in text.splitlines():
        job_id, allotted = line.split()
        match = _MEMORY.search(allotted)
        if match is not None:
            found[job_id] = ceil(Decimal(match[1]) * _MEGABYTES[match[2]])
    return found


def parse_details(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return lists of nodes and of their CPUs, as Slurm writes them, by job id.

    Names and paths of users are in these lines too. So a job that is there twice has no list, and `running_jobs` takes
    only lists of the nodes that a job has.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for line in text.splitlines():
        job = _DETAILED.match(line)
        if job is not None:
            job_id = f"{job[2]}_{job[3]}" if job[2] else job[1]
            found[job_id] = [] if job_id in found else _CPUS.findall(line)
    return found


QUEUE: Final = Question(("squeue", "-a", "-r", "-h", "-t", _STATES, "-o", _FIELDS), parse_queue)
"""All jobs that run or wait, with elements of arrays listed singly."""

DETAILS: Final = Question(("scontrol", "-o", "-d", "show", "job"), parse_details)
"""Which CPUs of which nodes each job has."""

MEMORY: Final = Question(
    ("squeue", "-a", "-r", "-h", "-t", _HAVING, "-O", "JobArrayID:64,tres-alloc:256"), parse_memories
)
"""The memory of all jobs that have cores, in MB by job."""


def cores_unclear(jobs: Sequence[QueuedJob], cores: Mapping[str, int], threads: int) -> bool:
    """Whether the text leaves open which cores of our nodes some job uses."""
    return any(
        job.node_names and _told_by_text(job, cores, threads) is None
        for job in jobs
        if any(name in cores for name in job.node_names)
    )


def _told_by_text(job: QueuedJob, cores: Mapping[str, int], threads: int) -> Parts | None:
    wanted = -(-job.cpus // threads)
    if len(job.node_names) == 1:
        return ((job.node_names[0], wanted),)
    whole = tuple((name, cores.get(name, 0)) for name in job.node_names)
    return whole if sum(count for _, count in whole) == wanted else None


def _told_by_details(job: QueuedJob, details: Sequence[tuple[str, str]], threads: int) -> Parts | None:
    cpus: dict[str, int] = {}
    with contextlib.suppress(ValueError):
        for names, numbers in details:
            cpus |= dict.fromkeys(expand(names, most=len(job.node_names)), count_of(numbers))
    parts = tuple((name, cpus.get(name, 0) // threads) for name in job.node_names)
    counts = [count for _, count in parts]
    return parts if min(counts) > 0 and sum(counts) >= -(-job.cpus // threads) else None


def running_jobs(
    jobs: Sequence[QueuedJob],
    nodes: Sequence[Node],
    details: Mapping[str, Sequence[tuple[str, str]]],
    threads: int,
    memories: Mapping[str, int],
) -> tuple[RunningJob, ...]:
    """Return the jobs that use cores of our nodes.

    Args:
        jobs: the queue.
        nodes: our nodes.
        details: of jobs, by `parse_details`, if they were asked for.
        threads: hardware threads, which Slurm calls CPUs, of a core.
        memories: MB by job; empty where Slurm does not allot memory.
    """
    cores = {node.name: node.cores for node in nodes}
    sizes = {node.name: node.memory_mb for node in nodes}
    found = []
    for job in jobs:
        if not any(name in cores for name in job.node_names):
            continue
        parts = _told_by_text(job, cores, threads) or _told_by_details(job, details.get(job.job_id, ()), threads)
        if parts is None:  # as much of each node as it may have
            most = -(-job.cpus // threads) - (len(job.node_names) - 1)
            parts = tuple((name, min(most, cores.get(name, 0))) for name in job.node_names)
        ours = tuple((name, min(count, cores[name])) for name, count in parts if name in cores)
        if job.start is None:
            raise ValueError(f"job {job.job_id} runs and has no start")
        memory = memories.get(job.job_id, 0)
        takes = tuple(
            (name, max(count, min(_cores_with(_memory_on(memory, name, parts), cores[name], sizes[name]), cores[name])))
            for name, count in ours
        )
        more = takes if takes != ours else ()
        found.append(
            RunningJob(job.job_id, job.user, job.start, job.end, ours, job.reservation, job.submitted, takes=more)
        )
    return tuple(found)


def _memory_on(memory: int, node: str, parts: Parts) -> int:
    """Return the most memory that a job may have on one of its nodes: Slurm allots it by nodes or by CPUs."""
    by_cores = -(-memory * dict(parts)[node] // max(sum(count for _, count in parts), 1))
    return max(-(-memory // len(parts)), by_cores)


def _cores_with(memory: int, cores: int, size: int | None) -> int:
    """Return how many of a node's cores have a share of an amount of its memory."""
    return -(-memory * cores // size) if size else 0


def waiting_jobs(jobs: Sequence[QueuedJob], partition: str, threads: int) -> tuple[WaitingJob, ...]:
    """Return the jobs that wait for a partition, in Slurm's order."""
    return tuple(
        WaitingJob(
            job.job_id,
            job.user,
            job.submitted,
            -(-job.cpus // threads),
            job.time_limit,
            planned_start=job.start,
            planned_nodes=job.planned_nodes,
            held=job.held,
            reservation=job.reservation,
        )
        for job in jobs
        if job.state == _WAITING and partition in job.partitions
    )
