"""What an allocator of a machine of cabled lines is: which sets of midplanes are candidates, and what cables cost.

The allocators themselves are one a file in `simulation.machines.allocators`; the search is the machine's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CablePolicy:
    """How a machine of cabled lines chooses among places; base of its allocators. Fields are options."""

    def member_sets(self, width: int, extent: int) -> Iterable[tuple[int, ...]]:
        """Return sets of `extent` of the `width` coordinates of a dimension that may serve a job, in discovery order.

        Candidates of a shape are the products of one set a dimension.
        """
        raise NotImplementedError

    def link_cost(self, links: int) -> int:
        """Return the cost of a link set of that many cables on each line; the cheapest candidate wins, then the first.

        By default it is their number: links are scarce for later jobs.
        """
        return links
