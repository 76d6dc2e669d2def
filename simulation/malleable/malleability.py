"""What a scheduler and a simulator know of a job that may change its size: its sizes, and its speed-up law.

Laws give run times in a unit of their own (seconds where they come from measurements); only ratios matter to a job
whose run time is known at one size. With more processors than help, nothing more is gained. The formulas are
`ramp.model.sizes.speed_up`'s, which the market has too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

from ramp.errors import WorkloadError
from ramp.model.sizes.speed_up import AmdahlLaw, DowneyLaw, TableLaw

__all__ = ["GADGET_2", "NAS_FT", "AmdahlLaw", "DowneyLaw", "SpeedUpLaw", "TableLaw", "amdahl_through"]


class SpeedUpLaw(Protocol):
    """The run time of an application over its processors."""

    def run_time(self, processors: int) -> float:
        """Return the run time with a number of processors, at least 1; above 0, in the law's own unit."""
        ...


def amdahl_through(one: tuple[int, float], other: tuple[int, float]) -> AmdahlLaw[float]:
    """Return Amdahl's law through two measurements (processors, run time).

    Raises:
        WorkloadError: they are of the same number of processors, or no such law goes through them.
    """
    (few, long), (many, short) = sorted((one, other))
    if few == many or few < 1:
        raise WorkloadError(f"Amdahl's law: got {one} and {other}, expected two different numbers of processors")
    parallel = (long - short) / (1 / few - 1 / many)
    return AmdahlLaw(short - parallel / many, parallel)


GADGET_2: Final = amdahl_through((2, 600.0), (46, 240.0))
"""The n-body code GADGET-2, seconds: nearly ten minutes on 2 machines, four at best, taken to be at its maximum of 46.

Source: J. Buisson and others, CoreGRID TR-0092, 2007, section 6.1; the curve itself (figure 6) is lost in our copy.
"""
NAS_FT: Final = amdahl_through((2, 120.0), (32, 60.0))
"""The NAS benchmark FT, seconds: almost two minutes on 2 machines, one at best, taken to be at its maximum of 32."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that a job may have, in processors.

    Attributes:
        minimum: smallest size.
        preferred: the size its user would choose for a rigid job.
        maximum: largest useful size.
        powers_of_two: whether only powers of two in between are allowed.
    """

    minimum: int
    preferred: int
    maximum: int
    powers_of_two: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.preferred <= self.maximum:
            raise WorkloadError(
                f"sizes: got {self.minimum}, {self.preferred}, {self.maximum}, expected a minimum of at least 1, "
                "a preferred size and a maximum, ascending"
            )
        if self.most_of(self.maximum) is None:
            raise WorkloadError(f"sizes: no power of two from {self.minimum} to {self.maximum}")

    def __str__(self) -> str:
        words = f"{self.minimum} to {self.maximum}"
        return f"{words}, powers of two" if self.powers_of_two else words

    def __contains__(self, size: int) -> bool:
        return self.most_of(size) == size

    def most_of(self, offered: int) -> int | None:
        """Return the largest allowed size that is not above `offered`, or None where that is below the minimum."""
        size = min(offered, self.maximum)
        if size < self.minimum:
            return None
        if self.powers_of_two:
            size = 1 << (size.bit_length() - 1)
        return size if size >= self.minimum else None

    @property
    def least(self) -> int:
        """The smallest allowed size: the minimum, or the first allowed one above it."""
        if self.powers_of_two:
            return 1 << (self.minimum - 1).bit_length()
        return self.minimum


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
