"""Sets with gaps: the future work of Aridor et al. 2005, carried by the same link tables."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from simulation.machines.allocator_declaration import allocator
from simulation.machines.bluegene.cable_policy import CablePolicy


class Noncontiguous(CablePolicy):
    """Any coordinates of a dimension, joined through the switches of the midplanes between them.

    Runs without a gap come first, so that a tie goes to the compact place.
    """

    def member_sets(self, width: int, extent: int) -> Iterable[tuple[int, ...]]:
        """Return all sets of that many coordinates, by span (last minus first), then from the lowest start."""
        return sorted(combinations(range(width), extent), key=lambda members: (members[-1] - members[0], members))


ALLOCATOR = allocator(Noncontiguous, about="Sets with gaps; the one that takes the fewest cables.")
