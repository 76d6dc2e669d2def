"""Multiclusters: several clusters, each with a batch system of its own.

A scheduler of one machine sees the nodes of all clusters as one pool. `simulation.koala` takes the clusters apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ramp.errors import ConfigurationError
from ramp.options import Bounds
from simulation.machines.description import BuildOptions, machine_kind
from simulation.machines.flat import FlatMachine


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """One cluster.

    Attributes:
        name: of the cluster.
        nodes: how many, given to jobs as wholes.
        threshold: nodes that are kept for its own users: jobs from outside never have more than the others.
        local_share: share of its nodes that its own users hold all the time.
        local_log: name or path of a workload log that its own users' jobs come from; empty = none.
        reserves: its batch system can set nodes aside for a time to come.
    """

    name: str
    nodes: Annotated[int, Bounds(1)]
    threshold: Annotated[int, Bounds(0)] = 0
    local_share: Annotated[float, Bounds(0, 1)] = 0.0
    local_log: str = ""
    reserves: bool = False


@dataclass(frozen=True, slots=True)
class MulticlusterDescription:
    """The file of a multicluster.

    Attributes:
        name: of all of it.
        cluster: the clusters.
    """

    name: str
    cluster: tuple[ClusterDescription, ...]

    @property
    def nodes(self) -> int:
        """Of all clusters."""
        return sum(cluster.nodes for cluster in self.cluster)


def check(description: MulticlusterDescription) -> None:
    """Refuse invalid clusters.

    Raises:
        ConfigurationError: there is no cluster, two have one name, or a threshold is above the nodes.
    """
    if not description.cluster:
        raise ConfigurationError("no cluster; give at least one", key="cluster")
    seen: set[str] = set()
    for index, cluster in enumerate(description.cluster):
        if cluster.name in seen:
            raise ConfigurationError(f"two clusters have the name {cluster.name!r}", key=f"cluster.{index}.name")
        seen.add(cluster.name)
        if cluster.threshold > cluster.nodes:
            raise ConfigurationError(
                f"must be at most the cluster's {cluster.nodes} nodes, got {cluster.threshold}",
                key=f"cluster.{index}.threshold",
            )


def build(description: MulticlusterDescription, options: BuildOptions) -> FlatMachine:
    """Make one pool of all nodes.

    Raises:
        ConfigurationError: an allocator is given, or the clusters are invalid.
    """
    if options.allocator is not None or options.allocator_options:
        raise ConfigurationError("a multicluster has no allocator; remove this option", key="allocator")
    check(description)
    return FlatMachine(description.nodes, description.name)


KIND = machine_kind(
    MulticlusterDescription, build, about="Several clusters; one pool of nodes, or cluster by cluster under KOALA."
)
