"""Flexible Cluster Minimization (FCM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulation.koala.jobs import Component
from simulation.koala.policy import Assignment, Placed, PlacementPolicy, Replicas


class FlexibleClusterMinimization(PlacementPolicy):
    """Flexible Cluster Minimization: as CM, and the idle processors decide how the job is split.

    Source: O. Sonmez, H. Mohamed and D. Epema, e-Science 2006. A job that may be split needs the fewest clusters where
    it fills those with the most idle processors one after the other. The parts have all files of the job.
    """

    def place(self, components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas) -> Placed:
        wanted = sum(component.processors for component in components)
        files = tuple(dict.fromkeys(name for component in components for name in component.files))
        parts = []
        for cluster in sorted(idle, key=lambda name: -idle[name]):
            part = min(idle[cluster], wanted)
            if part > 0:
                parts.append(Assignment(cluster, part, files))
                wanted -= part
        return tuple(parts) if not wanted else None


POLICY = FlexibleClusterMinimization()
