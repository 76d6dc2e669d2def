"""Equi-Grow & Shrink (EGS): section 5.3.2, figure 5 of the paper.

Two faults of the printed SHRINK are mended after the text: it sends "shrinkValue + malus" (the job's share is meant),
and gives the malus where "i >= growRemainder" in a list by decreasing start (the oldest jobs, by a variable of the
other procedure), though the text takes it from the most recently started ones. What a job does not accept is offered
to nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simulation.koala.size_policies.interface import Asking, Message, RunningMalleable


class Egs:
    """Everybody grows, or shrinks, by the same."""

    waits: Final = False
    rebalances: Final = False
    steals: Final = False

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Equal shares; the remainder goes one each to the least recently started."""
        yield from _shares(jobs, value, 1)

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Equal shares; the remainder is taken one each from the most recently started."""
        yield from _shares(tuple(reversed(jobs)), value, -1)


def _shares(jobs: Sequence[RunningMalleable], value: int, sign: int) -> Asking:
    if not jobs:
        return
    share, rest = divmod(value, len(jobs))
    for index, job in enumerate(jobs):
        processors = share + (index < rest)
        if processors:
            yield Message(job.number, sign * processors)
