"""Find_Systems of the study of 2019: the first of all variants in rank order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar

from simulation.machines.box_policy import Choice, Shape, mean_distance, volume_with_transit


@dataclass(frozen=True, slots=True)
class FindSystems:
    """Smallest volume first, then the smallest mean distance; the first free box wins.

    A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, section 1. The search returns all variants;
    their order is not printed, so this one is an assumption.

    Attributes:
        wrap: boxes may run over the seam of a ring.
        transit_max: nodes above the smallest volume that holds the job; None = any.
        by_distance: order shapes of equal volume by their mean distance; without, by their extents alone.
    """

    name: ClassVar[str] = "find-systems"
    choice: ClassVar[Choice] = Choice.FIRST
    wrap: bool = True
    transit_max: int | None = None
    by_distance: bool = True

    def admits(self, shape: Shape, extents: Shape) -> bool:
        """Every shape."""
        return True

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Volume, then mean distance without wrap-around."""
        return (prod(shape), mean_distance(shape)) if self.by_distance else (prod(shape),)

    def volume_max(self, size: int, volumes: Sequence[int]) -> int:
        """The smallest volume that holds the job and `transit_max` more."""
        return volume_with_transit(size, volumes, self.transit_max)
