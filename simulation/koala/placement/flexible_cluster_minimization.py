"""Flexible Cluster Minimization (FCM): as CM, and the job is split into components by the idle processors.

Source: O. Sonmez, H. Mohamed and D. Epema, e-Science 2006. A job that may be split needs the fewest clusters where it
fills those with the most idle processors one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulation.koala.jobs import Component
from simulation.koala.placement.interface import Assignment, Replicas


def place(
    components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas
) -> tuple[Assignment, ...] | None:
    """See `PlacementPolicy`; the parts have all files of the job."""
    wanted = sum(component.processors for component in components)
    files = tuple(dict.fromkeys(name for component in components for name in component.files))
    parts = []
    for cluster in sorted(idle, key=lambda name: -idle[name]):
        part = min(idle[cluster], wanted)
        if part > 0:
            parts.append(Assignment(cluster, part, files))
            wanted -= part
    return tuple(parts) if not wanted else None
