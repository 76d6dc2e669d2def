"""Find_Systems of the study of 2019: the first of all variants in rank order."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from simulation.machines.allocator_declaration import allocator
from simulation.machines.boxes.policy import BoxPolicy, Shape, mean_distance


@dataclass(frozen=True, slots=True)
class FindSystems(BoxPolicy):
    """Smallest volume first, then the smallest mean distance; the first free box wins.

    A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, section 1. The search returns all variants;
    their order is not printed, so this one is an assumption.

    Attributes:
        by_distance: order shapes of equal volume by their mean distance; without, by their extents alone.
    """

    by_distance: bool = True

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Return the volume, then mean distance without wrap-around."""
        return (prod(shape), mean_distance(shape)) if self.by_distance else (prod(shape),)


ALLOCATOR = allocator(FindSystems, about="Smallest volume, then smallest mean distance; the first free box.")
