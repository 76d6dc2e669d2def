"""Close-to-Files (CF)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulation.koala.jobs import Component
from simulation.koala.policy import Placed, PlacementPolicy, Replicas, place_one_by_one


class CloseToFiles(PlacementPolicy):
    """Close-to-Files: clusters that hold the input files, then those that get them in the least time.

    Source: H. Mohamed and D. Epema, IEEE CLUSTER 2004. Among clusters with the same time the one with the most idle
    processors is taken; the papers do not say which.
    """

    def place(self, components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas) -> Placed:
        def rank(component: Component, cluster: str, free: int) -> tuple[float, int] | None:
            seconds = replicas.transfer_s(component.files, cluster)
            return None if seconds is None else (seconds, -free)

        return place_one_by_one(components, idle, rank)


POLICY = CloseToFiles()
