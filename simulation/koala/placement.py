"""What a placement policy is: it says where the components of a job run (section 4.1 of the paper).

It sees idle processors only, no run times. The user of a job chooses one; the paper's experiments use WF only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulation.koala.jobs import Component
from simulation.koala.policy import Policy


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


Placed = tuple[Assignment, ...] | None
"""An assignment for each component, or None where the job cannot be placed now."""


class PlacementPolicy(Policy, ABC):
    """Says where the components of a job run."""

    @abstractmethod
    def place(self, components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas) -> Placed:
        """Place all components of a job, or none.

        Args:
            components: at least one.
            idle: processors that the job could have in each cluster, in the order of the machine's file.
            replicas: where input files are.

        Returns:
            An assignment a component, in their order (other numbers where the policy splits them); None where the job
            cannot be placed now. Ties should go to the first cluster.
        """


def place_one_by_one(
    components: Sequence[Component], idle: Mapping[str, int], rank: Callable[[Component, str, int], Any]
) -> Placed:
    """Place components in their order, each in the cluster of the lowest rank that has room for it.

    Args:
        components: of the job.
        idle: processors by cluster.
        rank: of a cluster for a component, given the cluster's idle processors; None where it does not suit.
    """
    left = dict(idle)
    placed = []
    for component in components:
        ranks = {name: rank(component, name, free) for name, free in left.items() if free >= component.processors}
        suitable = [name for name, its in ranks.items() if its is not None]
        if not suitable:
            return None
        cluster = min(suitable, key=ranks.__getitem__)
        left[cluster] -= component.processors
        placed.append(Assignment(cluster, component.processors, component.files))
    return tuple(placed)
