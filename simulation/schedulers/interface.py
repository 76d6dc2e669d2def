"""Interface between a scheduler and its site.

A scheduler decides which waiting jobs start now. It sees the site: the machine (only through `place`), the running
jobs and the granted advance reservations. It does not know which machine it serves, how long a job will really run,
or which job arrives next. Times are integers in microseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from simulation.machines.interface import JobRequest, Machine, Placement, Reallocation
from simulation.malleable.malleability import Malleability


@dataclass(frozen=True, slots=True)
class Job:
    """A submitted job.

    Attributes:
        job_number: the log's number; unique in a run.
        submit_time: microseconds.
        run_time: its full run time in microseconds; schedulers must not use it.
        requested_time: requested run time in microseconds.
        request: its request to the machine.
        malleability: its possible sizes; None = rigid.
        user: its user's number in the log; -1 = unknown, as of the next two.
        group: its group's number.
        queue: number of the queue it was submitted to.
        kind: jobs of one kind fit or do not fit the machine together (`JobRequest.kind`).
        planned_length: time to plan for, in microseconds: the request, at least one tick.
    """

    job_number: int
    submit_time: int
    run_time: int
    requested_time: int
    request: JobRequest
    malleability: Malleability | None = None
    user: int = -1
    group: int = -1
    queue: int = -1
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
    """Effect of a running job's changes of size.

    Attributes:
        segments: all past ones; the present segment begins where the last one ends.
        resumes: when the job continues after the last change, microseconds; possibly in the future.
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
        spared: time by which its run is shorter than submitted, as its block need not boot at length, microseconds.
    """

    job: Job
    placement: Placement
    start_time: int
    changes: SizeChanges | None = None
    spared: int = 0

    @property
    def planned_from(self) -> int:
        """From when `planned_length` counts, microseconds."""
        return self.start_time if self.changes is None else self.changes.resumes

    @property
    def planned_length(self) -> int:
        """Time to plan for, at the present size, in microseconds."""
        return max(self.job.planned_length - self.spared, 1) if self.changes is None else self.changes.planned_left

    @property
    def planned_end(self) -> int:
        """End of its requested time, microseconds."""
        return self.planned_from + self.planned_length

    def expected_end(self, now: int) -> int:
        """Return its expected end, always after `now`.

        That is its start plus its request; where it outruns the request, the expected run time is doubled until the
        end lies in the future again. After a change of size both count from when it went on.
        """
        begin, length = self.planned_from, self.planned_length
        while begin + length <= now:
            length *= 2
        return begin + length


@dataclass(frozen=True, slots=True)
class AdvanceReservation:
    """Units and links reserved for a period.

    Attributes:
        number: identifies the reservation; negative, so that it never equals a job's number.
        begin_time: microseconds.
        end_time: microseconds.
        placement: the reserved units and links.
    """

    number: int
    begin_time: int
    end_time: int
    placement: Placement


class Site(Protocol):
    """A scheduler's view of its machine."""

    @property
    def now(self) -> int:
        """Virtual time, microseconds."""
        ...

    @property
    def machine(self) -> Machine:
        """The machine with the running jobs allocated."""
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
        """Return a place where the job can start now without touching a reservation during its requested time."""
        ...

    def start(self, job: Job, placement: Placement) -> None:
        """Start a job now."""
        ...

    def resize(self, request: JobRequest) -> Reallocation | None:
        """Change the size of a running malleable job now; None = not possible, nothing has changed."""
        ...


class Scheduler(Protocol):
    """A queue with a rule that starts its jobs."""

    def submit(self, job: Job) -> None:
        """Add a job to the queue."""
        ...

    def released(self) -> None:
        """Note that units or links became free, or reservations changed: more jobs may fit now."""
        ...

    def waiting(self) -> Iterable[Job]:
        """Return the queue in its order."""
        ...

    def decide(self, site: Site) -> int | None:
        """Start the jobs that should start now, with `site.start`.

        Called once after all events of a point in time.

        Returns:
            Time in microseconds of the next call even if nothing happens, or None.
        """
        ...


@runtime_checkable
class WithdrawingScheduler(Protocol):
    """A scheduler that can remove a waiting job from its queue."""

    def withdraw(self, job: Job) -> None:
        """Remove a waiting job from the queue."""
        ...
