"""Placement policies, one a file, chosen by name.

An allocator of a cabled torus (`TorusPolicy`) says which sets of midplanes are candidates and what a candidate's cables
cost; the search itself is the machine's. A new policy is a module here and a line in `ALLOCATORS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Protocol

from ramp.errors import MachineError

ALLOCATORS = {
    "two-phase": "simulation.machines.allocators.two_phase:TwoPhase",
    "first-found": "simulation.machines.allocators.first_found:FirstFound",
    "noncontiguous": "simulation.machines.allocators.noncontiguous:Noncontiguous",
    "base": "simulation.machines.allocators.base:Base",
    "base-no-wrap": "simulation.machines.allocators.base_no_wrap:BaseNoWrap",
    "base-ring": "simulation.machines.allocators.base_ring:BaseRing",
    "find-systems": "simulation.machines.allocators.find_systems:FindSystems",
    "find-systems-mss": "simulation.machines.allocators.find_systems_mss:FindSystemsMss",
    "room-ahead": "simulation.machines.allocators.room_ahead:RoomAhead",
    "torus-distance": "simulation.machines.allocators.torus_distance:TorusDistance",
}
"""Allocators by name: module and class, imported when first asked for."""


class TorusPolicy(Protocol):
    """How a machine of cabled lines chooses among places."""

    name: str

    def member_sets(self, width: int, extent: int) -> Iterable[tuple[int, ...]]:
        """Sets of `extent` coordinates of a dimension of `width` midplanes that may serve a job, in discovery order.

        Candidates of a shape are the products of one set a dimension.
        """
        ...

    def link_cost(self, links: int) -> int:
        """What a link set of that many cables costs on each line; the cheapest candidate wins, the first one a tie."""
        ...


def find_allocator(name: str) -> Any:
    """The allocator class of that name.

    Raises:
        MachineError: there is none.
    """
    target = ALLOCATORS.get(name)
    if target is None:
        raise MachineError(f"no allocator {name!r}; there are {', '.join(sorted(ALLOCATORS))}")
    module, _, class_name = target.partition(":")
    return getattr(import_module(module), class_name)
