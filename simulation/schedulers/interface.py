"""What a scheduler sees and what it answers.

A scheduler decides which waiting jobs start now. It sees the site: the machine (asked only through `place`), what runs
there, and the advance reservations granted. It never learns which machine it serves, how long a job will really run,
or what arrives next. Times are integers of microseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from simulation.machines.interface import JobRequest, Machine, Placement


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is submitted.

    Attributes:
        job_number: the log's number; unique in a run.
        submit_time: microseconds.
        run_time: how long it will run if nobody ends it, in microseconds; schedulers do not look at it.
        requested_time: run time it asks for, in microseconds.
        request: what it asks of the machine.
        kind: jobs of one kind fit or do not fit the machine together (`JobRequest.kind`).
        planned_length: time to plan for, in microseconds: the request, at least one tick.
    """

    job_number: int
    submit_time: int
    run_time: int
    requested_time: int
    request: JobRequest
    kind: Hashable = field(init=False, compare=False, repr=False)
    planned_length: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert self.request.job_id == self.job_number, "machines know a job by its number"
        object.__setattr__(self, "kind", self.request.kind)
        object.__setattr__(self, "planned_length", max(self.requested_time, 1))


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds its placement.

    Attributes:
        job: the job.
        placement: where it runs.
        start_time: microseconds.
    """

    job: Job
    placement: Placement
    start_time: int

    def expected_end(self, now: int) -> int:
        """When it is expected to end, always after `now`.

        That is its start plus its request; where it outruns the request, the expected run time is doubled until the
        end lies in the future again.
        """
        length = self.job.planned_length
        while self.start_time + length <= now:
            length *= 2
        return self.start_time + length


@dataclass(frozen=True, slots=True)
class AdvanceReservation:
    """Units and links set aside for a time to come.

    Attributes:
        number: identifies the reservation; negative, so that it never equals a job's number.
        begin_time: microseconds.
        end_time: microseconds.
        placement: what is set aside.
    """

    number: int
    begin_time: int
    end_time: int
    placement: Placement


class Site(Protocol):
    """What a scheduler sees of the machine it serves."""

    @property
    def now(self) -> int:
        """Virtual time, microseconds."""
        ...

    @property
    def machine(self) -> Machine:
        """The machine, with everything allocated that runs now."""
        ...

    @property
    def running(self) -> Mapping[int, RunningJob]:
        """Running jobs by number."""
        ...

    @property
    def reservations(self) -> Sequence[AdvanceReservation]:
        """Granted reservations whose end has not come, begun or not."""
        ...

    def place(self, job: Job) -> Placement | None:
        """Where the job could start now without touching a reservation during its requested time."""
        ...

    def start(self, job: Job, placement: Placement) -> None:
        """Start a job now."""
        ...


class Scheduler(Protocol):
    """A queue and a rule for it."""

    def submit(self, job: Job) -> None:
        """A job joins the queue."""
        ...

    def released(self) -> None:
        """Units or links became free, or reservations changed: what did not fit may fit now."""
        ...

    def waiting(self) -> Iterable[Job]:
        """The queue in its order."""
        ...

    def decide(self, site: Site) -> int | None:
        """Start what should start now, by `site.start`.

        Called once after all events of a point in time.

        Returns:
            A time in microseconds at which to be asked again even if nothing happens, or None.
        """
        ...
