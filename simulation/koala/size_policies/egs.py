"""EGS: all grow, or shrink, by the same number."""

from __future__ import annotations

from collections.abc import Sequence

from simulation.koala.policy import Asking, Message, RunningMalleable, SizePolicy


class Egs(SizePolicy):
    """Equi-Grow & Shrink: all jobs grow, or shrink, by the same number of processors.

    Section 5.3.2, figure 5 of the paper. Two faults of the printed SHRINK are mended after the text. It sends
    "shrinkValue + malus", where the job's share is meant. It gives the malus where "i >= growRemainder" in a list by
    decreasing start (the oldest jobs, by a variable of the other procedure), though the text takes it from the most
    recently started ones. Processors that a job refuses are not offered to another.
    """

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Offer equal shares; the remainder goes one each to the least recently started."""
        yield from _shares(jobs, value, 1)

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Ask for equal shares; the remainder is taken one each from the most recently started."""
        yield from _shares(tuple(reversed(jobs)), value, -1)


def _shares(jobs: Sequence[RunningMalleable], value: int, sign: int) -> Asking:
    if not jobs:
        return
    share, rest = divmod(value, len(jobs))
    for index, job in enumerate(jobs):
        processors = share + (index < rest)
        if processors:
            yield Message(job.number, sign * processors)


POLICY = Egs()
