"""FPSMA: favour the malleable applications that started first."""

from __future__ import annotations

from collections.abc import Sequence

from simulation.koala.policy import Asking, Message, RunningMalleable, SizePolicy


class Fpsma(SizePolicy):
    """Favour Previously Started Malleable Applications: the first started grow first, the last started shrink first.

    Section 5.3.1, figure 4 of the paper. GROW is lost in our copy but described
    line by line; SHRINK is printed. Its end, "shrinkValue == 0", is read as "not above 0": an application may
    give back more than it was asked for (FT, the next power of two below).
    """

    waits = True

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Offer all that is left to one job after the other."""
        for job in jobs:
            value -= yield Message(job.number, value)
            if value <= 0:
                return

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Ask one job after the other for all that is still wanted."""
        for job in reversed(jobs):
            value -= yield Message(job.number, -value)
            if value <= 0:
                return


POLICY = Fpsma()
