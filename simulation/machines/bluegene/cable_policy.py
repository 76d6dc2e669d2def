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
        """Sets of `extent` coordinates of a dimension of `width` midplanes that may serve a job, in discovery order.

        Candidates of a shape are the products of one set a dimension.
        """
        raise NotImplementedError

    def link_cost(self, links: int) -> int:
        """What a link set of that many cables costs on each line; the cheapest candidate wins, the first one a tie.

        Their number by default: links are what later jobs lack.
        """
        return links
