"""Discrete-event simulation of one machine and its queue, with advance reservations.

General over machine, allocator and scheduler. At each point in time all ends come first, then ends and begins of
reservations, then submissions; then the scheduler decides once. Times are integers of microseconds.

Reservations are granted only where running jobs (by their requests) and earlier reservations leave room, and then they
are kept: schedulers start no job whose requested time would touch one. A job that outruns its request is ended at the
request (`Overrun.CUT`) or runs on (`Overrun.KEEP`); in the second case it is ended when a reservation that needs its
units or cables begins.

Units may fail, be drained and come back meanwhile (`Outage`). As Slurm does, a job on a unit that fails is requeued: it
starts anew, behind those that wait. Whether a job fits at all is decided by the machine without outages.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from ramp.errors import MachineError, RampError
from ramp.model.instant import SECOND
from simulation.kernel import EventQueue
from simulation.machines.interface import JobRequest, Machine, NodeState, Placement, Reallocation
from simulation.planning.plan import Plan
from simulation.queueing.outages import Outage, Service
from simulation.schedulers.interface import (
    AdvanceReservation,
    Job,
    RunningJob,
    Scheduler,
    Segment,
    WithdrawingScheduler,
)
from simulation.schedulers.planner import placements_conflict, plan_of
from simulation.schedulers.size_changes import changed, completes_at, ends_at


class Overrun(enum.StrEnum):
    """What happens to a job that runs longer than it asked for."""

    CUT = "cut"
    """It is ended at its requested time, as batch systems do."""
    KEEP = "keep"
    """It runs on; its expected run time doubles each time it proves too short."""


class EndReason(enum.StrEnum):
    """Why a job's run ended."""

    COMPLETED = "completed"
    REQUESTED_TIME_OVER = "requested_time_over"
    RESERVATION_BEGAN = "reservation_began"
    WITHDRAWN = "withdrawn"
    UNIT_FAILED = "node_fail"
    """It is requeued."""


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job's run from start to end.

    Attributes:
        job: the job.
        placement: where it ran, at last if it changed its size.
        start_time: microseconds.
        end_time: microseconds.
        reason: why it ended.
        earlier: the segments of its run before the last one; none where it had one size only.
        resized: whether its size was changed, if only at the instant of its start.
        spared: as of `RunningJob`.
    """

    job: Job
    placement: Placement
    start_time: int
    end_time: int
    reason: EndReason
    earlier: tuple[Segment, ...] = ()
    resized: bool = False
    spared: int = 0

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Where it ran from when to when, in order; each begins where the one before ends."""
        begin = self.earlier[-1].end if self.earlier else self.start_time
        return (*self.earlier, Segment(begin, self.end_time, self.placement))


class _Kind(enum.IntEnum):
    """Kinds of events in the order in which simultaneous ones happen."""

    JOB_END = 0
    SERVICE = 1
    RESERVATION_END = 2
    RESERVATION_BEGIN = 3
    SUBMISSION = 4
    WAKE = 5


class QueueSimulation:
    """A machine, its queue and its reservations over virtual time.

    Args:
        machine: the machine; the simulation allocates and releases on it.
        scheduler: decides who starts; its queue must be empty.
        overrun: what happens to jobs that outrun their request.
        on_end: called with every job that ends, in order of the ends.
        outages: by begin, no more than asked for: while jobs are left.
        boots: jobs are as long as with the longest boot of the machine's listed blocks (`ShapedJobs.in_blocks`).

    Attributes:
        service: the outages and what they take.
        refused: jobs that would not fit the empty machine; they never enter the queue.
        ended_count: number of jobs that have ended.
        changes: grows with every point in time that happens, and with reservations that are made or given back.
    """

    def __init__(
        self,
        machine: Machine,
        scheduler: Scheduler,
        *,
        overrun: Overrun = Overrun.CUT,
        on_end: Callable[[EndedJob], None] | None = None,
        outages: Iterable[Outage] = (),
        boots: bool = False,
    ) -> None:
        self._machine = machine
        self._scheduler = scheduler
        self._keeps_overruns = overrun is Overrun.KEEP
        self._on_end = on_end
        self._events: EventQueue[tuple[_Kind, Job | Outage | int]] = EventQueue()
        self._running: dict[int, RunningJob] = {}
        self._end_tickets: dict[int, int] = {}
        self._submitted: set[int] = set()  # that have not started
        self._reservations: dict[int, AdvanceReservation] = {}
        self._upcoming: list[AdvanceReservation] = []
        self._reservation_count = 0
        self._fits_ever: dict[Hashable, bool] = {}
        self._wake_ticket: int | None = None
        self._plan: Plan | None = None
        self._now = 0
        self._asked = 0
        self.service = Service(machine, outages, boots=boots)
        self.refused: list[Job] = []
        self.ended_count = 0
        self.changes = 0
        self._schedule_outage(self.service.following, begins=True)

    @property
    def now(self) -> int:
        return self._now

    @property
    def machine(self) -> Machine:
        """The machine in its present state."""
        return self._machine

    @property
    def running(self) -> Mapping[int, RunningJob]:
        return self._running

    @property
    def waiting(self) -> tuple[Job, ...]:
        """Jobs in the queue, in its order."""
        return tuple(self._scheduler.waiting())

    @property
    def reservations(self) -> Sequence[AdvanceReservation]:
        """Granted reservations whose end has not come, in order of granting."""
        return tuple(self._reservations.values()) if self._reservations else ()

    def submit(self, job: Job) -> None:
        """Schedule a job's submission.

        Raises:
            ValueError: its submission time lies in the past.
        """
        self._asked += 1
        self._events.schedule(job.submit_time, (_Kind.SUBMISSION, job), _Kind.SUBMISSION)

    def reserve(self, request: JobRequest, begin_time: int, length: int) -> AdvanceReservation | None:
        """Set units aside for a time to come; waiting jobs give way, running jobs and other reservations do not.

        Args:
            request: what is asked of the machine (its job id is not used).
            begin_time: microseconds, not before now.
            length: microseconds, at least 1.

        Returns:
            The reservation, or None when there is no room.

        Raises:
            ValueError: the time lies in the past or is empty.
        """
        if begin_time < self._now or length < 1:
            raise ValueError("a reservation must begin now or later and have a length above 0")
        placement = plan_of(self).fits_at(request, begin_time, length)
        if placement is None:
            return None
        return self.reserve_place(placement, begin_time, begin_time + length)

    def reserve_place(self, placement: Placement, begin_time: int, end_time: int) -> AdvanceReservation:
        """Set a placement aside for [begin_time, end_time), which the caller has seen to be free then.

        Args:
            placement: units and links.
            begin_time: microseconds, not before now.
            end_time: microseconds.
        """
        assert self._now <= begin_time < end_time
        self.changes += 1
        self._reservation_count += 1
        reservation = AdvanceReservation(-self._reservation_count, begin_time, end_time, placement)
        self._reservations[reservation.number] = reservation
        self._upcoming.append(reservation)
        self._events.schedule(begin_time, (_Kind.RESERVATION_BEGIN, reservation.number), _Kind.RESERVATION_BEGIN)
        self._events.schedule(end_time, (_Kind.RESERVATION_END, reservation.number), _Kind.RESERVATION_END)
        self._plan = None
        return reservation

    def cancel_reservation(self, number: int) -> bool:
        """Give a reservation back, begun or not; False where it is over or unknown."""
        if number not in self._reservations:
            return False
        self.changes += 1
        self._end_reservation(number)
        self._wake_at(self._now)
        return True

    def withdraw(self, number: int) -> bool:
        """Delete a job: it leaves the queue, or ends now if it runs; False where it is over or was never admitted.

        Raises:
            MachineError: the scheduler lets nobody out of its queue.
        """
        if number in self._running:
            self._events.cancel(self._end_tickets[number])
            self._end(number, EndReason.WITHDRAWN)
        elif number in self._submitted:
            if not isinstance(self._scheduler, WithdrawingScheduler):
                raise self._wrong("does not support withdrawing jobs")
            job = next(each for each in self._scheduler.waiting() if each.job_number == number)
            self._scheduler.withdraw(job)
            self._submitted.discard(number)
        else:
            return False
        self._plan = None
        self._wake_at(self._now)
        return True

    def step(self) -> bool:
        """Let the next point in time happen; False when nothing is left."""
        events = self._events
        time = events.next_time()
        if time is None:
            return False
        self._now = time
        self._plan = None
        self.changes += 1
        changes = [self._happen(kind, subject) for kind, subject in events.until(time)]
        if any(changes):
            self._wake_at(self._decided())
        return True

    def _decided(self) -> int | None:
        try:
            wake = self._scheduler.decide(self)
        except RampError:
            raise
        except Exception as error:
            raise self._wrong(f"raises {type(error).__name__}: {error}") from error
        if wake is not None and wake <= self._now:
            raise self._wrong(f"must ask for a later time, got {_seconds_text(wake)}")
        return wake

    def _wrong(self, what: str) -> MachineError:
        return MachineError(
            f"the scheduler {type(self._scheduler).__name__} {what} (at simulated time {_seconds_text(self._now)})"
        )

    def advance(self, until: int) -> None:
        """Let everything happen up to and including a time, which then is `now`."""
        while (time := self._events.next_time()) is not None and time <= until:
            self.step()
        self._now = max(self._now, until)
        self._plan = None

    def run(self) -> None:
        """Let everything happen.

        Raises:
            MachineError: the scheduler does what none may, such as to leave jobs in the queue for ever.
        """
        while self.step():
            pass
        if self._submitted and self.service.lasting:
            jobs = f"{len(self._submitted)} jobs never fit, first job {min(self._submitted)}"
            raise MachineError(f"{self._machine.name}: with the units left in service {jobs}")
        if self._submitted:
            raise self._wrong(f"never starts {len(self._submitted)} jobs, first job {min(self._submitted)}")

    def place(self, job: Job) -> Placement | None:
        """Return where a job could start now without touching a reservation during its requested time."""
        horizon = self._now + job.planned_length
        for reservation in self._upcoming:
            if reservation.begin_time < horizon:
                if self._plan is None:
                    self._plan = plan_of(self)
                return self._plan.fits_at(job.request, self._now, job.planned_length)
        return self._machine.place(job.request)

    def start(self, job: Job, placement: Placement) -> None:
        number = job.job_number
        if number not in self._submitted:
            raise self._wrong(f"starts job {number}, which is not waiting")
        self._machine.allocate(placement)
        self._submitted.discard(number)
        spared = self.service.spared(placement, self._now)
        self._running[number] = RunningJob(job, placement, self._now, spared=spared)
        length = job.run_time if self._keeps_overruns else min(job.run_time, job.requested_time)
        end = self._now + length - spared
        self._end_tickets[number] = self._events.schedule(end, (_Kind.JOB_END, number), _Kind.JOB_END)
        self._plan = None

    def resize(self, request: JobRequest) -> Reallocation | None:
        """Give a running malleable job another size now.

        Args:
            request: what the job, `request.job_id`, wants of the machine from now on.

        Returns:
            What it kept; None where it cannot have that size, and nothing has changed.

        Raises:
            MachineError: the job does not run, or may not change its size to that.
        """
        number = request.job_id
        running = self._running.get(number)
        if running is None:
            raise self._wrong(f"changes the size of job {number}, which is not running")
        malleability = running.job.malleability
        if malleability is None or request.size not in malleability.sizes:
            may = "is rigid" if malleability is None else f"may have {malleability.sizes}"
            raise self._wrong(f"gives job {number} the size {request.size}, but it {may}")
        reallocation = self._machine.reallocate(request)
        if reallocation is None:
            return None
        now = self._now
        resized = self._running[number] = changed(running, reallocation, malleability, now)
        self._events.cancel(self._end_tickets[number])
        end = max(ends_at(resized, keeps_overruns=self._keeps_overruns), now)
        self._end_tickets[number] = self._events.schedule(end, (_Kind.JOB_END, number), _Kind.JOB_END)
        self._scheduler.released()
        self._plan = None
        return reallocation

    def _admit(self, job: Job) -> bool:
        fits = self._fits_ever.get(job.kind)
        if fits is None:
            fits = self._fits_ever[job.kind] = self.service.whole.fits_ever(job.request)
        if fits:
            self._submitted.add(job.job_number)
            self._scheduler.submit(job)
        else:
            self.refused.append(job)
        return fits

    def _happen(self, kind: _Kind, number: Job | Outage | int) -> bool:
        """Let an event happen; return False for a job that is refused, which changes nothing."""
        if isinstance(number, Job):
            return self._admit(number)
        if isinstance(number, Outage):
            self._change_service(number)
            return True
        if kind is _Kind.JOB_END:
            running = self._running[number]
            within = self._now >= completes_at(running)
            self._end(number, EndReason.COMPLETED if within else EndReason.REQUESTED_TIME_OVER)
        elif kind is _Kind.RESERVATION_END:
            if number in self._reservations:
                self._end_reservation(number)
        elif kind is _Kind.RESERVATION_BEGIN:
            if number in self._reservations:
                self._begin_reservation(self._reservations[number])
        else:
            self._wake_ticket = None
        return True

    def _end(self, number: int, reason: EndReason) -> None:
        running = self._running.pop(number)
        del self._end_tickets[number]
        self._machine.release(number)
        self._scheduler.released()
        self.ended_count += reason is not EndReason.UNIT_FAILED
        if self._on_end is not None:
            changes, began, spared = running.changes, running.start_time, running.spared
            earlier, resized = ((), False) if changes is None else (changes.segments, True)
            self._on_end(EndedJob(running.job, running.placement, began, self._now, reason, earlier, resized, spared))

    def _change_service(self, outage: Outage) -> None:
        """Take units out of service, or put them back where their outage has begun before."""
        if outage in self.service.lasting:
            self.service.lasting.remove(outage)
        else:
            self.service.begin(outage, awaits_more=self.ended_count + len(self.refused) < self._asked)
            self._schedule_outage(self.service.following, begins=True)
            self._schedule_outage(outage, begins=False)
            if outage.state is NodeState.DOWN:
                self._requeue([each for each in self._running.values() if each.placement.nodes & outage.units])
        self.service.bring_up_to_date(outage.units)
        self._scheduler.released()

    def _schedule_outage(self, outage: Outage | None, *, begins: bool) -> None:
        time = None if outage is None else outage.begin if begins else outage.end
        if outage is not None and time is not None:
            self._events.schedule(time, (_Kind.SERVICE, outage), _Kind.SERVICE)

    def _requeue(self, lost: Sequence[RunningJob]) -> None:
        for running in lost:
            number = running.job.job_number
            self._events.cancel(self._end_tickets[number])
            self._end(number, EndReason.UNIT_FAILED)
            self._submitted.add(number)
            self._scheduler.submit(replace(running.job, submit_time=self._now))

    def _begin_reservation(self, reservation: AdvanceReservation) -> None:
        """Give the reservation its units; jobs beyond their request that stand in the way are ended."""
        self._upcoming.remove(reservation)
        placement = reservation.placement
        overdue = [running for running in self._running.values() if running.planned_end <= self._now]
        overdue.sort(key=lambda running: (running.start_time, running.job.job_number), reverse=True)
        for running in overdue:
            counted = placement.nodes == 0 and self._machine.free < placement.size
            if counted or placements_conflict(running.placement, placement):
                self._events.cancel(self._end_tickets[running.job.job_number])
                self._end(running.job.job_number, EndReason.RESERVATION_BEGAN)
        self._machine.allocate(replace(placement, job_id=reservation.number))
        self.service.spared(placement, self._now)

    def _end_reservation(self, number: int) -> None:
        reservation = self._reservations.pop(number)
        if reservation in self._upcoming:
            self._upcoming.remove(reservation)
        else:
            self._machine.release(number)
        self._scheduler.released()
        self._plan = None

    def _wake_at(self, time: int | None) -> None:
        if self._wake_ticket is not None:
            self._events.cancel(self._wake_ticket)
            self._wake_ticket = None
        if time is not None:
            self._wake_ticket = self._events.schedule(time, (_Kind.WAKE, 0), _Kind.WAKE)


def _seconds_text(time: int) -> str:
    return f"{Decimal(time) / SECOND:,f} s"
