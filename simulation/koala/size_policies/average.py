"""Processors go one by one to the job with the least of its range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from simulation.koala.sizing import Asking, Message, RunningMalleable, SizePolicy
from simulation.malleable.sizes import Sizes


def share_of_range(size: int, sizes: Sizes) -> float:
    """Return where a size lies between minimum and maximum, from 0 to 1."""
    span = sizes.maximum - sizes.minimum
    return (size - sizes.minimum) / span if span else 1.0


class Average(SizePolicy):
    """A processor goes to the job with the least of its range between minimum and maximum, and comes from the most.

    What running jobs are asked for is the first waiting job's, once all of it is released (P. Zojer, J. Posner and
    T. Oezden, arXiv 2602.17318, 2026).
    """

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Offer each job its whole share once; among equals, the first started come first."""
        given: Counter[int] = Counter()
        for _ in range(value):
            able = [job for job in jobs if given[job.number] < job.can_take]
            if not able:
                break
            least = min(able, key=lambda job: share_of_range(job.size + given[job.number], job.sizes))
            given[least.number] += 1
        for number, processors in given.items():
            yield Message(number, processors)

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Ask each job once for its whole share; among equals, the last started come first."""
        taken: Counter[int] = Counter()
        for _ in range(value):
            able = [job for job in reversed(jobs) if taken[job.number] < job.can_give]
            if not able:
                break
            most = max(able, key=lambda job: share_of_range(job.size - taken[job.number], job.sizes))
            taken[most.number] += 1
        for number, processors in taken.items():
            yield Message(number, -processors)


POLICY = Average()
