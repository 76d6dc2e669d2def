"""Coordinates of a machine: numbering of units and lines, and rotations of shapes. Any number of dimensions.

Unit numbers run with the last dimension fastest, so that ascending numbers are ascending names (bgl000, bgl001, ...).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

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
