"""What an allocator of boxes is: which shapes it takes, in which order, and how it chooses among the free boxes.

The allocators themselves are one a file in `simulation.machines.allocators`; the measures they rank shapes by are here.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Annotated

from ramp.options import Bounds

Shape = tuple[int, ...]


class Choice(enum.IntEnum):
    """How one of the free boxes that would serve a job is chosen; the numbers are those of the compiled search."""

    FIRST = 0
    """The first in rank order."""
    PHI_GREEDY = 1
    """The one after which phi is largest, over the maximal boxes that the published greedy search finds."""
    PHI_EXACT = 2
    """The same over all maximal boxes."""
    OWN = 3
    """The one that the allocator's own method `choose` says."""


TransitMax = Annotated[int, Bounds(0)] | None
"""Nodes above the smallest volume that holds a job; None = any."""


@dataclass(frozen=True, slots=True)
class FreeBox:
    """A box that would serve a job.

    Attributes:
        shape: its extents.
        origin: lowest coordinate in each dimension.
        nodes: bit set, bit i = node i.
    """

    shape: Shape
    origin: Shape
    nodes: int


@dataclass(frozen=True, slots=True)
class BoxPolicy:
    """How a torus of boxes chooses among places; base of its allocators. Fields are options.

    Attributes:
        wrap: boxes may run over the seam of a ring.
        transit_max: nodes above the smallest volume that holds the job; any by default.
    """

    wrap: bool = True
    transit_max: TransitMax = None

    @property
    def choice(self) -> Choice:
        """How one of the free boxes is chosen; phi wants a rank that begins with the volume.

        By its own method `choose` where a policy has one, else the first.
        """
        return Choice.FIRST if type(self).choose is BoxPolicy.choose else Choice.OWN

    def admits(self, shape: Shape, extents: Shape) -> bool:
        """Return whether boxes of that shape are given out at all; every shape by default."""
        return True

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Return the rank of a shape, lowest first; ties go to lower extents, then lower origins.

        By default the smaller volume, then the smaller mean distance without wrap-around.
        """
        return (prod(shape), mean_distance(shape))

    def choose(self, boxes: Sequence[FreeBox], busy: int) -> int:
        """Index of the box to take, for policies with a choice of their own.

        Args:
            boxes: those that are free and would serve the job, in rank order; at least one.
            busy: bit set of the nodes that are taken or out of service.
        """
        return 0

    def volume_max(self, size: int, volumes: Sequence[int]) -> int:
        """Return the most nodes that a job of `size` may be given.

        Counted from the smallest volume instead of the size, so that sizes without a box of their own can run: the
        study prints no limit, and 32 nodes on 4x3x3 need 36.

        Args:
            size: of the job.
            volumes: those of the admitted shapes, ascending.
        """
        if self.transit_max is None or not volumes:
            return volumes[-1] if volumes else 0
        index = bisect_left(volumes, size)
        return volumes[index] + self.transit_max if index < len(volumes) else 0


def mean_distance(shape: Shape) -> Fraction:
    """Return the mean over pairs of different nodes of a box of the study's distance, without wrap-around.

    The sum over an extent p of |a - b| over ordered pairs is p (p^2 - 1) / 3, so the mean over all dimensions is
    sum (p^2 - 1) / (3 p) times V / (V - 1). 0 for a single node.
    """
    volume = prod(shape)
    if volume == 1:
        return Fraction(0)
    return sum((Fraction(p * p - 1, 3 * p) for p in shape), Fraction(0)) * volume / (volume - 1)


def mean_torus_distance(shape: Shape, extents: Shape) -> Fraction:
    """Return the same mean with distances as packets travel: an extent that fills its ring is a ring, else a line."""
    volume = prod(shape)
    if volume == 1:
        return Fraction(0)
    total = Fraction(0)
    for p, extent in zip(shape, extents, strict=True):
        # over ordered pairs a ring of p has p * floor(p^2 / 4)
        total += Fraction(p * (p * p // 4), p * p) if p == extent else Fraction(p * p - 1, 3 * p)
    return total * volume / (volume - 1)
