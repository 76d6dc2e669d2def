"""The clusters, which hold processors."""

from __future__ import annotations

from ramp.errors import MachineError


class Cluster:
    """One cluster's processors.

    Args:
        name: of the cluster.
        processors: how many.
        threshold: processors that managed jobs never have, so that local users find some.
        local: held by local users.

    Attributes:
        held: processors of managed jobs, by number.
        local: processors of local users.
    """

    def __init__(self, name: str, processors: int, *, threshold: int = 0, local: int = 0) -> None:
        self.name = name
        self.processors = processors
        self.threshold = threshold
        self.local = local
        self.held: dict[int, int] = {}
        self._managed = 0

    @property
    def managed(self) -> int:
        """Processors of all managed jobs."""
        return self._managed

    @property
    def idle(self) -> int:
        """Processors that are not held."""
        return self.processors - self.local - self._managed

    @property
    def room(self) -> int:
        """Processors that managed jobs may have beyond those that they have, were all of them idle."""
        return self.processors - self.threshold - self._managed

    @property
    def free(self) -> int:
        """Processors that managed jobs can have now: idle, and not within the threshold."""
        return max(0, min(self.idle, self.room))

    def take(self, job: int, processors: int) -> int:
        """Give a job as many processors as can be had now, within the threshold; how many it got."""
        got = max(0, min(processors, self.free))
        if got:
            self.held[job] = self.held.get(job, 0) + got
            self._managed += got
        return got

    def give_back(self, job: int, processors: int) -> None:
        """Take processors from a job.

        Raises:
            MachineError: it has fewer.
        """
        has = self.held.get(job, 0)
        if not 0 <= processors <= has:
            raise MachineError(f"cluster {self.name}: job {job} gives back {processors} processors of {has}")
        self._managed -= processors
        if has == processors:
            self.held.pop(job, None)
        else:
            self.held[job] = has - processors
