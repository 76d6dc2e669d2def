"""What a scheduler sees and what it answers.

A scheduler decides which waiting jobs start now. It sees the site: the machine (asked only through `place`), what runs
there, and the advance reservations granted. It never learns which machine it serves, how long a job will really run,
or what arrives next. Times are integers of microseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from simulation.machines.interface import JobRequest, Machine, Placement, Reallocation
from simulation.malleable.malleability import Malleability


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is submitted.

    Attributes:
        job_number: the log's number; unique in a run.
        submit_time: microseconds.
        run_time: how long it will run if nobody ends it, in microseconds; schedulers do not look at it.
        requested_time: run time it asks for, in microseconds.
        request: what it asks of the machine.
        malleability: how it may change its size; None = it is rigid.
        kind: jobs of one kind fit or do not fit the machine together (`JobRequest.kind`).
        planned_length: time to plan for, in microseconds: the request, at least one tick.
    """

    job_number: int
    submit_time: int
    run_time: int
    requested_time: int
    request: JobRequest
    malleability: Malleability | None = None
    kind: Hashable = field(init=False, compare=False, repr=False)
    planned_length: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert self.request.job_id == self.job_number, "machines know a job by its number"
        object.__setattr__(self, "kind", self.request.kind)
        object.__setattr__(self, "planned_length", max(self.requested_time, 1))


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a run during which the job held one placement.

    Attributes:
        begin: microseconds.
        end: microseconds.
        placement: where it ran.
    """

    begin: int
    end: int
    placement: Placement


@dataclass(frozen=True, slots=True)
class SizeChanges:
    """What a running job's changes of size have come to.

    Attributes:
        segments: all that are over; the present one begins where the last of them ends.
        resumes: when the job goes on computing after the last change, microseconds; it may lie ahead.
        run_left: how long it runs on from then at its present size, microseconds; schedulers do not look at it.
        planned_left: the same of its request, at least one tick.
    """

    segments: tuple[Segment, ...]
    resumes: int
    run_left: int
    planned_left: int


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds its placement.

    Attributes:
        job: the job.
        placement: where it runs.
        start_time: microseconds.
        changes: None where it has had one size only.
    """

    job: Job
    placement: Placement
    start_time: int
    changes: SizeChanges | None = None

    @property
    def planned_from(self) -> int:
        """From when `planned_length` counts, microseconds."""
        return self.start_time if self.changes is None else self.changes.resumes

    @property
    def planned_length(self) -> int:
        """Time to plan for, at the present size, in microseconds."""
        return self.job.planned_length if self.changes is None else self.changes.planned_left

    @property
    def planned_end(self) -> int:
        """When its request is over, microseconds."""
        return self.planned_from + self.planned_length

    def expected_end(self, now: int) -> int:
        """When it is expected to end, always after `now`.

        That is its start plus its request; where it outruns the request, the expected run time is doubled until the
        end lies in the future again. After a change of size both count from when it went on.
        """
        begin, length = self.planned_from, self.planned_length
        while begin + length <= now:
            length *= 2
        return begin + length


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

    def resize(self, request: JobRequest) -> Reallocation | None:
        """Give a running malleable job another size now; None where it cannot have it, and nothing has changed."""
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


@runtime_checkable
class WithdrawingScheduler(Protocol):
    """A scheduler that lets a job out of its queue which has not started."""

    def withdraw(self, job: Job) -> None:
        """A waiting job leaves the queue."""
        ...
