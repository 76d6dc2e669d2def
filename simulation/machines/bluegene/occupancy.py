"""What is taken on a machine of cabled lines, as vectors that the compiled search scans."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulation.machines.grid_units import UnitState

StateVector = NDArray[np.uint64]
"""Units first (one bit each), then one word a line (one bit a cable); set = not to be given out."""


@dataclass(slots=True)
class Occupancy(UnitState):
    """What is taken on a machine, also as state vectors as the search scans them (units first, then one word a line).

    Attributes:
        held: by jobs.
        out: out of service: drained and down midplanes, failed cables.
        busy: either; what a new job must avoid.
    """

    held: StateVector = field(kw_only=True)
    out: StateVector = field(kw_only=True)
    busy: StateVector = field(kw_only=True)

    def copy(self) -> Occupancy:
        vectors = {"held": self.held.copy(), "out": self.out.copy(), "busy": self.busy.copy()}
        return Occupancy(self.running.copy(), self.held_units, self.drained, self.down, **vectors)

    def refresh(self) -> None:
        """Recompute `busy` after a release or a change of service."""
        np.bitwise_or(self.held, self.out, out=self.busy)
