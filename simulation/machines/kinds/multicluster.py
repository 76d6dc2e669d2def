"""Multiclusters: several clusters, each with a batch system of its own.

A scheduler of one machine sees the nodes of all clusters as one pool. `simulation.koala` takes the clusters apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from ramp.errors import ConfigurationError
from ramp.options import Bounds
from simulation.machines.description import BuildOptions, machine_kind
from simulation.machines.flat import FlatMachine
from simulation.machines.hostlist import compress
from simulation.machines.interface import Placement
from simulation.machines.node_machine import NodeMachine


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


class Clusters(NodeMachine):
    """The nodes of several clusters, numbered from the first cluster on.

    Args:
        name: of all of it.
        nodes: of each cluster, by its name.

    Attributes:
        of: the bit set of each cluster's nodes.
    """

    def __init__(self, name: str, nodes: Mapping[str, int]) -> None:
        super().__init__(name, sum(nodes.values()))
        self.of: dict[str, int] = {}
        first = 0
        for cluster, count in nodes.items():
            self.of[cluster] = ((1 << count) - 1) << first
            first += count

    def choose(self, size: int, free: int) -> int:
        return lowest(size, free)

    def unit_name(self, unit: int) -> str:
        """Return the name of a node: its cluster, and its number there from 0 on."""
        cluster, nodes = next((name, nodes) for name, nodes in self.of.items() if nodes >> unit & 1)
        return f"{cluster}-{unit + 1 - (nodes & -nodes).bit_length()}"

    def describe(self, placement: Placement) -> dict[str, Any]:
        """Return the trace fields: the names of the nodes as a host list, and how many are in each cluster."""
        units = [unit for unit in range(self._all.bit_length()) if placement.nodes >> unit & 1]
        held = {name: (placement.nodes & nodes).bit_count() for name, nodes in self.of.items()}
        return {
            **super().describe(placement),
            "nodes": compress(map(self.unit_name, units), dimensions=1),
            "clusters": {name: count for name, count in held.items() if count},
        }


def lowest(size: int, nodes: int) -> int:
    """Return the `size` lowest nodes of a bit set."""
    taken = 0
    for _ in range(size):
        taken |= nodes & -nodes
        nodes &= nodes - 1
    return taken


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
