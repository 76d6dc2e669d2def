"""KOALA's policies of sizes, and some that they are compared with.

A policy is two generators that yield messages to running malleable jobs of one cluster and are sent how many processors
each job accepts: so a policy reads as the paper's pseudo-code does. It never looks at speed-up.

Policies that the paper's are to be seen beside:

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
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from simulation.malleable.sizes import Sizes


@dataclass(frozen=True, slots=True)
class RunningMalleable:
    """A running malleable job, as a policy sees it.

    Attributes:
        number: of the job.
        started: microseconds.
        size: processors that it has, in all clusters.
        sizes: that it may have.
    """

    number: int
    started: int
    size: int
    sizes: Sizes

    @property
    def can_give(self) -> int:
        """Processors above its smallest size."""
        return max(0, self.size - self.sizes.least)

    @property
    def can_take(self) -> int:
        """Processors below its largest size."""
        return max(0, self.sizes.maximum - self.size)


@dataclass(frozen=True, slots=True)
class Message:
    """An offer of processors to a job, or, below 0, a request for processors."""

    job: int
    processors: int


Asking = Generator[Message, int, None]
"""Yields messages and is sent how many processors were accepted, in the message's direction, never below 0."""


class SizePolicy(Protocol):
    """Says which jobs grow and which shrink."""

    @property
    def waits(self) -> bool:
        """Whether a shrinking job's processors are waited for before the next job is asked."""
        ...

    @property
    def rebalances(self) -> bool:
        """Whether growing is worth a try though nothing is idle, because it shrinks others as well."""
        ...

    @property
    def steals(self) -> bool:
        """Whether running jobs shrink for all waiting jobs at once, with processors given out as they are released."""
        ...

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Give out processors that are idle.

        Args:
            jobs: that run in the cluster and are in no change, in the order of their starts.
            value: how many processors.
        """
        ...

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Get processors back; arguments as of `grow`."""
        ...


class Fpsma:
    """Favour Previously Started Malleable Applications (FPSMA): section 5.3.1, figure 4 of the paper.

    The earliest started grow first, the latest started shrink first. GROW is lost in our copy but described
    line by line; SHRINK is printed. Its end, "shrinkValue == 0", is read as "not above 0": an application may
    give back more than it was asked for (FT, the next power of two below).
    """

    waits: Final = True
    rebalances: Final = False
    steals: Final = False

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


class Egs:
    """Equi-Grow & Shrink (EGS): section 5.3.2, figure 5 of the paper.

    All jobs grow, or shrink, by the same number. Two faults of the printed SHRINK are mended after the text. It sends
    "shrinkValue + malus", where the job's share is meant. It gives the malus where "i >= growRemainder" in a list by
    decreasing start (the oldest jobs, by a variable of the other procedure), though the text takes it from the most
    recently started ones. Processors that a job refuses are not offered to another.
    """

    waits: Final = False
    rebalances: Final = False
    steals: Final = False

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


class NoChange:
    """Sizes stay."""

    waits: Final = False
    rebalances: Final = False
    steals: Final = False

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Offer nothing."""
        yield from ()

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Ask for nothing."""
        yield from ()


class Equipartition:
    """All malleable jobs of a cluster have the same size, as far as they can."""

    waits: Final = False
    rebalances: Final = True
    steals: Final = False

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


class Folding:
    """Sizes double and halve."""

    waits: Final = False
    rebalances: Final = False
    steals: Final = False

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


class ByPriority:
    """One job after the other in an order of the present sizes.

    Args:
        priority: the smallest grows first, the largest shrinks first.
        preferred_first: no job grows above its preferred size while another is below its own.
    """

    waits: Final = False
    rebalances: Final = False
    steals: Final = False

    def __init__(self, priority: Callable[[RunningMalleable], float], *, preferred_first: bool = False) -> None:
        self._priority = priority
        self._preferred_first = preferred_first

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Offer each job what it lacks, in the order of the priorities."""
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
        """Ask each job for the processors still wanted, the largest priority first."""
        for job in sorted(jobs, key=self._priority, reverse=True):
            if job.can_give and value > 0:
                value -= yield Message(job.number, -min(job.can_give, value))


def above_minimum(job: RunningMalleable) -> float:
    """Return the processors above the minimum."""
    return job.size - job.sizes.minimum


def above_preferred(job: RunningMalleable) -> float:
    """Return the processors above the preferred size."""
    return job.size - job.sizes.preferred


def share_of_range(size: int, sizes: Sizes) -> float:
    """Return where a size lies between minimum and maximum, from 0 to 1."""
    span = sizes.maximum - sizes.minimum
    return (size - sizes.minimum) / span if span else 1.0


class Levelled:
    """Processors go one by one to the job with the least of its range, and come from the job with the most.

    Args:
        steals: released processors go to the first waiting job for which they suffice.
    """

    waits: Final = False
    rebalances: Final = False

    def __init__(self, *, steals: bool) -> None:
        self.steals: Final = steals

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


SIZE_POLICIES: Final[dict[str, SizePolicy]] = {
    "FPSMA": Fpsma(),
    "EGS": Egs(),
    "none": NoChange(),
    "equipartition": Equipartition(),
    "folding": Folding(),
    "minimum": ByPriority(above_minimum),
    "preferred": ByPriority(above_preferred, preferred_first=True),
    "average": Levelled(steals=False),
    "stealing": Levelled(steals=True),
}
"""The paper's first."""
