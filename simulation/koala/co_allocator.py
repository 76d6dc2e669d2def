"""The co-allocator decides where jobs run, the queue keeps the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from simulation.koala.clusters import Cluster
from simulation.koala.jobs import KoalaJob, Record
from simulation.koala.placement import Assignment, PlacementPolicy
from simulation.malleable.sizes import JobClass


@dataclass(slots=True)
class CoAllocator:
    """Decides where a job would run.

    Attributes:
        clusters: by name, in the order of the file.
        policy: of placement.
        fills: jobs that may choose begin with all that their cluster has for them, not with their smallest size.
    """

    clusters: Mapping[str, Cluster]
    policy: PlacementPolicy
    fills: bool = False

    def place(self, job: KoalaJob, closed: Collection[str] = ()) -> tuple[Assignment, ...] | None:
        """Return where the job would run now, or None; nothing is placed in `closed` clusters."""
        idle = {name: cluster.free for name, cluster in self.clusters.items() if name not in closed}
        placed = self.policy(job.components, idle)
        if placed is None or len(placed) != 1 or not self.chooses(job):
            return placed
        (only,) = placed
        size = job.malleability.sizes.most_of(idle[only.cluster])
        return (Assignment(only.cluster, max(size or 0, only.processors)),)

    def chooses(self, job: KoalaJob) -> bool:
        """Return whether the job begins with more than its smallest size where there is more."""
        if job.malleability.job_class is JobClass.MOLDABLE:
            return True
        return self.fills and job.malleable


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
