"""Common part of machines whose units have coordinates: names, host lists and units in service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ramp.errors import MachineError
from simulation.machines.grid import Grid, bits_of
from simulation.machines.hostlist import compress_coordinates, unit_name
from simulation.machines.interface import NodeState, Placement, Traits


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
