"""Which jobs of a log are malleable, and with which sizes and speed-ups: no log says it, so it is assigned and stated.

A log states one size a job. It is taken as the size that the user prefers; the smallest and the largest size are
fixed fractions and multiples of it, and the speed-up is drawn from Downey's model (A. B. Downey, "A model for speedup
of parallel programs", 1997). One job takes the same number of draws whatever the share is, so jobs that are malleable
at a share are so, with the same law, at every larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.errors import WorkloadError
from simulation.malleable.malleability import DowneyLaw, Malleability, Sizes

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
