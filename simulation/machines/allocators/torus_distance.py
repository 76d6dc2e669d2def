"""Compact boxes by the distances that packets really travel."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from simulation.machines.allocator_declaration import allocator
from simulation.machines.boxes.policy import BoxPolicy, Shape, mean_torus_distance


@dataclass(frozen=True, slots=True)
class TorusDistance(BoxPolicy):
    """As `base`, but an extent that fills its ring counts as a ring: such boxes leave fewer odd corners behind."""

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Return the mean distance on the torus, over all volumes; the smaller volume among equals."""
        return (mean_torus_distance(shape, extents), prod(shape))


ALLOCATOR = allocator(TorusDistance, about="Compact boxes by the distances that packets really travel.")
