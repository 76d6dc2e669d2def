"""KOALA's placement policies (section 4.1 of the paper). They see idle processors only, no run times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from simulation.koala.jobs import Component


@dataclass(frozen=True, slots=True)
class Replicas:
    """Which clusters hold which input files, and how fast they can be brought elsewhere.

    Attributes:
        sites: clusters that hold a file, by its name; a file that is not named is everywhere.
        bytes_of: size of a file.
        bandwidth: bytes a second from one cluster to another.
    """

    sites: Mapping[str, frozenset[str]] = field(default_factory=dict)
    bytes_of: Mapping[str, int] = field(default_factory=dict)
    bandwidth: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def transfer_s(self, files: Sequence[str], cluster: str) -> float | None:
        """Return the seconds to bring files to a cluster one after the other, each from where that is fastest.

        None where one of them cannot be brought; 0 where all are there.
        """
        total = 0.0
        for name in files:
            sites = self.sites.get(name)
            if sites is None or cluster in sites:
                continue
            speeds = [self.bandwidth.get((site, cluster), 0.0) for site in sites]
            best = max(speeds, default=0.0)
            if best <= 0:
                return None
            total += self.bytes_of.get(name, 0) / best
        return total


@dataclass(frozen=True, slots=True)
class Assignment:
    """A component (or, where the policy splits jobs, a part of one) in a cluster.

    Attributes:
        cluster: its name.
        processors: how many.
        files: its input files.
    """

    cluster: str
    processors: int
    files: tuple[str, ...] = ()


PlacementPolicy = Callable[[Sequence[Component], Mapping[str, int], Replicas], tuple[Assignment, ...] | None]
"""Places the components of a job, at least one, given the idle processors by cluster and where input files are.

Ties go to the first cluster. It answers an assignment a component, in their order (other numbers where the policy
splits them), or None where the job cannot be placed now.
"""


def worst_fit(
    components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas
) -> tuple[Assignment, ...] | None:
    """Worst-Fit (WF): each component goes to the cluster with the most idle processors.

    That balances the load. Components are taken in their order.
    """
    left = dict(idle)
    placed = []
    for component in components:
        cluster = max(left, key=lambda name: left[name], default=None)
        if cluster is None or left[cluster] < component.processors:
            return None
        left[cluster] -= component.processors
        placed.append(Assignment(cluster, component.processors, component.files))
    return tuple(placed)


def close_to_files(
    components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas
) -> tuple[Assignment, ...] | None:
    """Close-to-Files (CF): clusters that hold the input files, then those that get them in the least time.

    Source: H. Mohamed and D. Epema, IEEE CLUSTER 2004. Among clusters with the same time the one with the
    most idle processors is taken; the papers do not say which. Components are taken in their order.
    """
    left = dict(idle)
    placed = []
    for component in components:
        candidates = [
            (seconds, -free, cluster)
            for cluster, free in left.items()
            if free >= component.processors and (seconds := replicas.transfer_s(component.files, cluster)) is not None
        ]
        if not candidates:
            return None
        # the order of the clusters, not of their names, decides between equals
        seconds, free, _ = min(candidates, key=lambda each: each[:2])
        cluster = next(name for one, other, name in candidates if (one, other) == (seconds, free))
        left[cluster] -= component.processors
        placed.append(Assignment(cluster, component.processors, component.files))
    return tuple(placed)


def cluster_minimization(
    components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas
) -> tuple[Assignment, ...] | None:
    """Cluster Minimization (CM): the components of a co-allocated job go to as few clusters as they can.

    Source: O. Sonmez, H. Mohamed and D. Epema, e-Science 2006. Few components make the exact search cheap:
    sets of clusters are tried from small to large, among equals those with the most idle processors first.
    """
    ordered = sorted(range(len(components)), key=lambda index: -components[index].processors)
    clusters = sorted(idle, key=lambda name: -idle[name])
    total = sum(component.processors for component in components)
    for count in range(1, min(len(clusters), len(components)) + 1):
        if sum(idle[name] for name in clusters[:count]) < total:
            continue
        for chosen in combinations(clusters, count):
            left = {name: idle[name] for name in chosen}
            where: dict[int, str] = {}
            if _pack(components, ordered, left, where):
                return tuple(
                    Assignment(where[index], component.processors, component.files)
                    for index, component in enumerate(components)
                )
    return None


def _pack(components: Sequence[Component], rest: Sequence[int], left: dict[str, int], where: dict[int, str]) -> bool:
    """Put the components, the largest first, into the rest of some clusters; return whether all found room."""
    if not rest:
        return True
    index = rest[0]
    wanted = components[index].processors
    tried: set[int] = set()
    for cluster, free in list(left.items()):
        if free < wanted or free in tried:
            continue  # another cluster with as many left has been tried already
        tried.add(free)
        left[cluster] -= wanted
        where[index] = cluster
        if _pack(components, rest[1:], left, where):
            return True
        left[cluster] += wanted
    return False


def flexible_cluster_minimization(
    components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas
) -> tuple[Assignment, ...] | None:
    """Flexible Cluster Minimization (FCM): as CM, and the idle processors decide how the job is split.

    Source: O. Sonmez, H. Mohamed and D. Epema, e-Science 2006. A job that may be split needs the fewest
    clusters where it fills those with the most idle processors one after the other. The parts have all files
    of the job.
    """
    wanted = sum(component.processors for component in components)
    files = tuple(dict.fromkeys(name for component in components for name in component.files))
    parts = []
    for cluster in sorted(idle, key=lambda name: -idle[name]):
        part = min(idle[cluster], wanted)
        if part > 0:
            parts.append(Assignment(cluster, part, files))
            wanted -= part
    return tuple(parts) if not wanted else None


PLACEMENT_POLICIES: Final[dict[str, PlacementPolicy]] = {
    "WF": worst_fit,
    "CF": close_to_files,
    "CM": cluster_minimization,
    "FCM": flexible_cluster_minimization,
}
"""The user of a job chooses one; only WF is used in the paper's experiments."""
