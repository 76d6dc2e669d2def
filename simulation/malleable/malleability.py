"""What a scheduler and a simulator know of a job that may change its size: its sizes, and its speed-up law.

Laws give run times in a unit of their own (seconds where they come from measurements); only ratios matter to a job
whose run time is known at one size. With more processors than help, nothing more is gained. The formulas are
`ramp.model.sizes.speed_up`'s, which the market has too.

No log says which of its jobs are malleable, so it is assigned and stated. The size of the log is taken as the one that
the user prefers; the smallest and the largest size are fixed fractions and multiples of it, and the speed-up is drawn
from Downey's model (A. B. Downey, "A model for speedup of parallel programs", 1997). One job takes the same number of
draws whatever the share is, so jobs that are malleable at a share are so, with the same law, at every larger one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

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


SMALLER: Final = 4
"""A malleable job's minimum is its size in the log, which it prefers, over this, rounded up."""
LARGER: Final = 4
"""Factor from that size to the maximum, which is not above the machine."""
PARALLELISM_BITS: Final = 2.0
"""Its average parallelism is its size times 2^x, x uniform from 0 to this."""
VARIANCE_MAX: Final = 2.0
"""Its variance of parallelism (Downey's sigma) is uniform from 0 to this."""

MALLEABLE_STREAM: Final = 18
"""Of a seed: another one than that of synthetic workloads, so that speed-ups do not follow sizes."""

ASSIGNED_SIZES: Final = (
    f"preferred: the log's; minimum: a {SMALLER}th of it, rounded up; maximum: {LARGER} times it, within "
    "the machine; any size in between"
)
"""How sizes are assigned, in words."""
ASSIGNED_SPEED_UP: Final = (
    f"Downey's model: average parallelism size x 2^U(0, {PARALLELISM_BITS:g}), variance U(0, {VARIANCE_MAX:g}); run "
    "and requested times of the log are at its size, and both change with the size"
)
"""How speed-ups are, in words."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawnLaws:
    """What is drawn for the jobs of a log.

    Attributes:
        malleable: whether a job is malleable, shape (jobs,).
        parallelism: average parallelism over the job's size, at least 1, shape (jobs,).
        variance: of the parallelism, shape (jobs,).
    """

    malleable: NDArray[np.bool_]
    parallelism: NDArray[np.float64]
    variance: NDArray[np.float64]


def draw_laws(draw: np.random.Generator, jobs: int, share: float) -> DrawnLaws:
    """Draw who is malleable and how it speeds up.

    Args:
        draw: the stream; three numbers a job are taken from it.
        jobs: how many.
        share: probability that a job is malleable, from 0 to 1.

    Raises:
        WorkloadError: the share is no probability.
    """
    if not 0 <= share <= 1:
        raise WorkloadError(f"share of malleable jobs: got {share}, expected 0 to 1")
    malleable = draw.random(jobs) < share
    return DrawnLaws(malleable, 2 ** draw.uniform(0, PARALLELISM_BITS, jobs), draw.uniform(0, VARIANCE_MAX, jobs))


def assigned_malleability(
    sizes: Sequence[int], capacity: int, share: float, draw: np.random.Generator, suspension: int = 0
) -> list[Malleability | None]:
    """Make a share of a log's jobs malleable.

    Args:
        sizes: units that each job asks for.
        capacity: units of the machine.
        share: probability that a job is malleable, from 0 to 1.
        draw: the stream of the draws.
        suspension: for how long a malleable job stands still at every change of its size, microseconds.

    Returns:
        For each job how it may change, or None where it is rigid.

    Raises:
        WorkloadError: the share is no probability.
    """
    laws = draw_laws(draw, len(sizes), share)
    return [
        Malleability(
            Sizes(-(-size // SMALLER), size, max(size, min(LARGER * size, capacity))),
            DowneyLaw(max(1.0, size * float(more)), float(spread)),
            suspension,
        )
        if changes
        else None
        for size, changes, more, spread in zip(sizes, laws.malleable, laws.parallelism, laws.variance, strict=True)
    ]
