"""Folding: sizes double and halve."""

from __future__ import annotations

from collections.abc import Sequence

from simulation.koala.sizing import Asking, Message, RunningMalleable, SizePolicy


class Folding(SizePolicy):
    """The smallest job doubles, the largest one is halved (C. McCann and J. Zahorjan, SIGMETRICS 1994)."""

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Double the smallest job while processors suffice."""
        for job in sorted(jobs, key=lambda one: (one.size, one.started)):
            if job.size <= value and 2 * job.size <= job.sizes.maximum:
                value -= yield Message(job.number, job.size)

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Halve the largest job."""
        for job in sorted(jobs, key=lambda one: (-one.size, -one.started)):
            half = min(job.size // 2, job.can_give)
            if half > 0:
                value -= yield Message(job.number, -half)
            if value <= 0:
                return


POLICY = Folding()
