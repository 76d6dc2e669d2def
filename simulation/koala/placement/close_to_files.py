"""Close-to-Files (CF): clusters that hold the input files, then those to which they are brought in the least time.

Source: H. Mohamed and D. Epema, IEEE CLUSTER 2004. Among clusters with the same time the one with the most idle
processors is taken; the papers do not say which.
"""

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
