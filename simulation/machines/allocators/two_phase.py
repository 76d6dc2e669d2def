"""The two-phase allocation of Aridor et al. 2005: contiguous boxes, fewest cables (default of cabled-torus)."""

from __future__ import annotations

from collections.abc import Iterable

from simulation.machines.allocator_declaration import allocator
from simulation.machines.bluegene.cable_policy import CablePolicy


class TwoPhase(CablePolicy):
    """All free boxes of the shape in all rotations; the one that takes the fewest cables, the first found among equals.

    The paper's candidates are spatially contiguous and its scan knows no wrap-around, so boxes do not wrap.
    """

    def member_sets(self, width: int, extent: int) -> Iterable[tuple[int, ...]]:
        """Return runs of neighbouring coordinates, from the lowest start."""
        return [tuple(range(start, start + extent)) for start in range(width - extent + 1)]


ALLOCATOR = allocator(
    TwoPhase, about="Contiguous boxes; the one that takes the fewest cables (default of cabled-torus)."
)
