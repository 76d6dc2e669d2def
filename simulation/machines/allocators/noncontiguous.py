"""Sets with gaps: the future work of Aridor et al. 2005, carried by the same link tables."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations


class Noncontiguous:
    """Any coordinates of a dimension, joined through the switches of the midplanes between them.

    Runs without a gap come first, so that a tie goes to the compact place.
    """

    name = "noncontiguous"

    def member_sets(self, width: int, extent: int) -> Iterable[tuple[int, ...]]:
        """All sets of that many coordinates, by span (last minus first), then from the lowest start."""
        return sorted(combinations(range(width), extent), key=lambda members: (members[-1] - members[0], members))

    def link_cost(self, links: int) -> int:
        """The number of cables, as in the two-phase allocation."""
        return links
