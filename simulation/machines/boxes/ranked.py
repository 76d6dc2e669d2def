"""The boxes of a torus in the order of an allocator, and which shapes serve which kind of request."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ramp.errors import MachineError
from simulation.machines.boxes.policy import BoxPolicy, Choice
from simulation.machines.boxes.search import BoxArrays
from simulation.machines.boxes.table import BoxTable, build_box_table
from simulation.machines.grid import Grid, rotations
from simulation.machines.interface import Connection, JobRequest

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
