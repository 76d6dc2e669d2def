"""What an approach is: it says when running jobs change their sizes, and when waiting ones are placed (section 5.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Protocol

from simulation.koala.clusters import Cluster
from simulation.koala.jobs import Record
from simulation.koala.policy import Policy


class JobManagement(Protocol):
    """What an approach can do: the scheduler's side of it."""

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """The clusters by name."""
        ...

    def grow(self) -> None:
        """Offer idle processors to running malleable jobs, cluster by cluster, as the size policy says."""
        ...

    def can_still_grow(self, cluster: str) -> bool:
        """Return whether a running malleable job would accept something if the size policy were asked again."""
        ...

    def scan(self) -> Record | None:
        """Place waiting jobs, from the head of the queue to its tail; return the first that remains, if any."""
        ...

    def shrink_for(self, waiting: Record) -> bool:
        """Let running jobs shrink so that a waiting one can be placed; return whether it can be, then or already."""
        ...


class Approach(Policy, ABC):
    """Says who has precedence when processors become available."""

    @abstractmethod
    def manage(self, management: JobManagement) -> None:
        """Act at a poll after which something is different from what was known."""

    def closed(self, management: JobManagement) -> Iterable[str]:
        """Return the clusters where no waiting job is placed now; none by default."""
        return ()
