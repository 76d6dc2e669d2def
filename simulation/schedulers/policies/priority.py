"""A queue with priorities, taken from a number that the log has for each job.

The Standard Workload Format has no priority; sites express it by queues, groups or users. Waiting may add to it, as in
Slurm's multifactor plug-in: all jobs gain alike, so the order of two waiting jobs never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from ramp.model.instant import SECOND
from ramp.options import Bounds
from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job
from simulation.schedulers.ordered import OrderedQueue, OrderOptions

_HOUR: Final = 3600 * SECOND


@dataclass(frozen=True, slots=True)
class PriorityOptions(OrderOptions):
    """Options of the scheduler.

    Attributes:
        by: number of the job: queue, group or user of the log (fields 15, 13 and 12), or the requested units.
        priorities: priority of each number, 0 of the others; without it the number is the priority. The highest is
            first.
        points_per_hour: priority that a job gains for each hour of waiting.
    """

    by: Literal["queue", "group", "user", "size"] = "queue"
    priorities: Mapping[str, float] = field(default_factory=dict)
    points_per_hour: Annotated[float, Bounds(0)] = 0.0


class PriorityQueue(OrderedQueue):
    """The highest priority first, taken from the log's queues, groups or users."""

    def __init__(self, options: PriorityOptions) -> None:
        super().__init__(options)
        self._options = options

    def key(self, job: Job) -> float:
        options = self._options
        number = job.request.size if options.by == "size" else getattr(job, options.by)
        priority = options.priorities.get(str(number), 0.0) if options.priorities else number
        return options.points_per_hour * (job.submit_time / _HOUR) - priority


SCHEDULER = scheduler(PriorityQueue, options=PriorityOptions)
