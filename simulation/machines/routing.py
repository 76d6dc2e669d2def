"""Direction-ordered routing with direction bits on a torus: which sets of nodes keep their traffic inside.

Sources: A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, introduction and section 1 (routable
sets); S. L. Scott and G. M. Thorson, "The Cray T3E Network: Adaptive Routing in a High Performance 3D Torus", 1996
(direction order, direction bits, first and last step); V. Puente and others, ICPP 1999 (bubble flow control).

A packet makes all its hops of one direction before the next, in one fixed order of the directions. One bit a dimension
says which way it goes there, so a pair of nodes has at most 2^n routes. A first and a last step may be added, one hop
each in any direction, to pass failed nodes and links. A set is routable when every ordered pair in it has a route that
never leaves it; nodes outside count as absent, which is also how failed nodes are treated.

Bubble flow control keeps each ring of one direction free of deadlock, and the order of directions keeps packets from
waiting for one another in circles over several rings. First and last steps break that order, so tables that use them
are only accepted when the rings still wait for one another without a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, product

from ramp.errors import MachineError
from simulation.machines.grid import Grid, bits_of

Direction = int
"""Dimension k upwards is k, downwards is n + k."""
Ring = tuple[Direction, int]
"""One direction of one line: the direction and the line's lowest unit number."""


@dataclass(frozen=True, slots=True)
class Route:
    """A route from node to node.

    Attributes:
        nodes: every node passed, from the source to the target.
        directions: of the hops, one less than the nodes.
        special: whether it has a first or last step that breaks the order.
    """

    nodes: tuple[int, ...]
    directions: tuple[Direction, ...]
    special: bool


@dataclass(frozen=True, slots=True)
class Fabric:
    """The links of a torus.

    Attributes:
        grid: the nodes.
        failed_links: (unit, dimension): the cable from the unit to its neighbour upwards, in both directions.
    """

    grid: Grid
    failed_links: frozenset[tuple[int, int]] = frozenset()
    _lowest: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _broken: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        dimensions = len(self.grid.extents)
        for unit, dimension in self.failed_links:
            if not (0 <= unit < self.grid.size and 0 <= dimension < dimensions):
                raise MachineError(f"unit {unit} has no link in dimension {dimension}")
        lowest = []
        for dimension in range(dimensions):
            members = [range(extent) for extent in self.grid.extents]
            members[dimension] = range(1)
            lowest.append(self.grid.bits(members))
        object.__setattr__(self, "_lowest", tuple(lowest))
        broken = [0] * dimensions
        for unit, dimension in self.failed_links:
            broken[dimension] |= 1 << unit
        object.__setattr__(self, "_broken", tuple(broken))

    @property
    def order(self) -> range:
        """Directions in the order of the hops: first all upwards, then all downwards, as on the T3E."""
        return range(2 * len(self.grid.extents))

    def step(self, units: int, direction: Direction) -> int:
        """Return the bit set of the nodes one hop from `units` in a direction, over working links."""
        dimensions = len(self.grid.extents)
        dimension = direction % dimensions
        extent = self.grid.extents[dimension]
        if extent == 1:
            return 0
        stride = self.grid.stride(dimension)
        jump = stride * (extent - 1)
        lowest, broken = self._lowest[dimension], self._broken[dimension]
        if direction < dimensions:
            units &= ~broken
            highest = lowest << jump
            return (units & ~highest) << stride | (units & highest) >> jump
        return ((units & ~lowest) >> stride | (units & lowest) << jump) & ~broken

    def neighbours(self, units: int) -> int:
        """Return the bit set of the nodes one hop from `units` in any direction."""
        found = 0
        for direction in self.order:
            found |= self.step(units, direction)
        return found

    def reached(self, source: int, inside: int, *, special_steps: bool = False) -> int:
        """Return the bit set of the nodes that have a route from `source` within `inside`.

        Args:
            source: node number, a member of `inside`.
            inside: bit set.
            special_steps: allow a first and a last step.
        """
        begin = 1 << source
        if special_steps:
            begin |= self.neighbours(begin) & inside
        found = 0
        for upwards in product((True, False), repeat=len(self.grid.extents)):
            here = begin
            for direction in self._directions(upwards):
                wave = here
                for _ in range(self.grid.extents[direction % len(upwards)] - 1):
                    wave = self.step(wave, direction) & inside
                    here |= wave
            found |= here
        if special_steps:
            found |= self.neighbours(found) & inside
        return found

    def is_routable(self, units: int, *, special_steps: bool = False) -> bool:
        """Return whether every ordered pair of a bit set has a route inside it.

        With `special_steps` a deadlock-free table of routes must be found as well (`route_table`).
        """
        if all(self.reached(source, units) & units == units for source in bits_of(units)):
            return True
        if not special_steps:
            return False
        everyone = (self.reached(source, units, special_steps=True) & units == units for source in bits_of(units))
        return all(everyone) and self.route_table(units, special_steps=True) is not None

    def routes(self, source: int, target: int, inside: int, *, special_steps: bool = False) -> Iterator[Route]:
        """Return routes between two nodes within `inside`: those without special steps first, then by length."""
        plain = sorted(self._plain_routes(source, target, inside), key=lambda route: len(route.nodes))
        yield from plain
        if not special_steps:
            return
        special = [
            route
            for first in (None, *self.order)
            for last in (None, *self.order)
            if first is not None or last is not None
            for route in self._special_routes(source, target, inside, first, last)
        ]
        yield from sorted(special, key=lambda route: len(route.nodes))

    def route_table(self, units: int, *, special_steps: bool = False) -> Mapping[tuple[int, int], Route] | None:
        """Return a deadlock-free route inside the bit set for every ordered pair; None if none was found.

        Pairs that have a route in order take their shortest one; the others take, one after the other, the shortest
        route with special steps that closes no circle of waiting rings. A table that is found is right; with special
        steps the search is not exhaustive.
        """
        table: dict[tuple[int, int], Route] = {}
        left = []
        waits = _Waits(self)
        members = list(bits_of(units))
        for source, target in product(members, members):
            if source == target:
                continue
            plain = next(self.routes(source, target, units), None)
            if plain is None:
                left.append((source, target))
            else:
                table[source, target] = plain
                waits.add(plain)
        if left and not special_steps:
            return None
        for source, target in left:
            for route in self.routes(source, target, units, special_steps=True):
                if waits.add(route):
                    table[source, target] = route
                    break
            else:
                return None
        return table

    def ring(self, unit: int, direction: Direction) -> Ring:
        """Return the ring that a hop from a node in a direction uses."""
        dimension = direction % len(self.grid.extents)
        stride = self.grid.stride(dimension)
        coordinate = unit // stride % self.grid.extents[dimension]
        return direction, unit - coordinate * stride

    def _directions(self, upwards: tuple[bool, ...]) -> list[Direction]:
        dimensions = len(upwards)
        return [direction for direction in self.order if upwards[direction % dimensions] == (direction < dimensions)]

    def _plain_routes(self, source: int, target: int, inside: int) -> Iterator[Route]:
        extents = self.grid.extents
        here, there = self.grid.coordinates(source), self.grid.coordinates(target)
        moving = [dimension for dimension in range(len(extents)) if here[dimension] != there[dimension]]
        for bits in product((True, False), repeat=len(moving)):
            upwards = [True] * len(extents)
            for dimension, bit in zip(moving, bits, strict=True):
                upwards[dimension] = bit
            hops: list[Direction] = []
            for direction in self._directions(tuple(upwards)):
                dimension = direction % len(extents)
                forward = (there[dimension] - here[dimension]) % extents[dimension]
                hops += [direction] * (
                    forward if upwards[dimension] else (extents[dimension] - forward) % extents[dimension]
                )
            nodes = self._walk(source, hops, inside)
            if nodes is not None:
                yield Route(nodes, tuple(hops), special=False)

    def _special_routes(
        self, source: int, target: int, inside: int, first: Direction | None, last: Direction | None
    ) -> Iterator[Route]:
        begin = source if first is None else self._hop(source, first, inside)
        end = target if last is None else self._hop(target, self._opposite(last), inside)
        if begin is None or end is None:
            return
        for middle in self._plain_routes(begin, end, inside):
            hops = middle.directions if first is None else (first, *middle.directions)
            hops = hops if last is None else (*hops, last)
            nodes = middle.nodes if first is None else (source, *middle.nodes)
            nodes = nodes if last is None else (*nodes, target)
            if len(set(nodes)) == len(nodes):
                yield Route(nodes, hops, special=True)

    def _opposite(self, direction: Direction) -> Direction:
        dimensions = len(self.grid.extents)
        return (direction + dimensions) % (2 * dimensions)

    def _hop(self, unit: int, direction: Direction, inside: int) -> int | None:
        arrived = self.step(1 << unit, direction) & inside
        return arrived.bit_length() - 1 if arrived else None

    def _walk(self, source: int, hops: list[Direction], inside: int) -> tuple[int, ...] | None:
        nodes = [source]
        for direction in hops:
            arrived = self._hop(nodes[-1], direction, inside)
            if arrived is None:
                return None
            nodes.append(arrived)
        return tuple(nodes)


class _Waits:
    """Which ring's packets wait for which other ring; kept free of circles."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._next: dict[Ring, set[Ring]] = {}

    def add(self, route: Route) -> bool:
        rings: list[Ring] = []
        for node, direction in zip(route.nodes, route.directions, strict=False):
            ring = self._fabric.ring(node, direction)
            if not rings or rings[-1] != ring:
                rings.append(ring)
        added: list[tuple[Ring, Ring]] = []
        for one, other in pairwise(rings):
            following = self._next.setdefault(one, set())
            if other in following:
                continue
            if route.special and self._leads(other, one):
                for before, after in added:
                    self._next[before].remove(after)
                return False
            following.add(other)
            added.append((one, other))
        return True

    def _leads(self, begin: Ring, end: Ring) -> bool:
        seen = {begin}
        stack = [begin]
        while stack:
            ring = stack.pop()
            if ring == end:
                return True
            for following in self._next.get(ring, ()):
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
        return False
