"""Three-dimensional shapes for jobs of which a log tells only the size.

The rules of Y. Aridor and others, IBM J. Res. & Dev. 49(2/3), 2005, "Simulation environment":

- slim: the first a x b x c equal to the size, found by three nested loops, a and b from 1 to 4 and c, innermost, from 1
  to 8; where none is equal, the first one whose volume is smallest among those above the size. Size 6 gives 1x1x6, 8
  gives 1x1x8, 16 gives 1x2x8, 27 gives 3x3x3.
- fat: the same with at least 2 in each dimension, so no job is below 2x2x2.
- jobs are fattened at random with a probability; each is a torus with probability Pt and a mesh otherwise.

The study's machine is 8x4x4; for other machines the longest extent takes the innermost loop. Extents are given in the
machine's order of dimensions.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from functools import cache
from math import prod

from ramp.errors import WorkloadError

Shape = tuple[int, ...]


@cache
def slim_shape(size: int, extents: tuple[int, ...]) -> Shape | None:
    """Return the slim shape of a size: extents ascending where the machine allows, as the nested loops find it.

    Args:
        size: units, at least 1.
        extents: the machine's, one a dimension.

    Returns:
        Extents with the longest dimension of the machine first, or None where the machine is smaller than the size.
    """
    return _first_match(size, extents, 1)


@cache
def fat_shape(size: int, extents: tuple[int, ...]) -> Shape | None:
    """Return the fat shape of a size: as `slim_shape`, but with at least 2 in each dimension that has 2."""
    return _first_match(size, extents, 2)


def _first_match(size: int, extents: tuple[int, ...], least: int) -> Shape | None:
    """Return the first combination with the smallest volume that holds `size`.

    The loops run over the machine's dimensions in ascending order of their extents, the last one fastest.
    """
    order = sorted(range(len(extents)), key=lambda dimension: (extents[dimension], -dimension))
    combinations = itertools.product(*(range(min(least, extents[d]), extents[d] + 1) for d in order))
    best = min((each for each in combinations if prod(each) >= size), key=prod, default=None)  # the first of equals
    return None if best is None else tuple([best[order.index(dimension)] for dimension in range(len(extents))])


def choose_shapes(
    sizes: Sequence[int], extents: tuple[int, ...], fat_probability: float, rng: random.Random
) -> list[Shape | None]:
    """Return shapes of jobs: each is fattened with a probability, the others are slim.

    Args:
        sizes: units of each job.
        extents: the machine's.
        fat_probability: 0 (all slim) to 1 (all fat).
        rng: drawn from once a job, whatever the probability, so that runs with different probabilities share draws.

    Returns:
        One shape a job; None where the machine is too small.

    Raises:
        WorkloadError: the probability is not one.
    """
    check_probability("fat probability", fat_probability)
    return [fat_shape(size, extents) if rng.random() < fat_probability else slim_shape(size, extents) for size in sizes]


def choose_tori(jobs: int, torus_probability: float, rng: random.Random) -> list[bool]:
    """Return whether each job is a torus (else a mesh).

    Args:
        jobs: how many.
        torus_probability: 0 (all meshes) to 1 (all tori).
        rng: drawn from once a job.

    Raises:
        WorkloadError: the probability is not one.
    """
    check_probability("torus probability", torus_probability)
    return [rng.random() < torus_probability for _ in range(jobs)]


def check_probability(what: str, value: float) -> None:
    """Refuse a value outside 0 to 1.

    Raises:
        WorkloadError: with the name `what` of the value.
    """
    if not 0 <= value <= 1:
        raise WorkloadError(f"{what} must be 0 to 1, got {value}")
