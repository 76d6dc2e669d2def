"""Cluster Minimization (CM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from simulation.koala.jobs import Component
from simulation.koala.policy import Assignment, Placed, PlacementPolicy, Replicas


class ClusterMinimization(PlacementPolicy):
    """Cluster Minimization: the components of a co-allocated job go to as few clusters as they can.

    Source: O. Sonmez, H. Mohamed and D. Epema, e-Science 2006. Few components make the exact search cheap: sets of
    clusters are tried from small to large, among equals those with the most idle processors first.
    """

    def place(self, components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas) -> Placed:
        ordered = sorted(range(len(components)), key=lambda index: -components[index].processors)
        clusters = sorted(idle, key=lambda name: -idle[name])
        total = sum(component.processors for component in components)
        for count in range(1, min(len(clusters), len(components)) + 1):
            if sum(idle[name] for name in clusters[:count]) < total:
                continue
            for chosen in combinations(clusters, count):
                left = {name: idle[name] for name in chosen}
                where: dict[int, str] = {}
                if _pack(components, ordered, left, where, set()):
                    return tuple(
                        Assignment(where[index], component.processors, component.files)
                        for index, component in enumerate(components)
                    )
        return None


def _pack(
    components: Sequence[Component],
    rest: Sequence[int],
    left: dict[str, int],
    where: dict[int, str],
    failed: set[tuple[int, ...]],
) -> bool:
    """Put the components, the largest first, into the rest of some clusters; return whether all found room.

    Args:
        components: of the job.
        rest: places of those that have no cluster yet.
        left: processors by cluster.
        where: clusters by place, filled in.
        failed: what was left, sorted, in tries that failed: clusters with as many left are alike.
    """
    if not rest:
        return True
    state = (len(rest), *sorted(left.values()))
    if state in failed:
        return False
    index = rest[0]
    wanted = components[index].processors
    for cluster, free in list(left.items()):
        if free >= wanted:
            left[cluster] -= wanted
            where[index] = cluster
            if _pack(components, rest[1:], left, where, failed):
                return True
            left[cluster] += wanted
    failed.add(state)
    return False


POLICY = ClusterMinimization()
