"""What a placement policy is asked, and what it answers. It sees idle processors only, no run times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from simulation.koala.jobs import Component


@dataclass(frozen=True, slots=True)
class Replicas:
    """Which clusters hold which input files, and how fast they can be brought elsewhere.

    Attributes:
        sites: clusters that hold a file, by its name; a file that is not named is everywhere.
        bytes_of: size of a file.
        bandwidth: bytes a second from one cluster to another.
    """

    sites: Mapping[str, frozenset[str]] = field(default_factory=dict)
    bytes_of: Mapping[str, int] = field(default_factory=dict)
    bandwidth: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def transfer_s(self, files: Sequence[str], cluster: str) -> float | None:
        """Seconds to bring files to a cluster one after the other, each from where that is fastest.

        None where one of them cannot be brought; 0 where all are there.
        """
        total = 0.0
        for name in files:
            sites = self.sites.get(name)
            if sites is None or cluster in sites:
                continue
            speeds = [self.bandwidth.get((site, cluster), 0.0) for site in sites]
            best = max(speeds, default=0.0)
            if best <= 0:
                return None
            total += self.bytes_of.get(name, 0) / best
        return total


@dataclass(frozen=True, slots=True)
class Assignment:
    """A component (or, where the policy splits jobs, a part of one) in a cluster.

    Attributes:
        cluster: its name.
        processors: how many.
        files: its input files.
    """

    cluster: str
    processors: int
    files: tuple[str, ...] = ()


class PlacementPolicy(Protocol):
    """Decides where the components of a job would run."""

    def __call__(
        self, components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas
    ) -> tuple[Assignment, ...] | None:
        """Place a job.

        Args:
            components: of the job, at least one.
            idle: processors that may be given out, by cluster; ties go to the first.
            replicas: where input files are.

        Returns:
            An assignment a component, in their order (other numbers where the policy splits them), or None where the
            job cannot be placed now.
        """
        ...
