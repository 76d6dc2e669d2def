"""What is taken on a machine of cabled lines, as vectors that the compiled search scans."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulation.machines.interface import Placement

StateVector = NDArray[np.uint64]
"""Units first (one bit each), then one word a line (one bit a cable); set = not to be given out."""


@dataclass(slots=True)
class Occupancy:
    """What is taken on a machine: state vectors as the search scans them (units first, then one word a line).

    Attributes:
        held: by jobs.
        out: out of service: drained and down midplanes, failed cables.
        busy: either; what a new job must avoid.
        busy_units: the midplanes of `busy` as one bit set.
        drained: drained midplanes.
        down: midplanes that are down.
        running: placements by job.
    """

    held: StateVector
    out: StateVector
    busy: StateVector
    busy_units: int = 0
    drained: int = 0
    down: int = 0
    running: dict[int, Placement] = field(default_factory=dict)

    def copy(self) -> Occupancy:
        return Occupancy(
            self.held.copy(),
            self.out.copy(),
            self.busy.copy(),
            self.busy_units,
            self.drained,
            self.down,
            self.running.copy(),
        )

    @property
    def held_units(self) -> int:
        """Bit set of the midplanes that jobs hold."""
        units = 0
        for placement in self.running.values():
            units |= placement.nodes
        return units

    def refresh(self, busy_units: int) -> None:
        """Recompute `busy` after a release or a change of service."""
        np.bitwise_or(self.held, self.out, out=self.busy)
        self.busy_units = busy_units
