"""Choose the cores that a slot keeps when it becomes smaller, and the jobs in it that must give up nodes.

Nodes with jobs of the slot stay before others. If there are too many of them, the widest job gives up its last node,
repeatedly: a batch system lets a job keep only its first nodes, in their order. Jobs that a Resource Agent launched
give up no node, because it has reported their cores.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ramp.batch.system import Parts, RunningJob


@dataclass(frozen=True, slots=True)
class SmallerSlot:
    """The result of making a slot smaller.

    Attributes:
        parts: the remaining cores, in the order of its nodes.
        jobs: jobs that must be narrowed first, with the number of nodes that each keeps.
    """

    parts: Parts
    jobs: tuple[tuple[str, int], ...] = ()


def smaller_slot(
    parts: Parts, cores: int, jobs: Sequence[RunningJob], *, whole: bool, kept: Collection[str] = ()
) -> SmallerSlot | None:
    """Return the rest of a slot; None if its jobs need more and cannot be narrowed.

    Args:
        parts: its present cores.
        cores: its new size, at least 1 and fewer than now.
        jobs: that run in it.
        whole: whether nodes stay whole, if possible.
        kept: ids of jobs that are not narrowed.
    """
    narrowable = [job for job in jobs if job.job_id not in kept]
    order = {name: number for number, (name, _) in enumerate(parts)}
    nodes = {
        job.job_id: sorted((name for name, _ in job.parts if name in order), key=order.__getitem__) for job in jobs
    }
    narrowed: dict[str, int] = {}
    while True:
        taken = _taken(parts, jobs, nodes, whole=whole)
        if sum(taken.values()) <= cores:
            return SmallerSlot(_kept(parts, cores, taken), tuple(narrowed.items()))
        job = max(narrowable, key=lambda each: len(nodes[each.job_id]), default=None)
        if job is None or len(nodes[job.job_id]) < 2:
            return None
        nodes[job.job_id].pop()
        narrowed[job.job_id] = len(nodes[job.job_id])


def _taken(
    parts: Parts, jobs: Sequence[RunningJob], nodes: Mapping[str, Sequence[str]], *, whole: bool
) -> dict[str, int]:
    """Return the cores of each node that must stay for jobs narrowed to the given numbers of nodes."""
    had = dict(parts)
    taken: dict[str, int] = {}
    for job in jobs:
        for name, count in job.parts:
            if name in nodes[job.job_id]:
                taken[name] = had[name] if whole else min(taken.get(name, 0) + count, had[name])
    return taken


def _kept(parts: Parts, cores: int, taken: Mapping[str, int]) -> Parts:
    """Choose cores: those in use, the rest of their nodes, then as few other nodes as possible."""
    kept = dict(taken)
    left = cores - sum(taken.values())
    for name, count in parts:
        if name in kept:
            more = min(count - kept[name], left)
            kept[name] += more
            left -= more
    others = [part for part in parts if part[0] not in kept]
    while left:  # the smallest node that has all that is left, else the largest
        enough = [part for part in others if part[1] >= left]
        chosen = min(enough, key=_count) if enough else max(others, key=_count)
        name, count = chosen
        others.remove(chosen)
        kept[name] = min(count, left)
        left -= kept[name]
    return tuple((name, kept[name]) for name, _ in parts if name in kept)


def _count(part: tuple[str, int]) -> int:
    return part[1]
