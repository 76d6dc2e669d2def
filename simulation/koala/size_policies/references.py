"""Policies that the paper's are to be seen beside.

- none: nobody grows, so all stay at the size that they began with.
- equipartition: all processors of the malleable jobs, not only the change, are shared equally; a round may both shrink
  and grow (C. McCann and J. Zahorjan, SIGMETRICS 1994; the paper's section 5.3.2 names the difference).
- folding: sizes double and halve; the smallest job doubles, the largest one halves (the same source).
- minimum, preferred: whom the strategies of P. Zojer, J. Posner and T. Oezden, arXiv 2602.17318, 2026, let grow and
  shrink first: by the processors above the minimum; up to the preferred size before anybody gets more.
- average, stealing: the same study's other two. Each processor goes to the job that has the least of its range between
  minimum and maximum, and comes from the one that has the most, one by one. Under `average` what running jobs are asked
  for is the first waiting job's, once all of it is released. Under `stealing` running jobs shrink for every waiting job
  for which that is enough, and what is released is the first's in the queue for which it suffices, whomever it was
  asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from simulation.koala.size_policies.interface import Asking, Message, RunningMalleable
from simulation.malleable.sizes import Sizes


class NoChange:
    """Sizes stay."""

    waits: Final = False
    rebalances: Final = False
    steals: Final = False

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Nobody is offered anything."""
        yield from ()

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Nobody is asked for anything."""
        yield from ()


class Equipartition:
    """All malleable jobs of a cluster have the same size, as far as they can."""

    waits: Final = False
    rebalances: Final = True
    steals: Final = False

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Those above their share give, those below it take what is free already."""
        targets = equal_sizes(jobs, sum(job.size for job in jobs) + value)
        for job in jobs:
            if job.size > targets[job.number]:
                yield Message(job.number, targets[job.number] - job.size)
        for job in jobs:
            wanted = min(targets[job.number] - job.size, value)
            if wanted > 0:
                value -= yield Message(job.number, wanted)

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """All go down to equal shares of what is left."""
        targets = equal_sizes(jobs, sum(job.size for job in jobs) - value)
        for job in jobs:
            if job.size > targets[job.number]:
                yield Message(job.number, targets[job.number] - job.size)


def equal_sizes(jobs: Sequence[RunningMalleable], processors: int) -> dict[int, int]:
    """Sizes as equal as minimum and maximum allow, of so many processors in all; the first jobs get what is over.

    Sizes that an application cannot use are its own matter: it says so when it is asked.
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


class Folding:
    """Sizes double and halve."""

    waits: Final = False
    rebalances: Final = False
    steals: Final = False

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """The smallest job doubles while there are processors for it."""
        for job in sorted(jobs, key=lambda one: (one.size, one.started)):
            if job.size <= value and 2 * job.size <= job.sizes.maximum:
                value -= yield Message(job.number, job.size)

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """The largest job gives half."""
        for job in sorted(jobs, key=lambda one: (-one.size, -one.started)):
            half = min(job.size // 2, job.can_give)
            if half > 0:
                value -= yield Message(job.number, -half)
            if value <= 0:
                return


class ByPriority:
    """One job after the other in an order of the present sizes.

    Args:
        priority: the smallest grows first, the largest shrinks first.
        preferred_first: nobody grows above its preferred size while another is below its own.
    """

    waits: Final = False
    rebalances: Final = False
    steals: Final = False

    def __init__(self, priority: Callable[[RunningMalleable], float], *, preferred_first: bool = False) -> None:
        self._priority = priority
        self._preferred_first = preferred_first

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Each is offered what it lacks, in the order of the priorities."""
        ordered = sorted(jobs, key=self._priority)
        taken = {job.number: 0 for job in jobs}
        for preferred in (True, False) if self._preferred_first else (False,):
            for job in ordered:
                limit = job.sizes.preferred if preferred else job.sizes.maximum
                wanted = min(limit - job.size, value)
                if wanted > 0 and not taken[job.number]:
                    taken[job.number] = yield Message(job.number, wanted)
                    value -= taken[job.number]

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Each is asked for what is still wanted, the largest priority first."""
        for job in sorted(jobs, key=self._priority, reverse=True):
            if job.can_give and value > 0:
                value -= yield Message(job.number, -min(job.can_give, value))


def above_minimum(job: RunningMalleable) -> float:
    """Processors above the minimum."""
    return job.size - job.sizes.minimum


def above_preferred(job: RunningMalleable) -> float:
    """Processors above the preferred size."""
    return job.size - job.sizes.preferred


def share_of_range(size: int, sizes: Sizes) -> float:
    """Where a size lies between minimum and maximum, from 0 to 1."""
    span = sizes.maximum - sizes.minimum
    return (size - sizes.minimum) / span if span else 1.0


class Levelled:
    """Processors go one by one to who has the least of its range, and come from who has the most.

    Args:
        steals: what is released is the first waiting job's for which it suffices.
    """

    waits: Final = False
    rebalances: Final = False

    def __init__(self, *, steals: bool) -> None:
        self.steals: Final = steals

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Each is offered once what it comes to; the first started are the first of equals."""
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
        """Each is asked once for what it comes to; the last started are the first of equals."""
        taken: Counter[int] = Counter()
        for _ in range(value):
            able = [job for job in reversed(jobs) if taken[job.number] < job.can_give]
            if not able:
                break
            most = max(able, key=lambda job: share_of_range(job.size - taken[job.number], job.sizes))
            taken[most.number] += 1
        for number, processors in taken.items():
            yield Message(number, -processors)
