"""What an allocator of a machine of cabled lines is: which sets of midplanes are candidates, and what cables cost.

The allocators themselves are one a file in `simulation.machines.allocators`; the search is the machine's.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Merit(enum.StrEnum):
    """Which of the places that would serve a job is the best; Aridor et al. 2005 name all three, and use the first."""

    LINKS = "links"
    """The one that takes the fewest cables."""
    CORNER = "corner"
    """The one nearest to the first midplane, by the sum of its lowest coordinates."""
    FRAGMENTATION = "fragmentation"
    """The one that leaves the largest free box."""


@dataclass(frozen=True, slots=True)
class CablePolicy:
    """How a machine of cabled lines chooses among places; base of its allocators. Fields are options.

    Attributes:
        merit: best place: fewest cables, nearest to the first midplane, or largest free box left. Among equals the one
            with the fewest cables, then the first found.
    """

    merit: Merit = Merit.LINKS

    def member_sets(self, width: int, extent: int) -> Iterable[tuple[int, ...]]:
        """Return sets of `extent` of the `width` coordinates of a dimension that may serve a job, in discovery order.

        Candidates of a shape are the products of one set a dimension.
        """
        raise NotImplementedError

    def place_cost(self, members: tuple[tuple[int, ...], ...]) -> int:
        """Return the cost of a place, which counts before that of its cables; by default as the merit says.

        Args:
            members: coordinates taken in each dimension, ascending.
        """
        return sum(coordinates[0] for coordinates in members) if self.merit is Merit.CORNER else 0

    def link_cost(self, links: int) -> int:
        """Return the cost of a link set of that many cables on each line; the cheapest candidate wins, then the first.

        By default it is their number: links are scarce for later jobs.
        """
        return links
