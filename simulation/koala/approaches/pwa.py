"""PWA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulation.koala.policy import Approach

if TYPE_CHECKING:
    from simulation.koala.scheduler import Koala


class PrecedenceToWaiting(Approach):
    """Precedence to waiting applications (PWA): running ones shrink for the next job that cannot be placed.

    They grow only where their minimums would not leave enough for it, or no job waits.
    """

    def manage(self, koala: Koala) -> None:
        waiting = koala.scan()
        if waiting is None or not koala.shrink_for(waiting):
            koala.grow()


POLICY = PrecedenceToWaiting()
