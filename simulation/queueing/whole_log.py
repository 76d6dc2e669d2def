"""Running all jobs of a table through one machine and scheduler.

On a machine whose units are interchangeable, without reservations, a scheduler that has declared a compiled version
takes that; every other case takes the event simulation. Both give the same schedule.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramp.errors import ConfigurationError, MachineError
from ramp.model.instant import SECOND
from simulation.machines.interface import Connection, JobRequest, Machine, Placement, has_places
from simulation.malleable.malleability import Malleability
from simulation.queueing.job_table import JobTable
from simulation.queueing.outages import Outage
from simulation.queueing.queue_simulation import EndedJob, EndReason, Overrun, QueueSimulation
from simulation.schedulers.declaration import SCHEDULERS, FlatLoop, SchedulerDeclaration, flat_loop, scheduler
from simulation.schedulers.interface import AdvanceReservation, Job, Scheduler
from simulation.workload.metrics import Pieces, Schedule

Int64Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """An advance reservation to ask for before the first job comes.

    Attributes:
        request: what it wants of the machine.
        begin_time: microseconds.
        length: microseconds.
    """

    request: JobRequest
    begin_time: int
    length: int


class EventOrder(enum.StrEnum):
    """What comes first of what happens in one instant, and how often the scheduler decides."""

    BATCH = "batch"
    """All ends, then all submissions, then one decision."""
    PYSS = "pyss"
    """As the simulator pyss: one decision after each event (`simulation.schedulers.compiled.easy`)."""


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """Which scheduler, and how it and the machine treat jobs.

    Attributes:
        scheduler: the name or place of one (`simulation.schedulers.declaration`), or one with an empty queue.
        options: of a scheduler that is named; the others have their defaults.
        overrun: what happens to jobs that outrun their request.
        event_order: the order of what happens in one instant.
    """

    scheduler: str | Scheduler
    options: Mapping[str, Any] = field(default_factory=dict)
    overrun: Overrun = Overrun.CUT
    event_order: EventOrder = EventOrder.BATCH

    @property
    def name(self) -> str:
        """The scheduler's name."""
        return self.scheduler if isinstance(self.scheduler, str) else type(self.scheduler).__name__

    def declared(self) -> tuple[SchedulerDeclaration, Any]:
        """Return the scheduler's declaration, and its options as it takes them.

        Raises:
            ConfigurationError: there is no such scheduler or option.
        """
        made = self.scheduler
        declaration = SCHEDULERS.find(made) if isinstance(made, str) else scheduler(lambda: made)
        return declaration, declaration.read(self.options, self.name)


@dataclass(frozen=True, slots=True, eq=False)
class LogRun:
    """What came out.

    Attributes:
        jobs: the jobs that ran, in order of submission.
        schedule: when they ran, in the same order.
        cut: whether a job was ended before its work was done, in the same order, shape (jobs,).
        refused: jobs that would not fit the empty machine.
        reservations: those granted, in the order asked for; None for one that was not.
        outages: units that failed or were drained meanwhile.
        requeued: runs that failures of units ended; each job's last run is in the schedule.
    """

    jobs: JobTable
    schedule: Schedule
    cut: NDArray[np.bool_]
    refused: int
    reservations: tuple[AdvanceReservation | None, ...] = ()
    outages: tuple[Outage, ...] = ()
    requeued: int = 0


def run_log(
    machine: Machine,
    jobs: JobTable,
    options: SchedulerOptions,
    *,
    requests: Sequence[JobRequest] | None = None,
    reservations: Sequence[ReservationRequest] = (),
    malleability: Sequence[Malleability | None] | None = None,
    on_end: Callable[[EndedJob], None] | None = None,
    outages: Iterable[Outage] = (),
    boots: bool = False,
) -> LogRun:
    """Run jobs through a machine that has no other users.

    Args:
        machine: empty at the start and again at the end.
        jobs: the jobs.
        options: the scheduler.
        requests: what each job asks of the machine, in the order of `jobs`, with the job numbers as ids; by default so
            many units of any shape.
        reservations: asked for in this order before the first job comes.
        malleability: of each job, in the order of `jobs`, None of a rigid one; all are rigid by default. Compiled
            loops, which change no size, are not for such jobs.
        on_end: called for every job that ends, in order of ends.
        outages: of units, by begin; a machine whose units are interchangeable has none.
        boots: as of `QueueSimulation`.

    Raises:
        ConfigurationError: there is no such scheduler, its options are wrong, or its order of events is not known for
            such a run.
        MachineError: the scheduler fails, or leaves jobs waiting for ever.
    """
    declaration, its_options = options.declared()
    loop = _loop_for(machine, options, reservations)
    if loop is not None and malleability is None:
        run = _run_flat(machine, jobs, options, loop, () if its_options is None else (its_options,))
        if on_end is not None:
            replay_ends(run, on_end)
        return run
    if requests is None:
        requests = _of_any_shape(jobs)
    ended = EndedJobs(jobs)
    capacity = machine.capacity

    def record(one: EndedJob) -> None:
        ended(one)
        if on_end is not None:
            on_end(one)

    simulation = QueueSimulation(
        machine, declaration.new(its_options), overrun=options.overrun, on_end=record, outages=outages, boots=boots
    )
    granted = tuple(simulation.reserve(one.request, one.begin_time, one.length) for one in reservations)
    for job in _jobs(jobs, requests, malleability):
        simulation.submit(job)
    simulation.run()
    refused, happened = len(simulation.refused), tuple(simulation.service.begun)
    run = ended.run([request.size for request in requests], capacity, refused, granted)
    return replace(run, outages=happened, requeued=ended.requeued)


class EndedJobs:
    """Collects the jobs of a table that end; to be called with each of them; counts the runs that were requeued."""

    def __init__(self, jobs: JobTable) -> None:
        self._jobs = jobs
        self._index_of = {number: index for index, number in enumerate(jobs.job_number.tolist())}
        self._start = np.full(len(jobs), -1, dtype=np.int64)
        self._end = np.zeros(len(jobs), dtype=np.int64)
        self._held = np.zeros(len(jobs), dtype=np.int64)
        self._cut = np.zeros(len(jobs), dtype=np.bool_)
        self._spared = np.zeros(len(jobs), dtype=np.int64)
        self._pieces: list[tuple[int, int, int, int]] = []
        self.requeued = 0

    def __call__(self, ended: EndedJob) -> None:
        """Note a job that has ended; one that a failure of units ended will end once more."""
        if ended.reason is EndReason.UNIT_FAILED:
            self.requeued += 1
            return
        index = self._index_of[ended.job.job_number]
        self._start[index] = ended.start_time
        self._end[index] = ended.end_time
        self._held[index] = ended.placement.size
        self._cut[index] = ended.reason is not EndReason.COMPLETED
        self._spared[index] = ended.spared
        if ended.resized:
            self._pieces.extend((index, each.begin, each.end, each.placement.size) for each in ended.segments)

    def run(
        self,
        sizes: Sequence[int],
        capacity: int,
        refused: int,
        reservations: tuple[AdvanceReservation | None, ...] = (),
    ) -> LogRun:
        """Return what came out.

        Args:
            sizes: units that each job of the table asked for.
            capacity: units of the machine.
            refused: jobs that would not fit the empty machine.
            reservations: those granted, None for one that was not.
        """
        jobs, start, end, held = self._jobs, self._start, self._end, self._held
        run_time, requested_time = jobs.run_time - self._spared, jobs.requested_time - self._spared
        jobs = replace(jobs, run_time=run_time, requested_time=requested_time)
        ran = start >= 0
        size = np.array(sizes, dtype=np.int64)
        resized = _pieces(self._pieces, ran)
        if resized is not None:
            mean = _mean_held(resized, end[ran] - start[ran])
            changed = np.flatnonzero(ran)[resized.job]
            held[changed] = size[changed] = mean[resized.job]
        schedule = Schedule(jobs.submit_time[ran], start[ran], end[ran], size[ran], held[ran], capacity, resized)
        return LogRun(jobs.select(ran), schedule, self._cut[ran], refused, reservations)


def _pieces(rows: Sequence[tuple[int, int, int, int]], ran: NDArray[np.bool_]) -> Pieces | None:
    """Return the segments given by index of the table, for a schedule of those that ran; None without any."""
    if not rows:
        return None
    job, begin, end, held = np.array(rows, np.int64).T
    return Pieces((np.cumsum(ran) - 1)[job], begin, end, held)


def _mean_held(pieces: Pieces, run: Int64Array) -> Int64Array:
    """Return units that each changed job held in the mean over its run, rounded; 0 of the others, shape (jobs,)."""
    area = np.zeros(len(run), np.float64)
    np.add.at(area, pieces.job, pieces.held.astype(np.float64) * (pieces.end - pieces.begin))
    return np.rint(area / np.maximum(run, 1)).astype(np.int64)


def counts_only(machine: Machine, options: SchedulerOptions, reservations: Sequence[ReservationRequest]) -> bool:
    """Return whether a run takes a compiled loop, which has no use for what happens on the way.

    Raises:
        ConfigurationError: as `run_log`.
    """
    return _loop_for(machine, options, reservations) is not None


def _loop_for(
    machine: Machine, options: SchedulerOptions, reservations: Sequence[ReservationRequest]
) -> FlatLoop | None:
    """Return the compiled loop that a run takes, or None.

    Raises:
        ConfigurationError: the order of events is pyss's, and such a run has no loop for it.
    """
    declaration, _ = options.declared()
    if options.event_order is EventOrder.PYSS:
        by_event = declaration.compiled_by_event
        if not machine.traits.interchangeable or by_event is None:
            having = [
                each.name for each in SCHEDULERS.listed() if each.declaration and each.declaration.compiled_by_event
            ]
            raise ConfigurationError(
                f"the event order {EventOrder.PYSS} needs the scheduler {', '.join(having)} on a flat machine, got "
                f"{options.name} on {machine.name}",
                key="event-order",
            )
        if options.overrun is not Overrun.CUT or reservations:
            # pyss does not do that, and nobody has compared it
            other = "the reservations" if reservations else f"--overrun {options.overrun}"
            raise ConfigurationError(
                f"the event order {EventOrder.PYSS} ends jobs at their requested time and excludes reservations; "
                f"remove {other}",
                key="event-order",
            )
        return flat_loop(by_event)
    if declaration.compiled is None or reservations or not machine.traits.interchangeable:
        return None
    return flat_loop(declaration.compiled)


def _of_any_shape(jobs: JobTable) -> list[JobRequest]:
    numbers, sizes = jobs.job_number.tolist(), jobs.size.tolist()
    return [JobRequest(number, size) for number, size in zip(numbers, sizes, strict=True)]


def _jobs(
    jobs: JobTable, requests: Sequence[JobRequest], malleability: Sequence[Malleability | None] | None = None
) -> list[Job]:
    rows = zip(
        jobs.job_number.tolist(),
        jobs.submit_time.tolist(),
        jobs.run_time.tolist(),
        jobs.requested_time.tolist(),
        requests,
        malleability or [None] * len(jobs),
        *(jobs.accounts.tolist() if jobs.accounts is not None else ()),
        strict=True,
    )
    return [Job(*row) for row in rows]


def warm_up(machine: Machine, options: SchedulerOptions) -> None:
    """Let everything be compiled that a run needs, so that its time is the simulation's own.

    Runs a few jobs through a copy: one unit, then the whole machine, which waits for it, then single units that may
    overtake it or may not.

    Args:
        machine: the machine, empty; never changed.
        options: the scheduler.

    Raises:
        ConfigurationError: there is no such scheduler, or its options are wrong.
    """
    if not isinstance(options.scheduler, str):
        return  # its queue is not ours to use up
    numbers = np.arange(1, 6)
    units = prod(machine.extents) if has_places(machine) else 1
    size = np.array([1, units, 1, 1, 1], np.int64)
    requested = np.array([9, 1, 1, 99, 1], np.int64)
    run_time = np.array([4, 1, 1, 1, 1], np.int64)
    jobs = JobTable(numbers, np.array([0, 0, 1, 1, 1], np.int64), run_time, requested, size, numbers - 1)
    run_log(machine.copy(), jobs, options)


def _run_flat(
    machine: Machine, jobs: JobTable, options: SchedulerOptions, loop: FlatLoop, its_options: tuple[Any, ...]
) -> LogRun:
    fits = jobs.size <= machine.capacity
    ran = jobs.select(fits)
    duration = ran.run_time
    if options.overrun is Overrun.CUT:
        duration = np.minimum(duration, ran.requested_time)
    requested = ran.requested_time
    if options.event_order is EventOrder.PYSS:
        requested = np.maximum(requested, ran.run_time)  # what it plans with
    start = loop(ran.submit_time, duration, requested, ran.size, machine.capacity, *its_options)
    if np.shape(start) != ran.submit_time.shape or (start < ran.submit_time).any():
        raise MachineError(f"the compiled version of {options.name} gives a job no start or one before its submission")
    end = start + duration
    schedule = Schedule(ran.submit_time, start, end, ran.size, ran.size, machine.capacity)
    return LogRun(ran, schedule, duration < ran.run_time, len(jobs) - len(ran))


def replay_ends(run: LogRun, on_end: Callable[[EndedJob], None]) -> None:
    """Tell of all ends of a run on a flat machine in order of time, then of start times, then of submission.

    Args:
        run: what came out.
        on_end: called for every job.
    """
    jobs, start, end = run.jobs, run.schedule.start_time, run.schedule.end_time
    everyone = _jobs(jobs, _of_any_shape(jobs))
    for index in np.lexsort((np.arange(len(jobs)), start, end)).tolist():
        job = everyone[index]
        ran_for = int(end[index] - start[index])
        reason = EndReason.COMPLETED if ran_for >= job.run_time else EndReason.REQUESTED_TIME_OVER
        placement = Placement(job.job_number, job.request.size)
        on_end(EndedJob(job, placement, int(start[index]), int(end[index]), reason))


RESERVATION_FORM: Final = "BEGIN:END:SIZE or BEGIN:END:AxBxC[:torus], times in seconds of the log"


def reservation_of(text: str, machine: Machine) -> ReservationRequest:
    """Return a reservation that the machine could hold if it were empty.

    Args:
        text: as `RESERVATION_FORM` says.
        machine: the machine, empty.

    Raises:
        ConfigurationError: the text says no reservation, or one that the machine can never hold.
    """
    parts = text.split(":")
    try:
        begin, end = int(parts[0]), int(parts[1])
        shape = tuple(int(extent) for extent in parts[2].split("x"))
        connection = Connection(parts[3]) if len(parts) > 3 else machine.traits.connection
    except (ValueError, IndexError) as error:
        raise ConfigurationError(f"got {text!r}, expected {RESERVATION_FORM}", key="reservation") from error
    if not 0 <= begin < end or min(shape) < 1 or len(parts) > 4:
        raise ConfigurationError(f"got {text!r}, expected {RESERVATION_FORM}", key="reservation")
    if not has_places(machine) and (len(shape) > 1 or len(parts) > 3):
        raise ConfigurationError(
            f"got {text!r}, expected BEGIN:END:SIZE: a flat machine has no shapes and no connections", key="reservation"
        )
    request = JobRequest(-1, prod(shape), shape if len(shape) > 1 else None, connection=connection)
    try:
        possible = machine.fits_ever(request)
    except MachineError as error:
        raise ConfigurationError(f"{text!r}: {error}", key="reservation") from error
    if not possible:
        extents = "x".join(map(str, machine.extents))
        raise ConfigurationError(
            f"{text!r}: {machine.name} ({extents}, {machine.capacity} units in service) cannot hold this "
            "reservation even when empty",
            key="reservation",
        )
    length = (end - begin) * SECOND
    return ReservationRequest(request, begin * SECOND, length)
