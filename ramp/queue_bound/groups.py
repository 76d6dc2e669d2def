"""Groups of jobs with similar waits."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from ramp.queue_bound.predictor import QueuedJob

SIZE_CLASSES: Final = (4, 16, 64, 256, 1024, 4096)
"""Largest size of each class but the last, in processors.

Source: J. Brevik, D. Nurmi and R. Wolski, "Predicting bounds on queuing delay for batch-scheduled parallel machines",
PPoPP 2006, whose tables have the classes 1-4, 5-16, 17-64 and above; the last is divided further in the same way, for
machines of today."""

LENGTH_CLASSES: Final = tuple(seconds * 1_000_000 for seconds in (900, 3_600, 14_400, 43_200))
"""Longest requested time of each class but the last, in microseconds: a quarter, 1, 4 and 12 hours."""


def class_of(value: int, classes: tuple[int, ...]) -> int:
    """Return the number of a value's class."""
    return sum(value > top for top in classes)


def octave(planned: int | None) -> int:
    """Return the octave of a planned wait in microseconds: 0 without a wait, 1 below two minutes, 2 below four."""
    assert planned is not None, "planned waits need a plan"
    return max(planned // 60_000_000, 1).bit_length() if planned else 0


class Groups(StrEnum):
    """Properties that tell jobs apart."""

    ONE = "one"
    """All jobs are alike."""
    QUEUE = "queue"
    SIZE = "size"
    QUEUE_SIZE = "queue-size"
    SIZE_LENGTH = "size-length"
    """Size and requested time."""
    PLAN_SIZE_LENGTH = "plan-size-length"
    """These, and the octave of the planned wait, for schedulers that differ from the plan's rule."""

    def of(self, job: QueuedJob) -> tuple[str | int, ...]:
        """Return the key of the group that a job belongs to."""
        return tuple(part(job) for part in _PARTS[self])


_PARTS: Final[dict[Groups, tuple[Callable[[QueuedJob], str | int], ...]]] = {
    Groups.ONE: (),
    Groups.QUEUE: (lambda job: job.queue,),
    Groups.SIZE: (lambda job: class_of(job.size, SIZE_CLASSES),),
    Groups.QUEUE_SIZE: (lambda job: job.queue, lambda job: class_of(job.size, SIZE_CLASSES)),
    Groups.SIZE_LENGTH: (
        lambda job: class_of(job.size, SIZE_CLASSES),
        lambda job: class_of(job.length, LENGTH_CLASSES),
    ),
    Groups.PLAN_SIZE_LENGTH: (
        lambda job: octave(job.planned),
        lambda job: class_of(job.size, SIZE_CLASSES),
        lambda job: class_of(job.length, LENGTH_CLASSES),
    ),
}
