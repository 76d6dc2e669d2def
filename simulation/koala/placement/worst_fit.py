"""Worst-Fit (WF): each component goes to the cluster with the most idle processors, which balances the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulation.koala.jobs import Component
from simulation.koala.placement.interface import Assignment, Replicas


def place(
    components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas
) -> tuple[Assignment, ...] | None:
    """See `PlacementPolicy`; components are taken in their order."""
    left = dict(idle)
    placed = []
    for component in components:
        cluster = max(left, key=lambda name: left[name], default=None)
        if cluster is None or left[cluster] < component.processors:
            return None
        left[cluster] -= component.processors
        placed.append(Assignment(cluster, component.processors, component.files))
    return tuple(placed)
