"""The first allocator of Angara clusters under an ASSUMED handicap: one routing table for the whole cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar

from simulation.machines.box_policy import Choice, Shape, mean_distance, volume_with_transit


@dataclass(frozen=True, slots=True)
class BaseRing:
    """As `base`, but only shapes that keep to themselves when every route takes the short way round its ring.

    The study says of its first allocator only that a routing table is built for the whole cluster. If that table sends
    packets the short way round each ring, a segment of p nodes on a ring of d keeps its traffic only where p = d or
    2(p - 1) < d. This reading, and at most 4 nodes above the smallest volume, is an assumption: it was chosen because
    it reproduces the gap that the study reports, which the printed algorithm does not show.

    Attributes:
        wrap: boxes may run over the seam of a ring.
        transit_max: nodes above the smallest volume that holds the job; None = any.
    """

    name: ClassVar[str] = "base-ring"
    choice: ClassVar[Choice] = Choice.FIRST
    wrap: bool = True
    transit_max: int | None = 4

    def admits(self, shape: Shape, extents: Shape) -> bool:
        """Full rings, and segments within which the short way never leaves them."""
        return all(p == extent or 2 * (p - 1) < extent for p, extent in zip(shape, extents, strict=True))

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Mean distance without wrap-around, as printed; the smaller volume among equals."""
        return (mean_distance(shape), prod(shape))

    def volume_max(self, size: int, volumes: Sequence[int]) -> int:
        """The smallest volume that holds the job and `transit_max` more."""
        return volume_with_transit(size, volumes, self.transit_max)
