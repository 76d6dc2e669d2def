"""What a scheduler and a simulator know of a job that may change its size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ramp.errors import WorkloadError
from simulation.malleable.sizes import JobClass, Sizes
from simulation.malleable.speedup import SpeedUpLaw


@dataclass(frozen=True, slots=True)
class ResizeCost:
    """For how long a job stands still when its size changes. Everything is 0 unless it is stated.

    Attributes:
        suspension: of every change, microseconds.
        redistribution: for each processor of the larger of the two sizes, microseconds.
    """

    suspension: int = 0
    redistribution: int = 0

    def __post_init__(self) -> None:
        if self.suspension < 0 or self.redistribution < 0:
            raise WorkloadError(f"cost: got {self.suspension} and {self.redistribution} us, expected at least 0")

    def pause(self, before: int, after: int) -> int:
        """Return microseconds for which the job stands still; none where the size stays."""
        return self.suspension + self.redistribution * max(before, after) if before != after else 0


FREE: Final = ResizeCost()
"""A change of size that costs nothing."""


@dataclass(frozen=True, slots=True)
class Malleability:
    """How a job's size may change, and what that means for its run time.

    Attributes:
        job_class: who chooses the size.
        sizes: which ones it may have.
        law: run time over processors; the job's own run time is at the size of its request.
        cost: of a change.
    """

    job_class: JobClass
    sizes: Sizes
    law: SpeedUpLaw
    cost: ResizeCost = FREE

    def may_become(self, size: int) -> bool:
        """Return whether the job may get that size while it runs."""
        return self.job_class.changes_while_running and size in self.sizes

    def time_at(self, length: int, before: int, after: int) -> int:
        """Return how long the work of some time at one size takes at another, microseconds, rounded up."""
        if before == after:
            return length
        return math.ceil(length * (self.law.run_time(after) / self.law.run_time(before)))
