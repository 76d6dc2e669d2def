"""The first allocator of Angara clusters as far as the print supports it: smallest volume, no wrap-around."""

from __future__ import annotations

from dataclasses import dataclass

from simulation.machines.allocator_declaration import allocator
from simulation.machines.allocators.base import Base
from simulation.machines.boxes.policy import TransitMax


@dataclass(frozen=True, slots=True)
class BaseNoWrap(Base):
    """As `base`, but boxes do not run over the seam of a ring, and only boxes of the smallest volume are tried.

    A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, prints the distance by which shapes are
    ranked without wrap-around, which gives boxes without wrap-around, and names the volumes from the job's size on,
    which puts the smallest first. Nothing else is assumed; `base-ring` invents a routing table instead.
    """

    wrap: bool = False
    transit_max: TransitMax = 0


ALLOCATOR = allocator(BaseNoWrap, about="As base, within the smallest volume and not over the seam of a ring.")
