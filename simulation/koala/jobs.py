"""Jobs as they are submitted to KOALA, and what becomes of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from simulation.malleable.malleability import Malleability


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a job that runs in one cluster.

    Attributes:
        processors: that it needs at least.
        files: names of its input files.
    """

    processors: int
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KoalaJob:
    """A job as it is submitted.

    Attributes:
        number: unique.
        submit_time: microseconds.
        application: its name, for tables.
        run_time: microseconds with `reference` processors.
        reference: the size at which its run time is stated.
        malleability: sizes, speed-up and cost of a change; a rigid job's sizes are all the same.
        components: at least one; their processors come to the smallest size that the job starts with.
    """

    number: int
    submit_time: int
    application: str
    run_time: int
    reference: int
    malleability: Malleability
    components: tuple[Component, ...]

    @property
    def malleable(self) -> bool:
        """Whether its size may change while it runs: it may have several."""
        return self.malleability.sizes.minimum < self.malleability.sizes.maximum

    @property
    def least(self) -> int:
        """Processors that it needs to start."""
        return sum(component.processors for component in self.components)


class Fate(enum.StrEnum):
    """How a job ended."""

    COMPLETED = "completed"
    CRASHED = "crashed"
    SUBMISSION_FAILED = "submission failed"
    """It was tried more often than the threshold allows."""


@dataclass(slots=True, eq=False)
class Record:
    """What became of a job; times in microseconds.

    Attributes:
        job: as submitted.
        started: None where it never did.
        ended: None while it has not.
        fate: None while it has not ended.
        sizes: (time, processors that it computes with), from its start on, one entry a change.
        tries: failed placements.
    """

    job: KoalaJob
    started: int | None = None
    ended: int | None = None
    fate: Fate | None = None
    sizes: list[tuple[int, int]] = field(default_factory=list)
    tries: int = 0

    @property
    def mean_size(self) -> float:
        """Processors in the mean over its execution."""
        assert self.started is not None, "asked of jobs that ran"
        assert self.ended is not None, "and are over"
        if self.ended == self.started:
            return float(self.sizes[0][1])
        moments = [*(time for time, _ in self.sizes[1:]), self.ended]
        area = sum(size * (until - since) for (since, size), until in zip(self.sizes, moments, strict=True))
        return area / (self.ended - self.started)

    @property
    def largest_size(self) -> int:
        """The most processors that it computed with."""
        return max(size for _, size in self.sizes)
