"""Worst-Fit (WF)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulation.koala.jobs import Component
from simulation.koala.policy import Placed, PlacementPolicy, Replicas, place_one_by_one


class WorstFit(PlacementPolicy):
    """Worst-Fit: each component goes to the cluster with the most idle processors, which balances the load."""

    def place(self, components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas) -> Placed:
        return place_one_by_one(components, idle, lambda component, cluster, free: -free)


POLICY = WorstFit()
