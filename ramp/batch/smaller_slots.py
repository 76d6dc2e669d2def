"""Which cores of a slot stay when it becomes smaller, and which jobs in it must give up nodes for that.

Nodes on which the slot's jobs run stay before others. Where they are more than the smaller slot has, the widest job
gives up its last node, again and again: a batch system lets a job keep the first of its nodes, in their order, and no
others. What a Resource Agent has launched gives up none: it has said how many cores that has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ramp.batch.system import Parts, RunningJob


@dataclass(frozen=True, slots=True)
class SmallerSlot:
    """What becomes of a slot that gives cores up.

    Attributes:
        parts: what it has from now on, in the order of its nodes.
        jobs: jobs that must be narrowed first, with the number of nodes that each keeps.
    """

    parts: Parts
    jobs: tuple[tuple[str, int], ...] = ()


def smaller_slot(
    parts: Parts, cores: int, jobs: Sequence[RunningJob], *, whole: bool, kept: Collection[str] = ()
) -> SmallerSlot | None:
    """What stays of a slot; None where its jobs have more than that, and cannot be narrowed to it.

    Args:
        parts: what it has.
        cores: what it shall have, at least 1 and fewer than it has.
        jobs: that run in it.
        whole: whether nodes are to stay whole, where that can be.
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
    """Cores of each node that must stay for jobs on so many of their nodes."""
    had = dict(parts)
    taken: dict[str, int] = {}
    for job in jobs:
        for name, count in job.parts:
            if name in nodes[job.job_id]:
                taken[name] = had[name] if whole else min(taken.get(name, 0) + count, had[name])
    return taken


def _kept(parts: Parts, cores: int, taken: Mapping[str, int]) -> Parts:
    """So many cores: those that are taken, the rest of their nodes, then as few other nodes as do."""
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
