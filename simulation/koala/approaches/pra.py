"""PRA."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from simulation.koala.policy import Approach

if TYPE_CHECKING:
    from simulation.koala.scheduler import Koala


class PrecedenceToRunning(Approach):
    """Precedence to running applications (PRA): they grow first. No job shrinks.

    A waiting job is placed in a cluster only when no job there can still be grown, that is when the size policy, asked
    again, would have nothing accepted.
    """

    def manage(self, koala: Koala) -> None:
        koala.grow()
        koala.scan()

    def closed(self, koala: Koala) -> Iterable[str]:
        return [name for name in koala.clusters if koala.manager.can_still_grow(name)]


POLICY = PrecedenceToRunning()
