"""The first allocator of Angara clusters, as printed in the study of 2019."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar

from simulation.machines.box_policy import Choice, Shape, mean_distance, volume_with_transit


@dataclass(frozen=True, slots=True)
class Base:
    """Shapes of the size and up to `transit_max` nodes more, the smallest mean distance first; the first free box wins.

    A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, section 2.3. The number of transit nodes
    and the wrap-around are not printed there; the options say what is assumed.

    Attributes:
        wrap: boxes may run over the seam of a ring.
        transit_max: nodes above the smallest volume that holds the job; None = any.
    """

    name: ClassVar[str] = "base"
    choice: ClassVar[Choice] = Choice.FIRST
    wrap: bool = True
    transit_max: int | None = None

    def admits(self, shape: Shape, extents: Shape) -> bool:
        """Every shape."""
        return True

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Mean distance without wrap-around, as printed, over all volumes; the smaller volume among equals."""
        return (mean_distance(shape), prod(shape))

    def volume_max(self, size: int, volumes: Sequence[int]) -> int:
        """The smallest volume that holds the job and `transit_max` more."""
        return volume_with_transit(size, volumes, self.transit_max)
