"""PWA."""

from __future__ import annotations

from simulation.koala.approach import Approach, JobManagement


class PrecedenceToWaiting(Approach):
    """Precedence to waiting applications (PWA): running ones shrink for the next job that cannot be placed.

    They grow only where their minimums would not leave enough for it, or no job waits.
    """

    def manage(self, management: JobManagement) -> None:
        waiting = management.scan()
        if waiting is None or not management.shrink_for(waiting):
            management.grow()


POLICY = PrecedenceToWaiting()
