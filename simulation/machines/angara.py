"""A torus of nodes whose jobs never share a link: Angara.

A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019. A job gets a routable set of nodes, one in
which every pair has a route inside the set (`simulation.machines.routing`). Boxes are such sets; where nodes or
links have failed, a box without its failed nodes may still be one, with the hardware's first and last steps.
Units are nodes. A job locks all nodes of its box; those that it did not request are transit nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramp.errors import MachineError
from simulation.machines.boxes.policy import Choice, FreeBox
from simulation.machines.boxes.ranked import RankedBoxes
from simulation.machines.boxes.search import choose, keep_free, list_free
from simulation.machines.grid import Grid
from simulation.machines.grid_units import GridLayout, GridUnits, UnitState
from simulation.machines.interface import Connection, JobRequest, Placement, Reallocation, Traits, emptied
from simulation.machines.reallocation import reallocate
from simulation.machines.routing import Fabric


@dataclass(frozen=True, slots=True)
class TorusLayout(GridLayout):
    """The unchanging description of the machine.

    Attributes:
        extents: nodes in each dimension.
        bypass: boxes with failed nodes or links may serve jobs where routes lead around them.
    """

    extents: tuple[int, ...]
    bypass: bool = False


class AngaraMachine(GridUnits):
    """A torus with running jobs.

    Args:
        layout: its name and extents.
        boxes: the boxes in the allocator's order; shared by copies.
    """

    layout: TorusLayout

    def __init__(self, layout: TorusLayout, boxes: RankedBoxes) -> None:
        self.layout = layout
        self.boxes = boxes
        self.traits = Traits("node", chooses_shapes=True)
        self.grid: Grid = boxes.table.grid
        self._state = UnitState()
        self._failed_links: frozenset[tuple[int, int]] = frozenset()  # (unit, dimension)
        self._free: NDArray[np.int64] = np.empty(len(boxes.arrays.volumes), np.int64)
        self._free_count = -1
        self._free_busy = 0
        self._dead: NDArray[np.bool_] = np.zeros(len(boxes.arrays.volumes), np.bool_)

    @property
    def fabric(self) -> Fabric:
        """Return the present links for the routability check."""
        return Fabric(self.grid, self._failed_links)

    def place(self, request: JobRequest) -> Placement | None:
        busy = self._state.busy_units
        if request.size > self.grid.size - busy.bit_count():
            return None
        wanted = self.boxes.wanted(request)
        count = self._list_free(busy)
        policy = self.boxes.policy
        if policy.choice is Choice.OWN:
            row = self._own_choice(wanted, count, busy)
        else:
            words = self.boxes.table.words_of(busy)
            row = choose(self.boxes.arrays, wanted, self._free, count, words, int(policy.choice))
        if row >= 0:
            return self._placement(request.job_id, row)
        return self._bypass(request, busy)

    def place_first(self, requests: Sequence[JobRequest]) -> tuple[int, Placement] | None:
        """Index and placement of the first request that fits now; the list of free boxes is made once for all."""
        for index, request in enumerate(requests):
            placement = self.place(request)
            if placement is not None:
                return index, placement
        return None

    def fits_ever(self, request: JobRequest) -> bool:
        """Return whether the request fits when nothing runs, without units and links now drained, down or failed."""
        if request.size > self.capacity:
            return False
        return emptied(self).place(request) is not None

    def allocate(self, placement: Placement) -> None:
        """Take the placement's nodes.

        Raises:
            MachineError: a node is taken, out of service or unknown, or the job is already running.
        """
        if placement.job_id in self._state.running:
            raise MachineError(f"{self.name}: job {placement.job_id} is already running")
        if not placement.nodes or placement.nodes >> self.grid.size:
            raise MachineError(
                f"{self.name}: job {placement.job_id}: its nodes are not among the machine's {self.grid.size}"
            )
        taken = placement.nodes & self._state.busy_units
        if taken:
            raise MachineError(f"{self.name}: job {placement.job_id}: nodes {self.hostlist(taken)} are not free")
        self._state.running[placement.job_id] = placement
        self._state.held_units |= placement.nodes

    def release(self, job_id: int) -> None:
        placement = self._state.running.pop(job_id, None)
        if placement is None:
            raise MachineError(f"{self.name}: job {job_id} is not running")
        self._state.held_units &= ~placement.nodes

    def reallocate(self, request: JobRequest) -> Reallocation | None:
        """Change the size of a running job, within or around its box where possible (`reallocation`).

        Raises:
            MachineError: the job is not running.
        """
        return reallocate(self, request)

    def fail_link(self, unit: int, dimension: int) -> None:
        """Take the cable from a node to its neighbour upwards out of service: boxes that hold it are not given out.

        Raises:
            MachineError: the cable does not exist.
        """
        failed = frozenset([(unit, dimension)])
        Fabric(self.grid, failed)  # refuses what is not there
        self._failed_links |= failed
        self._dead = self._dead | self._holding(unit, dimension)
        self._free_count = -1

    def copy(self) -> AngaraMachine:
        """Return an independent machine in the same state; tables are shared."""
        twin = AngaraMachine(self.layout, self.boxes)
        twin._state = self._state.copy()
        twin._failed_links, twin._dead = self._failed_links, self._dead
        return twin

    def _own_choice(self, wanted: NDArray[np.bool_], count: int, busy: int) -> int:
        table, arrays = self.boxes.table, self.boxes.arrays
        rows = self._free[:count]
        rows = rows[wanted[0][arrays.shape_of[rows]]]
        if not len(rows):
            return -1
        boxes = [
            FreeBox(
                table.shapes[int(arrays.shape_of[row])],
                tuple(table.origins[int(arrays.box_of[row])].tolist()),
                table.units_of(int(arrays.box_of[row])),
            )
            for row in rows.tolist()
        ]
        index = self.boxes.policy.choose(boxes, busy)
        if not 0 <= index < len(boxes):
            name = type(self.boxes.policy).__name__
            raise MachineError(
                f"{self.name}: allocator {name} must choose a box from 0 to {len(boxes) - 1}, got {index!r}"
            )
        return int(rows[index])

    def _list_free(self, busy: int) -> int:
        """Bring the list of free boxes up to date; it only shrinks while nodes only become busy."""
        arrays = self.boxes.arrays
        if self._free_count < 0 or self._free_busy & ~busy:
            self._free_count = list_free(arrays.masks, self._dead, self.boxes.table.words_of(busy), self._free)
        elif self._free_busy != busy:
            words = self.boxes.table.words_of(busy)
            self._free_count = keep_free(arrays.masks, words, self._free, self._free_count)
        self._free_busy = busy
        return self._free_count

    def _holding(self, unit: int, dimension: int) -> NDArray[np.bool_]:
        """Return which rows are boxes with routes over a cable: neighbours inside the box at both ends."""
        table, arrays = self.boxes.table, self.boxes.arrays
        coordinates = self.grid.coordinates(unit)
        extent = self.extents[dimension]
        origins = table.origins[arrays.box_of, dimension]
        lengths = np.array([shape[dimension] for shape in table.shapes], np.int64)[arrays.shape_of]
        step = (coordinates[dimension] - origins) % extent
        over = (step < lengths - 1) | ((lengths == extent) & (extent > 1))
        word, bit = divmod(unit, 64)
        inside = (arrays.masks[:, word] >> np.uint64(bit)) & np.uint64(1)
        holding: NDArray[np.bool_] = over & (inside != 0)
        return holding

    def _bypass(self, request: JobRequest, busy: int) -> Placement | None:
        """Return the first box, in rank order, whose nodes in service are free and routable around its failures."""
        down = self._state.down
        if not self.layout.bypass or not (down or self._failed_links):
            return None
        arrays, table = self.boxes.arrays, self.boxes.table
        fabric = self.fabric
        taken = table.words_of(busy & ~down)
        broken = table.words_of(down)
        clear = ~(arrays.masks & taken).any(axis=1) & self.boxes.wanted(request)[0][arrays.shape_of]
        clear &= (arrays.masks & broken).any(axis=1) | self._dead
        for row in np.flatnonzero(clear).tolist():
            units = table.units_of(int(arrays.box_of[row])) & ~down
            if units.bit_count() >= request.size and fabric.is_routable(units, special_steps=True):
                return self._placement(request.job_id, row, units)
        return None

    def _placement(self, job_id: int, row: int, units: int | None = None) -> Placement:
        table = self.boxes.table
        box = int(self.boxes.arrays.box_of[row])
        shape = table.shapes[int(table.shape_of[box])]
        nodes = table.units_of(box) if units is None else units
        sides = zip(shape, self.extents, strict=True)
        return Placement(
            job_id,
            nodes.bit_count(),
            nodes,
            shape,
            tuple(table.origins[box].tolist()),
            tuple(Connection.TORUS if 1 < p == extent else Connection.MESH for p, extent in sides),
            table.members(box) if units is None else (),
        )
