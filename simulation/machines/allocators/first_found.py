"""The first box that can be cabled, at any cost: a base to compare the two-phase allocation with."""

from __future__ import annotations

from simulation.machines.allocator_declaration import allocator
from simulation.machines.allocators.two_phase import TwoPhase


class FirstFound(TwoPhase):
    """Contiguous boxes in the two-phase order, but the first one that can be cabled wins.

    Within a box the smallest free link set is still taken, because the tables are sorted that way.
    """

    def link_cost(self, links: int) -> int:
        """Return 0: all candidates are worth the same."""
        return 0


ALLOCATOR = allocator(FirstFound, about="Contiguous boxes; the first one that can be cabled.")
