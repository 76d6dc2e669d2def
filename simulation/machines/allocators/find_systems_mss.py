"""Find_Systems with the measure of fragmentation of the study of 2019 (Find_Systems + MSS)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar

from simulation.machines.box_policy import Choice, Shape, mean_distance, volume_with_transit


@dataclass(frozen=True, slots=True)
class FindSystemsMss:
    """Of all variants the one after which phi is largest; the first in the order of `find-systems` among equals.

    A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, sections 2.1 and 2.2: phi is the number of
    nodes of the machine times the size of the largest maximal box, plus how many maximal boxes are that large.

    Attributes:
        wrap: boxes may run over the seam of a ring.
        transit_max: nodes above the smallest volume that holds the job; None = any.
        exact: count all maximal boxes; without, those that the published greedy search finds.
    """

    name: ClassVar[str] = "find-systems-mss"
    wrap: bool = True
    transit_max: int | None = None
    exact: bool = False

    @property
    def choice(self) -> Choice:
        """Largest phi, greedy or exact."""
        return Choice.PHI_EXACT if self.exact else Choice.PHI_GREEDY

    def admits(self, shape: Shape, extents: Shape) -> bool:
        """Every shape."""
        return True

    def rank(self, shape: Shape, extents: Shape) -> tuple[Fraction | int, ...]:
        """Volume, then mean distance without wrap-around."""
        return (prod(shape), mean_distance(shape))

    def volume_max(self, size: int, volumes: Sequence[int]) -> int:
        """The smallest volume that holds the job and `transit_max` more."""
        return volume_with_transit(size, volumes, self.transit_max)
