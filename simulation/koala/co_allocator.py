"""The co-allocator decides where jobs run, the processor claimer gets their processors, the queue keeps the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from ramp.model.instant import SECOND
from simulation.koala.clusters import Cluster, InformationService
from simulation.koala.jobs import KoalaJob, Record
from simulation.koala.policy import Assignment, PlacementPolicy, Replicas

CLAIM_MARGIN: Final = 10 * SECOND
"""How long before a job's files are there its processors are claimed, where they cannot be reserved."""


@dataclass(slots=True)
class CoAllocator:
    """Decides where a job would run.

    Attributes:
        information: what is known of the clusters.
        clusters: their names, in the order of the file.
        policy: of placement.
        replicas: where input files are.
        fills: malleable jobs begin with all that their cluster has for them, not with their smallest size.
    """

    information: InformationService
    clusters: tuple[str, ...]
    policy: PlacementPolicy
    replicas: Replicas = field(default_factory=Replicas)
    fills: bool = False

    def place(self, job: KoalaJob, closed: Collection[str] = ()) -> tuple[Assignment, ...] | None:
        """Return where the job would run now, or None; nothing is placed in `closed` clusters."""
        idle = {name: self.information.available(name) for name in self.clusters if name not in closed}
        placed = self.policy.place(job.components, idle, self.replicas)
        if placed is None or len(placed) != 1 or not (self.fills and job.malleable):
            return placed
        (only,) = placed
        size = job.malleability.sizes.most_of(idle[only.cluster])
        return (Assignment(only.cluster, max(size or 0, only.processors), only.files),)

    def transfer_time(self, placed: tuple[Assignment, ...]) -> int:
        """Return how long the input files of a placed job take, all components at once; microseconds."""
        longest = max((self.replicas.transfer_s(one.files, one.cluster) or 0.0) for one in placed)
        return round(longest * SECOND)


class ProcessorClaimer:
    """Gets the processors of placed jobs: all of them or none.

    Args:
        clusters: by name.
        information: receives claims that failed.
    """

    def __init__(self, clusters: Mapping[str, Cluster], information: InformationService) -> None:
        self._clusters = clusters
        self._information = information

    def claim_time(self, placed: tuple[Assignment, ...], now: int, transfer: int) -> int:
        """Return when to claim: at once where all local managers reserve, else close to the estimated start."""
        if all(self._clusters[one.cluster].reserves for one in placed):
            return now
        return max(now, now + transfer - CLAIM_MARGIN)

    def claim(self, job: int, placed: tuple[Assignment, ...]) -> bool:
        """Take the processors; where one cluster has too few, nothing is taken."""
        got: list[Assignment] = []
        for one in placed:
            taken = self._clusters[one.cluster].take(job, one.processors)
            if taken < one.processors:
                self._information.correct(one.cluster)
                self._clusters[one.cluster].give_back(job, taken)
                for earlier in got:
                    self._clusters[earlier.cluster].give_back(job, earlier.processors)
                return False
            got.append(one)
        return True


class PlacementQueue:
    """Jobs that could not be placed: they join at the tail, and the queue is scanned from head to tail.

    Args:
        tries_max: failed tries after which a submission fails; None = never.
    """

    def __init__(self, tries_max: int | None = None) -> None:
        self._tries_max = tries_max
        self.jobs: list[Record] = []

    def failed(self, record: Record) -> bool:
        """Note a failed try: the job joins the tail unless it waits already; False where its submission fails."""
        record.tries += 1
        if self._tries_max is not None and record.tries > self._tries_max:
            if record in self.jobs:
                self.jobs.remove(record)
            return False
        if record not in self.jobs:
            self.jobs.append(record)
        return True

    def placed(self, record: Record) -> None:
        """Remove a placed job from the queue."""
        self.jobs.remove(record)
