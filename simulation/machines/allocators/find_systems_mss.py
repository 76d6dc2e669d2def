"""Find_Systems with the measure of fragmentation of the study of 2019 (Find_Systems + MSS)."""

from __future__ import annotations

from dataclasses import dataclass

from simulation.machines.allocator_declaration import allocator
from simulation.machines.boxes.policy import BoxPolicy, Choice


@dataclass(frozen=True, slots=True)
class FindSystemsMss(BoxPolicy):
    """Of all variants the one after which phi is largest; the first in the order of `find-systems` among equals.

    A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, sections 2.1 and 2.2: phi is the number of
    nodes of the machine times the size of the largest maximal box, plus how many maximal boxes are that large.

    Attributes:
        exact: count all maximal boxes; without, those that the published greedy search finds.
    """

    exact: bool = False

    @property
    def choice(self) -> Choice:
        """Largest phi, greedy or exact."""
        return Choice.PHI_EXACT if self.exact else Choice.PHI_GREEDY


ALLOCATOR = allocator(
    FindSystemsMss,
    about="Of all variants the one after which the largest free boxes are left (phi; default of angara-torus).",
)
