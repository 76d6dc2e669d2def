"""All boxes of a torus, laid out for the compiled search.

A box is one interval of coordinates in each dimension, with wrap-around: origin o, length p, the coordinates
(o + k) mod d for 0 <= k < p. A full ring has the origin 0. There are d(d-1)+1 intervals a dimension, and a box's
number is made of its intervals' numbers like a unit's number of its coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from ramp.errors import MachineError
from simulation.machines.grid import Grid, units_of, words_of

WORD_BITS = 64
TABLE_WORDS_MAX = 1 << 25
"""Words that the bit sets of all boxes may take (256 MiB); larger tori have too many boxes to list."""
_CHUNK = 1 << 14
FULL = -1
"""In the growth tables: the interval cannot grow that way."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """The intervals of one dimension, by length, then origin; the first `extent` ones are the single coordinates.

    Attributes:
        extent: of the dimension.
        origin: of each interval.
        length: of each interval.
        grown: shape (2, intervals): number of the interval one longer upwards, downwards, or `FULL`.
        slab: shape (2, intervals): the coordinate by which it grows, which is also the number of its interval.
    """

    extent: int
    origin: tuple[int, ...]
    length: tuple[int, ...]
    grown: NDArray[np.int64]
    slab: NDArray[np.int64]


def intervals_of(extent: int, *, wrap: bool) -> Intervals:
    """Return all intervals of a dimension.

    Args:
        extent: coordinates of the dimension.
        wrap: whether intervals may run over the seam; without, the ring is treated as a line.
    """
    entries = [
        (length, origin) for length in range(1, extent) for origin in range(extent if wrap else extent - length + 1)
    ]
    entries.append((extent, 0))
    number = {entry: index for index, entry in enumerate(entries)}
    grown = np.full((2, len(entries)), FULL, np.int64)
    slab = np.zeros((2, len(entries)), np.int64)
    for index, (length, origin) in enumerate(entries):
        if length == extent:
            continue
        for side, begin in ((0, origin), (1, origin - 1)):
            longer = (length + 1, 0 if length + 1 == extent else begin % extent)
            inside = begin >= 0 and begin + length + 1 <= extent
            if wrap or inside:
                grown[side, index] = number[longer]
                slab[side, index] = (origin + length) % extent if side == 0 else (origin - 1) % extent
    origins = tuple(origin for _, origin in entries)
    return Intervals(extent, origins, tuple(length for length, _ in entries), grown, slab)


@dataclass(frozen=True, slots=True, eq=False)
class BoxTable:
    """All boxes of a torus; never changes, shared by all machines of one torus.

    Attributes:
        grid: the units.
        shapes: extents of all shapes, in lexicographic order.
        strides: what one interval number counts in a box number, one a dimension.
        masks: units of each box, shape (boxes, words).
        shape_of: index into `shapes`, shape (boxes,).
        origins: shape (boxes, dimensions).
        grown: growth tables of all dimensions, shape (dimensions, 2, intervals of the longest).
        slab: likewise.
    """

    grid: Grid
    shapes: tuple[tuple[int, ...], ...]
    strides: NDArray[np.int64]
    masks: NDArray[np.uint64]
    shape_of: NDArray[np.int64]
    origins: NDArray[np.int64]
    grown: NDArray[np.int64]
    slab: NDArray[np.int64]

    @property
    def words(self) -> int:
        """Words of a bit set of units."""
        return int(self.masks.shape[1])

    def members(self, box: int) -> tuple[tuple[int, ...], ...]:
        """Return the coordinates of a box in each dimension, ascending."""
        shape = self.shapes[int(self.shape_of[box])]
        return tuple(
            tuple(sorted((int(origin) + step) % extent for step in range(length)))
            for origin, length, extent in zip(self.origins[box], shape, self.grid.extents, strict=True)
        )

    def words_of(self, units: int) -> NDArray[np.uint64]:
        """Return a bit set of units as words."""
        return words_of(units, self.words)

    def units_of(self, box: int) -> int:
        """Return the bit set of a box's units."""
        return units_of(self.masks[box])


def build_box_table(grid: Grid, *, wrap: bool = True) -> BoxTable:
    """List the boxes of a torus.

    Raises:
        MachineError: there are too many.
    """
    axes = tuple(intervals_of(extent, wrap=wrap) for extent in grid.extents)
    counts = [len(axis.origin) for axis in axes]
    boxes = prod(counts)
    words = -(-grid.size // WORD_BITS)
    if boxes * words > TABLE_WORDS_MAX:
        extents = "x".join(map(str, grid.extents))
        raise MachineError(
            f"too many boxes in a torus of {extents}: got {boxes}, expected at most {TABLE_WORDS_MAX // words}"
        )
    dimensions = len(counts)
    strides = np.array([prod(counts[dimension + 1 :]) for dimension in range(dimensions)], np.int64)
    numbers = np.stack(np.unravel_index(np.arange(boxes), counts), axis=1)
    shapes = tuple(product(*(range(1, extent + 1) for extent in grid.extents)))
    shape_of = np.zeros(boxes, np.int64)
    origins = np.zeros((boxes, dimensions), np.int64)
    for dimension, axis in enumerate(axes):
        chosen = numbers[:, dimension]
        shape_of = shape_of * axis.extent + np.array(axis.length, np.int64)[chosen] - 1
        origins[:, dimension] = np.array(axis.origin, np.int64)[chosen]
    longest = max(counts)
    grown = np.full((dimensions, 2, longest), FULL, np.int64)
    slab = np.zeros((dimensions, 2, longest), np.int64)
    for dimension, axis in enumerate(axes):
        grown[dimension, :, : counts[dimension]] = axis.grown
        slab[dimension, :, : counts[dimension]] = axis.slab
    masks = _masks(grid, axes, numbers, words)
    return BoxTable(grid, shapes, strides, masks, shape_of, origins, grown, slab)


def _masks(grid: Grid, axes: tuple[Intervals, ...], numbers: NDArray[np.int64], words: int) -> NDArray[np.uint64]:
    """Return units of each box: those whose coordinate is in the box's interval, in every dimension."""
    coordinates = np.array([grid.coordinates(unit) for unit in range(grid.size)], np.int64)
    holds = []
    for dimension, axis in enumerate(axes):
        inside = np.zeros((len(axis.origin), axis.extent), np.bool_)
        for index, (origin, length) in enumerate(zip(axis.origin, axis.length, strict=True)):
            inside[index, (origin + np.arange(length)) % axis.extent] = True
        holds.append(inside[:, coordinates[:, dimension]])
    masks = np.zeros((len(numbers), words), np.uint64)
    for begin in range(0, len(numbers), _CHUNK):
        part = numbers[begin : begin + _CHUNK]
        members = np.ones((len(part), words * WORD_BITS), np.bool_)
        members[:, grid.size :] = False
        for dimension, inside in enumerate(holds):
            members[:, : grid.size] &= inside[part[:, dimension]]
        packed = np.packbits(members, axis=1, bitorder="little")
        masks[begin : begin + len(part)] = packed.view("<u8").astype(np.uint64)
    return masks
