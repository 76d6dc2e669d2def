"""Coordinates of a machine: numbering of units and lines, and rotations of shapes. Any number of dimensions.

Unit numbers run with the last dimension fastest, so that ascending numbers are ascending names (bgl000, bgl001, ...).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import prod

from ramp.errors import MachineError


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
        """Difference of unit numbers between neighbours in the dimension."""
        return prod(self.extents[dimension + 1 :])

    def unit(self, coordinates: Sequence[int]) -> int:
        """Number of the unit at the coordinates.

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
        """Coordinates of a unit number."""
        found = []
        for extent in reversed(self.extents):
            unit, coordinate = divmod(unit, extent)
            found.append(coordinate)
        return tuple(reversed(found))

    def bits(self, members: Sequence[Iterable[int]]) -> int:
        """Bit set of the units in the Cartesian product of the coordinates given for each dimension."""
        # a product of one factor a dimension: bits of different coordinates never meet, so no carry arises
        result = 1
        for dimension, coordinates in enumerate(members):
            stride = self.stride(dimension)
            result *= sum(1 << coordinate * stride for coordinate in coordinates)
        return result

    def line_count(self, dimension: int) -> int:
        """Number of lines that run in the dimension."""
        return self.size // self.extents[dimension]

    def line(self, dimension: int, others: Sequence[int]) -> int:
        """Number of the line through the coordinates of all other dimensions (in order)."""
        number = 0
        for coordinate, extent in zip(others, self._others(dimension), strict=True):
            number = number * extent + coordinate
        return number

    def line_coordinates(self, dimension: int, line: int) -> tuple[int, ...]:
        """Coordinates, in all other dimensions, of a line number."""
        return Grid(self._others(dimension) or (1,)).coordinates(line)[: len(self.extents) - 1]

    def lines_through(self, dimension: int, members: Sequence[Sequence[int]]) -> Iterator[int]:
        """Numbers of the lines of the dimension that cross the Cartesian product of the members, ascending."""
        others = [coordinates for index, coordinates in enumerate(members) if index != dimension]
        for coordinates in product(*others):
            yield self.line(dimension, coordinates)

    def _others(self, dimension: int) -> tuple[int, ...]:
        return self.extents[:dimension] + self.extents[dimension + 1 :]


def rotations(shape: Sequence[Hashable]) -> list[tuple[int, ...]]:
    """Orders in which a shape's extents can be laid along the dimensions: permutations of indices, doubles left out.

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
    """Shapes, sorted extents, of the smallest volume not below `size` that fit into the extents in some rotation.

    Returns:
        An empty list where the machine is smaller than `size`.
    """
    limits = sorted(extents)
    by_volume: dict[int, set[tuple[int, ...]]] = {}
    for shape in product(*(range(1, limit + 1) for limit in limits)):
        if tuple(sorted(shape)) == shape and prod(shape) >= size:
            by_volume.setdefault(prod(shape), set()).add(shape)
    return sorted(by_volume[min(by_volume)]) if by_volume else []


def bits_of(bits: int) -> Iterable[int]:
    """Positions of the bits that are set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
