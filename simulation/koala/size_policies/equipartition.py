"""Equipartition: equal sizes, not equal changes."""

from __future__ import annotations

from collections.abc import Sequence

from simulation.koala.sizing import Asking, Message, RunningMalleable, SizePolicy


class Equipartition(SizePolicy):
    """All malleable jobs of a cluster have equal sizes as far as they can; a round may both shrink and grow.

    C. McCann and J. Zahorjan, SIGMETRICS 1994; section 5.3.2 of the KOALA paper names the difference to EGS.
    """

    rebalances = True

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Take from those above their share, and offer idle processors to those below it."""
        targets = equal_sizes(jobs, sum(job.size for job in jobs) + value)
        for job in jobs:
            if job.size > targets[job.number]:
                yield Message(job.number, targets[job.number] - job.size)
        for job in jobs:
            wanted = min(targets[job.number] - job.size, value)
            if wanted > 0:
                value -= yield Message(job.number, wanted)

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Shrink all to equal shares of the rest."""
        targets = equal_sizes(jobs, sum(job.size for job in jobs) - value)
        for job in jobs:
            if job.size > targets[job.number]:
                yield Message(job.number, targets[job.number] - job.size)


def equal_sizes(jobs: Sequence[RunningMalleable], processors: int) -> dict[int, int]:
    """Share out processors as equally as minimum and maximum allow; the first jobs get the remainder.

    An application refuses sizes that it cannot use when it is asked.
    """
    sizes = {job.number: job.sizes.least for job in jobs}
    left = processors - sum(sizes.values())
    growing = list(jobs)
    while left > 0 and growing:
        least = min(sizes[job.number] for job in growing)
        for job in growing:
            if sizes[job.number] == least and left > 0:
                sizes[job.number] += 1
                left -= 1
        growing = [job for job in growing if sizes[job.number] < job.sizes.maximum]
    return sizes


POLICY = Equipartition()
