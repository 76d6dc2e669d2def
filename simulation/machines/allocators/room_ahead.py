"""An allocator of the project's own: leave large boxes free, now and as the running jobs end."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from simulation.machines.allocator_declaration import allocator
from simulation.machines.boxes.policy import BoxPolicy, Choice, Shape, mean_torus_distance


@dataclass(frozen=True, slots=True)
class RoomAhead(BoxPolicy):
    """Of the free boxes of the smallest volume, the one beside which the largest free boxes are left while it runs.

    The study's phi looks at the moment of the decision. Here the volume of the largest free box beside the job is
    integrated over the job's time, from one expected end of a running job to the next, so that jobs which end together
    come to lie together and what is about to become free is kept in one piece. Expected ends are requested times; the
    scheduler `window-room-ahead` hands them over. Without them only the present counts.
    """

    @property
    def choice(self) -> Choice:
        """What leaves most room while the job runs."""
        return Choice.ROOM_AHEAD

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Return the volume, then mean distance on the torus."""
        return (prod(shape), mean_torus_distance(shape, extents))


ALLOCATOR = allocator(RoomAhead, about="The box beside which most room is left while the job runs.")
