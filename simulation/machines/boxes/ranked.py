"""All boxes of a torus in the order of an allocator, and which shapes serve which kind of request.

A box is one interval of coordinates in each dimension, with wrap-around: origin o, length p, the coordinates
(o + k) mod d for 0 <= k < p. A full ring has the origin 0. There are d(d-1)+1 intervals a dimension, and a box's
number is made of its intervals' numbers like a unit's number of its coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from ramp.errors import MachineError
from simulation.machines.boxes.policy import BoxPolicy, Choice
from simulation.machines.boxes.search import BoxArrays
from simulation.machines.grid import Grid, rotations, units_of, words_of
from simulation.machines.interface import Connection, JobRequest

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


KINDS_MAX = 100_000
"""Kinds of requests whose shapes are remembered; above, the memory begins anew."""


@lru_cache(maxsize=16)
def box_table(extents: tuple[int, ...], *, wrap: bool) -> BoxTable:
    """Return the boxes of a torus, shared by all its machines."""
    return build_box_table(Grid(extents), wrap=wrap)


class RankedBoxes:
    """Boxes in an allocator's order; holds nothing of a machine's state, so that copies share it.

    Args:
        extents: of the torus.
        policy: the allocator.

    Attributes:
        table: all boxes by number.
        policy: the allocator.
        arrays: what the search reads.
        admitted: whether the allocator gives out a shape, shape (shapes,).
    """

    def __init__(self, extents: tuple[int, ...], policy: BoxPolicy) -> None:
        self.table = box_table(extents, wrap=policy.wrap)
        self.policy = policy
        shapes = self.table.shapes
        self.admitted = np.array([policy.admits(shape, extents) for shape in shapes], np.bool_)
        self._volumes = sorted({prod(shape) for shape, taken in zip(shapes, self.admitted, strict=True) if taken})
        order = sorted(range(len(shapes)), key=lambda index: (policy.rank(shapes[index], extents), index))
        place = np.empty(len(shapes), np.int64)
        place[order] = np.arange(len(shapes))
        volume_of_shape = np.array([prod(shape) for shape in shapes], np.int64)
        if policy.choice not in {Choice.FIRST, Choice.OWN} and (np.diff(volume_of_shape[order]) < 0).any():
            raise MachineError(f"allocator {type(policy).__name__} compares boxes and must rank them by volume first")
        origins = self.table.origins
        keys = [origins[:, dimension] for dimension in reversed(range(len(extents)))]
        rows = np.lexsort((*keys, place[self.table.shape_of]))
        box_volumes = volume_of_shape[self.table.shape_of]
        grid = self.table.grid
        self.arrays = BoxArrays(
            masks=np.ascontiguousarray(self.table.masks[rows]),
            volumes=box_volumes[rows],
            shape_of=self.table.shape_of[rows],
            box_of=rows.astype(np.int64),
            box_masks=self.table.masks,
            box_volumes=box_volumes,
            coordinates=np.array([grid.coordinates(unit) for unit in range(grid.size)], np.int64),
            strides=self.table.strides,
            grown=self.table.grown,
            slab=self.table.slab,
        )
        self._wanted: dict[tuple[object, ...], NDArray[np.bool_]] = {}

    def wanted(self, request: JobRequest) -> NDArray[np.bool_]:
        """Return which shapes serve a request, and which of those hold no other one: two rows, shape (2, shapes).

        A size is served by every admitted shape from that volume up to the allocator's limit, a shape by itself in all
        rotations that the request allows. A dimension that must be a torus is a full ring or a single node.

        Raises:
            MachineError: the shape or the connection has more dimensions than the machine.
        """
        found = self._wanted.get(request.kind)
        if found is None:
            if len(self._wanted) >= KINDS_MAX:
                self._wanted.clear()
            serving = self._shapes_of(request) & self.admitted
            found = np.stack([serving, serving & ~self._holds_another(serving)])
            found.setflags(write=False)
            self._wanted[request.kind] = found
        return found

    def _shapes_of(self, request: JobRequest) -> NDArray[np.bool_]:
        extents = self.table.grid.extents
        connection = request.connection
        choices = (connection,) * len(extents) if isinstance(connection, Connection) else connection
        if len(choices) != len(extents):
            raise MachineError(f"job {request.job_id}: got {len(choices)} connections, expected 1 or {len(extents)}")
        if request.shape is None:
            most = self.policy.volume_max(request.size, self._volumes)
            volumes = np.array([prod(shape) for shape in self.table.shapes], np.int64)
            fits = (volumes >= request.size) & (volumes <= most)
            allowed = [self._joins(shape, choices) for shape in self.table.shapes]
            return fits & np.array(allowed, np.bool_)
        if len(request.shape) > len(extents):
            raise MachineError(
                f"job {request.job_id}: shape {'x'.join(map(str, request.shape))} has {len(request.shape)} extents, "
                f"the machine {len(extents)}"
            )
        pairs = tuple(zip(request.shape + (1,) * (len(extents) - len(request.shape)), choices, strict=True))
        orders = rotations(pairs) if request.rotate else [tuple(range(len(extents)))]
        turned = {tuple(pairs[index] for index in order) for order in orders}
        found = {
            tuple(extent for extent, _ in layout)
            for layout in turned
            if self._joins(tuple(extent for extent, _ in layout), tuple(choice for _, choice in layout))
        }
        return np.array([shape in found for shape in self.table.shapes], np.bool_)

    def _holds_another(self, serving: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which shapes stay among the serving ones when one side becomes one shorter."""
        cube = serving.reshape(self.table.grid.extents)
        result = np.zeros_like(cube)
        for dimension in range(cube.ndim):
            longer = [slice(None)] * cube.ndim
            shorter = list(longer)
            longer[dimension], shorter[dimension] = slice(1, None), slice(None, -1)
            result[tuple(longer)] |= cube[tuple(shorter)]
        return result.reshape(-1)

    def _joins(self, shape: tuple[int, ...], choices: tuple[Connection, ...]) -> bool:
        sides = zip(shape, self.table.grid.extents, choices, strict=True)
        return all(choice is not Connection.TORUS or p in {1, extent} for p, extent, choice in sides)
