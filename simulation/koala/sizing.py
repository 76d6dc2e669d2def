"""What a size policy is: it says which of a cluster's running malleable jobs grow and which shrink.

A policy is two generators that yield messages to jobs and are sent how many processors each job accepts: so a policy
reads as the paper's pseudo-code does. It never looks at speed-up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from simulation.koala.policy import Policy
from simulation.malleable.malleability import Sizes


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


class SizePolicy(Policy, ABC):
    """Says which jobs grow and which shrink."""

    waits: bool = False
    """A shrinking job's processors are waited for before the next job is asked."""
    rebalances: bool = False
    """Growing is worth a try though nothing is idle, because it shrinks others as well."""
    steals: bool = False
    """Running jobs shrink for all waiting jobs at once, and processors are given out as they are released."""

    @abstractmethod
    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Give out processors that are idle.

        Args:
            jobs: that run in the cluster and are in no change, in the order of their starts.
            value: how many processors.
        """

    @abstractmethod
    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Get processors back; arguments as of `grow`."""
