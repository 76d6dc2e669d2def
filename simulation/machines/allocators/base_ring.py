"""The first allocator of Angara clusters under an ASSUMED handicap: one routing table for the whole cluster."""

from __future__ import annotations

from dataclasses import dataclass

from simulation.machines.allocator_declaration import allocator
from simulation.machines.allocators.base import Base
from simulation.machines.boxes.policy import Shape, TransitMax


@dataclass(frozen=True, slots=True)
class BaseRing(Base):
    """As `base`, but only shapes that keep to themselves when every route takes the short way round its ring.

    The study says of its first allocator only that a routing table is built for the whole cluster. If that table sends
    packets the short way round each ring, a segment of p nodes on a ring of d keeps its traffic only where p = d or
    2(p - 1) < d. This reading, and at most 4 nodes above the smallest volume, is an assumption: it was chosen because
    it reproduces the gap that the study reports, which the printed algorithm does not show.
    """

    transit_max: TransitMax = 4

    def admits(self, shape: Shape, extents: Shape) -> bool:
        """Return full rings, and segments within which the short way never leaves them."""
        return all(p == extent or 2 * (p - 1) < extent for p, extent in zip(shape, extents, strict=True))


ALLOCATOR = allocator(BaseRing, about="As base, under the assumed handicap of one routing table for the whole cluster.")
