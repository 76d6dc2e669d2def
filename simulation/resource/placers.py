"""Where a request would go if a given set of units and cables were taken: what a search in space and time asks.

A state is a vector of words: the machine's units, one bit each, then whatever else its jobs exclude one another from.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simulation.machines.bluegene import BlueGene
from simulation.machines.grid import Grid
from simulation.machines.interface import GridMachine, JobRequest, NodeState, Placement

StateVector = NDArray[np.uint64]
WORD_BITS = 64


class Placer(Protocol):
    """Places requests on any state of one machine."""

    @property
    def out(self) -> StateVector:
        """What is out of service."""
        ...

    @property
    def unit_words(self) -> int:
        """Words of a state that are units."""
        ...

    def mask(self, placement: Placement) -> StateVector:
        """What a placement holds."""
        ...

    def place(self, busy: StateVector, request: JobRequest) -> Placement | None:
        """Where the request would go with just that taken, or None."""
        ...


class CabledPlacer:
    """Placer of a machine of cabled lines: complete in midplanes and in cables."""

    def __init__(self, machine: BlueGene) -> None:
        self._machine = machine.projected(())
        self.out = self._machine.out_of_service()
        self.unit_words = -(-machine.grid.size // WORD_BITS)

    def mask(self, placement: Placement) -> StateVector:
        """What a placement holds."""
        return self._machine.mask_of(placement)

    def place(self, busy: StateVector, request: JobRequest) -> Placement | None:
        """Where the request would go with just that taken, or None."""
        return self._machine.place_within(busy, request)


class UnitPlacer:
    """Placer of a machine whose jobs exclude one another from units only: what is taken is drained on a copy."""

    def __init__(self, machine: GridMachine) -> None:
        self._machine: Any = machine.copy()
        for job_id in list(self._machine.running):
            self._machine.release(job_id)
        size = Grid(machine.extents).size
        self.unit_words = -(-size // WORD_BITS)
        units_out = sum(1 << unit for unit in range(size) if self._machine.node_state(unit) is not NodeState.IDLE)
        self._serviceable = (1 << size) - 1 & ~units_out
        self.out = self._vector(units_out)

    def mask(self, placement: Placement) -> StateVector:
        """What a placement holds."""
        return self._vector(placement.nodes)

    def place(self, busy: StateVector, request: JobRequest) -> Placement | None:
        """Where the request would go with just that taken, or None."""
        taken = units_of(busy) & self._serviceable
        self._machine.set_node_state(self._serviceable & ~taken, NodeState.IDLE)
        self._machine.set_node_state(taken, NodeState.DRAINED)
        placement: Placement | None = self._machine.place(request)
        return placement

    def _vector(self, units: int) -> StateVector:
        return np.frombuffer(units.to_bytes(self.unit_words * 8, "little"), "<u8").astype(np.uint64)


def units_of(words: StateVector) -> int:
    """The unit words of a state as one bit set."""
    return int.from_bytes(words.astype("<u8").tobytes(), "little")


def placer_of(machine: GridMachine) -> Placer:
    """The placer of a machine in its present state of service."""
    return CabledPlacer(machine) if isinstance(machine, BlueGene) else UnitPlacer(machine)
