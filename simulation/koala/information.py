"""The information service (KIS): what the scheduler knows of the clusters.

What managed jobs hold it knows at once, for the runners say so. What local users hold it knows from the last poll.
"""

from __future__ import annotations

from collections.abc import Mapping

from simulation.koala.clusters import Cluster


class InformationService:
    """Idle processors as the scheduler sees them.

    Args:
        clusters: by name, in the order of the file.
    """

    def __init__(self, clusters: Mapping[str, Cluster]) -> None:
        self._clusters = clusters
        self._local: dict[str, int] = {name: cluster.local for name, cluster in clusters.items()}

    def poll(self) -> bool:
        """Ask the providers again; whether anything is different from what was known."""
        now = {name: cluster.local for name, cluster in self._clusters.items()}
        changed = now != self._local
        self._local = now
        return changed

    def correct(self, name: str) -> None:
        """A claim has failed: so much is known now of that cluster."""
        self._local[name] = self._clusters[name].local

    def available(self, name: str) -> int:
        """Processors of a cluster that managed jobs may be given, as far as is known."""
        cluster = self._clusters[name]
        return max(0, min(cluster.processors - self._local[name] - cluster.managed, cluster.room))
