"""The first allocator of Angara clusters, as printed in the study of 2019."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from simulation.machines.allocator_declaration import allocator
from simulation.machines.boxes.policy import BoxPolicy, Shape, mean_distance


@dataclass(frozen=True, slots=True)
class Base(BoxPolicy):
    """Shapes of the size and up to `transit_max` nodes more, the smallest mean distance first; the first free box wins.

    A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, section 2.3. The number of transit nodes
    and the wrap-around are not printed there; the options say what is assumed.
    """

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Return the printed mean distance, without wrap-around, over all volumes; the smaller volume among equals."""
        return (mean_distance(shape), prod(shape))


ALLOCATOR = allocator(Base, about="The study's first allocator as printed: smallest mean distance over all volumes.")
