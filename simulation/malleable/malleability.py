"""What a scheduler and a simulator know of a job that may change its size."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ramp.errors import WorkloadError
from simulation.malleable.sizes import Sizes
from simulation.malleable.speedup import SpeedUpLaw


@dataclass(frozen=True, slots=True)
class Malleability:
    """How a job's size may change, and what that means for its run time.

    Attributes:
        sizes: which ones it may have.
        law: run time over processors; the job's own run time is at the size of its request.
        suspension: for how long it stands still at every change of its size, microseconds.
    """

    sizes: Sizes
    law: SpeedUpLaw
    suspension: int = 0

    def __post_init__(self) -> None:
        if self.suspension < 0:
            raise WorkloadError(f"suspension: got {self.suspension} us, expected at least 0")

    def time_at(self, length: int, before: int, after: int) -> int:
        """Return how long the work of some time at one size takes at another, microseconds, rounded up."""
        if before == after:
            return length
        return math.ceil(length * (self.law.run_time(after) / self.law.run_time(before)))
