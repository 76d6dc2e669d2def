"""All jobs keep their sizes."""

from __future__ import annotations

from collections.abc import Sequence

from simulation.koala.policy import Asking, RunningMalleable, SizePolicy


class NoChange(SizePolicy):
    """No job grows or shrinks, so all stay at the size that they began with."""

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Offer nothing."""
        yield from ()

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Ask for nothing."""
        yield from ()


POLICY = NoChange()
