"""Compact boxes by the distances that packets really travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar

from simulation.machines.box_policy import Choice, Shape, mean_torus_distance, volume_with_transit


@dataclass(frozen=True, slots=True)
class TorusDistance:
    """As `base`, but an extent that fills its ring counts as a ring: such boxes leave fewer odd corners behind.

    Attributes:
        wrap: boxes may run over the seam of a ring.
        transit_max: nodes above the smallest volume that holds the job; None = any.
    """

    name: ClassVar[str] = "torus-distance"
    choice: ClassVar[Choice] = Choice.FIRST
    wrap: bool = True
    transit_max: int | None = None

    def admits(self, shape: Shape, extents: Shape) -> bool:
        """Every shape."""
        return True

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Mean distance on the torus, over all volumes; the smaller volume among equals."""
        return (mean_torus_distance(shape, extents), prod(shape))

    def volume_max(self, size: int, volumes: Sequence[int]) -> int:
        """The smallest volume that holds the job and `transit_max` more."""
        return volume_with_transit(size, volumes, self.transit_max)
