"""Coordinates of a machine: numbering of units and lines, and rotations of shapes. Any number of dimensions.

Unit numbers run with the last dimension fastest, so that ascending numbers are ascending names (bgl000, bgl001, ...).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramp.errors import MachineError
from simulation.machines.hostlist import compress_coordinates, unit_name
from simulation.machines.interface import NodeState, Placement, Traits


@dataclass(frozen=True, slots=True)
class Grid:
    """A box of units.

    Attributes:
        extents: units in each dimension.
    """

    extents: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.extents or min(self.extents) < 1:
            raise MachineError(f"the extents of a machine must be at least 1, got {list(self.extents)}")

    @property
    def size(self) -> int:
        """Number of units."""
        return prod(self.extents)

    def stride(self, dimension: int) -> int:
        """Return the difference of unit numbers between neighbours in the dimension."""
        return prod(self.extents[dimension + 1 :])

    def unit(self, coordinates: Sequence[int]) -> int:
        """Return the number of the unit at the coordinates.

        Raises:
            MachineError: the coordinates are outside.
        """
        if len(coordinates) != len(self.extents) or not all(
            0 <= coordinate < extent for coordinate, extent in zip(coordinates, self.extents, strict=True)
        ):
            raise MachineError(
                f"coordinates {list(coordinates)} are outside the machine of {'x'.join(map(str, self.extents))}"
            )
        number = 0
        for coordinate, extent in zip(coordinates, self.extents, strict=True):
            number = number * extent + coordinate
        return number

    def coordinates(self, unit: int) -> tuple[int, ...]:
        """Return the coordinates of a unit number."""
        found = []
        for extent in reversed(self.extents):
            unit, coordinate = divmod(unit, extent)
            found.append(coordinate)
        return tuple(reversed(found))

    def bits(self, members: Sequence[Iterable[int]]) -> int:
        """Return the bit set of the units in the Cartesian product of each dimension's coordinates."""
        # a product of one factor a dimension: bits of different coordinates never meet, so no carry arises
        result = 1
        for dimension, coordinates in enumerate(members):
            stride = self.stride(dimension)
            result *= sum(1 << coordinate * stride for coordinate in coordinates)
        return result

    def line_count(self, dimension: int) -> int:
        """Return the number of lines in the dimension."""
        return self.size // self.extents[dimension]

    def line(self, dimension: int, others: Sequence[int]) -> int:
        """Return the number of the line through the coordinates of all other dimensions (in order)."""
        number = 0
        for coordinate, extent in zip(others, self._others(dimension), strict=True):
            number = number * extent + coordinate
        return number

    def line_coordinates(self, dimension: int, line: int) -> tuple[int, ...]:
        """Return the coordinates of a line in all other dimensions."""
        return Grid(self._others(dimension) or (1,)).coordinates(line)[: len(self.extents) - 1]

    def lines_through(self, dimension: int, members: Sequence[Sequence[int]]) -> Iterator[int]:
        """Return the lines of the dimension that cross the members' Cartesian product, ascending."""
        others = [coordinates for index, coordinates in enumerate(members) if index != dimension]
        for coordinates in product(*others):
            yield self.line(dimension, coordinates)

    def _others(self, dimension: int) -> tuple[int, ...]:
        return self.extents[:dimension] + self.extents[dimension + 1 :]


def rotations(shape: Sequence[Hashable]) -> list[tuple[int, ...]]:
    """List the orders of a shape's extents along the dimensions: permutations of indices without duplicates.

    The order of the list is that of the permutations: the shape as given comes first. Entries may be anything that
    tells two extents apart, for example (extent, connection).
    """
    seen: set[tuple[Hashable, ...]] = set()
    orders = []
    for order in permutations(range(len(shape))):
        turned = tuple(shape[index] for index in order)
        if turned not in seen:
            seen.add(turned)
            orders.append(order)
    return orders


def shapes_of_size(size: int, extents: Sequence[int]) -> list[tuple[int, ...]]:
    """List the shapes (sorted extents) of the smallest volume from `size` up that fit in some rotation.

    Returns:
        The shapes; empty if the machine is smaller than `size`.
    """
    limits = sorted(extents)
    by_volume: dict[int, set[tuple[int, ...]]] = {}
    for shape in product(*(range(1, limit + 1) for limit in limits)):
        if tuple(sorted(shape)) == shape and prod(shape) >= size:
            by_volume.setdefault(prod(shape), set()).add(shape)
    return sorted(by_volume[min(by_volume)]) if by_volume else []


def bits_of(bits: int) -> Iterable[int]:
    """Return the positions of the set bits, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def words_of(units: int, words: int) -> NDArray[np.uint64]:
    """Return a bit set of units as words of 64 bits."""
    return np.frombuffer(units.to_bytes(words * 8, "little"), "<u8").astype(np.uint64)


def units_of(words: NDArray[np.uint64]) -> int:
    """Return words of 64 bits as one bit set of units."""
    return int.from_bytes(words.astype("<u8").tobytes(), "little")


@dataclass(frozen=True, slots=True)
class GridLayout:
    """The unchanging parts of such a machine.

    Attributes:
        name: from the machine's file.
        prefix: before the digits of a unit's name.
        dimension_names: one a dimension.
    """

    name: str
    prefix: str
    dimension_names: tuple[str, ...]


@dataclass(slots=True)
class UnitState:
    """Units in use and out of service as bit sets, and placements by job.

    Attributes:
        running: placements by job.
        held_units: units that jobs hold.
        drained: drained units.
        down: units that are down.
    """

    running: dict[int, Placement] = field(default_factory=dict)
    held_units: int = 0
    drained: int = 0
    down: int = 0

    @property
    def busy_units(self) -> int:
        """Units that a new job must avoid."""
        return self.held_units | self.drained | self.down

    def copy(self) -> UnitState:
        return UnitState(self.running.copy(), self.held_units, self.drained, self.down)


class GridUnits:
    """Base of machines whose units have coordinates.

    Attributes:
        traits: what it says of itself.
        layout: what it is made of.
        grid: its extents.
    """

    traits: Traits
    layout: GridLayout
    grid: Grid
    _state: UnitState

    @property
    def name(self) -> str:
        return self.layout.name

    @property
    def extents(self) -> tuple[int, ...]:
        return self.grid.extents

    @property
    def prefix(self) -> str:
        """What a unit's name begins with."""
        return self.layout.prefix

    @property
    def dimension_names(self) -> tuple[str, ...]:
        """Names of the dimensions: x, y, z on Blue Gene/L."""
        return self.layout.dimension_names

    @property
    def capacity(self) -> int:
        """Units that are neither drained nor down."""
        return self.grid.size - self.units_out.bit_count()

    @property
    def units_out(self) -> int:
        return self._state.drained | self._state.down

    @property
    def free(self) -> int:
        return self.grid.size - self._state.busy_units.bit_count()

    @property
    def running(self) -> Mapping[int, Placement]:
        return self._state.running

    def describe(self, placement: Placement) -> dict[str, Any]:
        """Trace fields: shape, origin, connection, nodes (hostlist), links {dimension: [labels]}, a listed block.

        Links are those that a job holds for itself: none on a machine whose sets of units keep theirs to themselves.
        """
        labels = zip(self.dimension_names, placement.links, strict=True) if placement.links else ()
        return {
            "shape": list(placement.shape),
            "origin": list(placement.origin),
            "connection": [str(connection) for connection in placement.connection],
            "nodes": self.hostlist(placement.nodes),
            "links": {name: list(held) for name, held in labels},
            **({"block": placement.block} if placement.block else {}),
        }

    def hostlist(self, units: int) -> str:
        """Return Slurm's hostlist of a bit set of units: boxes between two corners, one digit a dimension."""
        cells = [self.grid.coordinates(unit) for unit in bits_of(units)]
        return compress_coordinates(self.prefix, cells) if cells else ""

    def unit_name(self, unit: int) -> str:
        """Return a unit's name: the prefix and one base-36 digit for each dimension."""
        return unit_name(self.prefix, self.grid.coordinates(unit))

    def node_state(self, unit: int) -> NodeState:
        """Return the state of a unit; a unit with a job counts as allocated even if drained.

        Raises:
            MachineError: the unit does not exist.
        """
        if not 0 <= unit < self.grid.size:
            raise MachineError(f"{self.name} has no {self.traits.unit_noun} {unit}; it has 0 to {self.grid.size - 1}")
        bit = 1 << unit
        if self._state.down & bit:
            return NodeState.DOWN
        if self._state.held_units & bit:
            return NodeState.ALLOCATED
        return NodeState.DRAINED if self._state.drained & bit else NodeState.IDLE

    def set_node_state(self, units: int, state: NodeState) -> None:
        """Take the units of the bit set out of service (DRAINED, DOWN) or put them back (IDLE). Jobs keep running.

        Raises:
            MachineError: a unit does not exist, or only a job sets this state.
        """
        if units < 0 or units >> self.grid.size:
            raise MachineError(f"{self.name} has no {self.traits.unit_noun} {units.bit_length() - 1}")
        if state is NodeState.ALLOCATED:
            raise MachineError(f"{self.name}: only a job sets {self.traits.unit_noun}s to {state}")
        now = self._state
        now.drained = now.drained | units if state is NodeState.DRAINED else now.drained & ~units
        now.down = now.down | units if state is NodeState.DOWN else now.down & ~units
        self._service_changed()

    def _service_changed(self) -> None:
        """Bring up to date what follows from the units in service."""
