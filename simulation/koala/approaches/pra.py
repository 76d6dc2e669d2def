"""PRA."""

from __future__ import annotations

from collections.abc import Iterable

from simulation.koala.approach import Approach, JobManagement


class PrecedenceToRunning(Approach):
    """Precedence to running applications (PRA): they grow first. No job shrinks.

    A waiting job is placed in a cluster only when no job there can still be grown, that is when the size policy, asked
    again, would have nothing accepted.
    """

    def manage(self, management: JobManagement) -> None:
        management.grow()
        management.scan()

    def closed(self, management: JobManagement) -> Iterable[str]:
        return [name for name in management.clusters if management.can_still_grow(name)]


POLICY = PrecedenceToRunning()
