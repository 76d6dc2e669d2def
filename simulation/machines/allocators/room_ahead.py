"""An allocator of the project's own: leave large boxes free, now and as the running jobs end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar

from simulation.machines.box_policy import Choice, Shape, mean_torus_distance, volume_with_transit


@dataclass(frozen=True, slots=True)
class RoomAhead:
    """Of the free boxes of the smallest volume, the one beside which the largest free boxes are left while it runs.

    The study's phi looks at the moment of the decision. Here the volume of the largest free box beside the job is
    integrated over the job's time, from one expected end of a running job to the next, so that jobs which end together
    come to lie together and what is about to become free is kept in one piece. Expected ends are requested times; the
    scheduler `window-room-ahead` hands them over. Without them only the present counts.

    Attributes:
        wrap: boxes may run over the seam of a ring.
        transit_max: nodes above the smallest volume that holds the job; None = any.
    """

    name: ClassVar[str] = "room-ahead"
    choice: ClassVar[Choice] = Choice.ROOM_AHEAD
    wrap: bool = True
    transit_max: int | None = None

    def admits(self, shape: Shape, extents: Shape) -> bool:
        """Every shape."""
        return True

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Volume, then mean distance on the torus."""
        return (prod(shape), mean_torus_distance(shape, extents))

    def volume_max(self, size: int, volumes: Sequence[int]) -> int:
        """The smallest volume that holds the job and `transit_max` more."""
        return volume_with_transit(size, volumes, self.transit_max)
