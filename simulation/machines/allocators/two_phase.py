"""The two-phase allocation of Aridor et al. 2005: contiguous boxes, fewest cables."""

from __future__ import annotations

from collections.abc import Iterable


class TwoPhase:
    """All free boxes of the shape in all rotations; the one that takes the fewest cables, the first found among equals.

    The paper's candidates are spatially contiguous and its scan knows no wrap-around, so boxes do not wrap.
    """

    name = "two-phase"

    def member_sets(self, width: int, extent: int) -> Iterable[tuple[int, ...]]:
        """Runs of neighbouring coordinates, from the lowest start."""
        return [tuple(range(start, start + extent)) for start in range(width - extent + 1)]

    def link_cost(self, links: int) -> int:
        """The number of cables (section "Two-phase partition allocation": links are what later jobs lack)."""
        return links
