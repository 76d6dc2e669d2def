"""Slurm's running and waiting jobs: `squeue` as text if that says enough, else as JSON.

The text comes first, because with a thousand waiting jobs it costs a tenth of the JSON. It has only fields that no user
can write into (no names of jobs, no paths). The reason, which may contain spaces and commas, comes last. The total of
CPUs gives the cores of each node for jobs on one node or on whole nodes. For other jobs, versions with JSON name the
cores; without JSON a job counts with as much of each node as it may have. Where Slurm allots memory, a second question
asks for that of each running job. squeue(1), scontrol(1); JSON of 22.05 (data
parser v0.0.38) and of 23.11 and later, where numbers are tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Any, Final

from ramp.batch.commands import Question
from ramp.batch.node_lists import expand
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


def queue_question() -> Question[tuple[QueuedJob, ...]]:
    """Ask for all jobs that run or wait, with elements of arrays listed singly."""
    return Question(("squeue", "-a", "-r", "-h", "-t", _STATES, "-o", _FIELDS), parse_queue)


def parse_queue(text: str) -> tuple[QueuedJob, ...]:
    """Read the lines of `queue_question`; `ValueError` at an invalid line."""
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


def memory_question() -> Question[dict[str, int]]:
    """Ask for the memory of all jobs that have cores, in MB by job."""
    fields = "JobArrayID:64,tres-alloc:256"
    return Question(("squeue", "-a", "-r", "-h", "-t", _HAVING, "-O", fields), parse_memories)


def parse_memories(text: str) -> dict[str, int]:
    """Read the lines of `memory_question`; `ValueError` at an invalid line."""
    found = {}
    for line in text.splitlines():
        job_id, allotted = line.split()
        match = _MEMORY.search(allotted)
        if match is not None:
            found[job_id] = ceil(Decimal(match[1]) * _MEGABYTES[match[2]])
    return found


def allocation_question(threads: int) -> Question[dict[str, Parts]]:
    """Ask for the cores of each node of running jobs, from versions with JSON; a core has `threads` CPUs."""
    return Question(("squeue", "-a", "--json"), lambda text: parse_allocations(text, threads))


def parse_allocations(text: str, threads: int = 1) -> dict[str, Parts]:
    """Return the cores of each node by job id, for the jobs whose cores the JSON names.

    Raises:
        ValueError: if it is invalid JSON, or Slurm reports errors in it (with exit code 0).
    """
    read = json.loads(text)
    jobs = read["jobs"]
    if read.get("errors"):
        raise ValueError(f"errors: {json.dumps(read['errors'])[:200]}")
    found: dict[str, Parts] = {}
    for job in jobs:
        resources = job.get("job_resources")
        if not isinstance(resources, dict) or not resources:
            continue
        parts = _allocated(resources, threads)
        if parts and all(count for _, count in parts):
            found[_job_id(job)] = parts
    return found


def _job_id(job: Mapping[str, Any]) -> str:
    """Write an id as squeue does: `12`, or `10_3` for an element of an array."""
    array, task = _number(job.get("array_job_id")), _number(job.get("array_task_id"))
    return f"{array}_{task}" if array and task is not None else str(int(job["job_id"]))


def _number(value: Any) -> int | None:
    """Read a number as since 23.02 (`{"set": true, "infinite": false, "number": 3}`) or before (`3`, `null`)."""
    if isinstance(value, dict):
        return int(value["number"]) if value.get("set") and not value.get("infinite") else None
    return None if value is None else int(value)


def _allocated(resources: Mapping[str, Any], threads: int) -> Parts:
    nodes = resources.get("nodes")
    if isinstance(nodes, dict):  # 24.05 and later: a list of nodes with CPUs
        each_node = [
            (each["name"], None, each.get("cpus", {}).get("count", 0)) for each in nodes.get("allocation") or ()
        ]
    else:  # 22.05 names cores and says 0 CPUs; 23.11 counts CPUs and may name no cores
        found = resources.get("allocated_nodes") or ()
        each_node = [(each["nodename"], each.get("sockets"), each.get("cpus_used", 0)) for each in found]
    return tuple(
        (str(name), _cores_of(sockets) if sockets else -(-int(cpus) // threads)) for name, sockets, cpus in each_node
    )


def _cores_of(sockets: Mapping[str, Any]) -> int:
    """Count cores in tables of sockets and cores; the value of a job's core begins with `allocated`."""
    return sum(str(state).startswith("allocated") for socket in sockets.values() for state in socket["cores"].values())


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


def running_jobs(
    jobs: Sequence[QueuedJob],
    nodes: Sequence[Node],
    allocations: Mapping[str, Parts],
    threads: int,
    memories: Mapping[str, int],
) -> tuple[RunningJob, ...]:
    """Return the jobs that use cores of our nodes.

    Args:
        jobs: the queue.
        nodes: our nodes.
        allocations: cores by job, if they were asked for.
        threads: hardware threads, which Slurm calls CPUs, of a core.
        memories: MB by job; empty where Slurm does not allot memory.
    """
    cores = {node.name: node.cores for node in nodes}
    sizes = {node.name: node.memory_mb for node in nodes}
    found = []
    for job in jobs:
        if not any(name in cores for name in job.node_names):
            continue
        parts = allocations.get(job.job_id) or _told_by_text(job, cores, threads)
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
