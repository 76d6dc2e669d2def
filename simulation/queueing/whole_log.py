"""Running all jobs of a table through one machine and scheduler.

A flat machine without reservations takes the compiled loops of `simulation.schedulers.flat_loops`; every other case
takes the event simulation. Both give the same schedule.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from ramp.errors import ConfigurationError
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import JobRequest, Machine, Placement
from simulation.queueing.job_table import JobTable
from simulation.queueing.simulation import EndedJob, EndReason, Overrun, QueueSimulation
from simulation.schedulers.easy import EasyBackfill
from simulation.schedulers.interface import AdvanceReservation, Job
from simulation.schedulers.registry import make_scheduler
from simulation.schedulers.window_first_fit import WINDOW_DEFAULT, WindowCounts
from simulation.workload.metrics import Schedule

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
    """As the simulator pyss: one decision after each event (`simulation.schedulers.flat_event_order`)."""


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """Which scheduler, and how it and the machine treat jobs.

    Attributes:
        name: one of `simulation.schedulers.registry.SCHEDULER_NAMES`.
        window: of window first-fit.
        window_counts: what that window counts.
        overrun: what happens to jobs that outrun their request.
        event_order: the order of what happens in one instant.
    """

    name: str
    window: int = WINDOW_DEFAULT
    window_counts: WindowCounts = WindowCounts.INDICES
    overrun: Overrun = Overrun.CUT
    event_order: EventOrder = EventOrder.BATCH


@dataclass(frozen=True, slots=True, eq=False)
class LogRun:
    """What came out.

    Attributes:
        jobs: the jobs that ran, in order of submission.
        schedule: when they ran, in the same order.
        refused: jobs that would not fit the empty machine.
        reservations: those granted, in the order asked for; None for one that was not.
    """

    jobs: JobTable
    schedule: Schedule
    refused: int
    reservations: tuple[AdvanceReservation | None, ...] = ()


def run_log(
    machine: Machine,
    jobs: JobTable,
    options: SchedulerOptions,
    *,
    requests: Sequence[JobRequest] | None = None,
    reservations: Sequence[ReservationRequest] = (),
    on_end: Callable[[EndedJob], None] | None = None,
) -> LogRun:
    """Run jobs through a machine that nobody else uses.

    Args:
        machine: empty at the start and again at the end.
        jobs: the jobs.
        options: the scheduler.
        requests: what each job asks of the machine, in the order of `jobs`, with the job numbers as ids; by default so
            many units of any shape.
        reservations: asked for in this order before the first job comes.
        on_end: called for every job that ends, in order of ends.

    Raises:
        ConfigurationError: the scheduler's options are wrong, or its order of events is not known for such a run.
    """
    if options.event_order is EventOrder.PYSS:
        _check_pyss(machine, options, reservations)
    if isinstance(machine, FlatMachine) and not reservations:
        run = _run_flat(machine, jobs, options)
        if on_end is not None:
            replay_ends(run, on_end)
        return run
    if requests is None:
        requests = [
            JobRequest(number, size) for number, size in zip(jobs.job_number.tolist(), jobs.size.tolist(), strict=True)
        ]
    count = len(jobs)
    start = np.full(count, -1, dtype=np.int64)
    end = np.zeros(count, dtype=np.int64)
    held = np.zeros(count, dtype=np.int64)
    index_of = {number: index for index, number in enumerate(jobs.job_number.tolist())}

    def record(ended: EndedJob) -> None:
        index = index_of[ended.job.job_number]
        start[index] = ended.start_time
        end[index] = ended.end_time
        held[index] = ended.placement.size
        if on_end is not None:
            on_end(ended)

    scheduler = make_scheduler(options.name, window=options.window, window_counts=options.window_counts)
    simulation = QueueSimulation(machine, scheduler, overrun=options.overrun, on_end=record)
    granted = tuple(simulation.reserve(one.request, one.begin_time, one.length) for one in reservations)
    for job in _jobs(jobs, requests):
        simulation.submit(job)
    simulation.run()
    ran = start >= 0
    size = np.array([request.size for request in requests], dtype=np.int64)
    schedule = Schedule(jobs.submit_time[ran], start[ran], end[ran], size[ran], held[ran], machine.capacity)
    return LogRun(jobs.select(ran), schedule, len(simulation.refused), granted)


def _check_pyss(machine: Machine, options: SchedulerOptions, reservations: Sequence[ReservationRequest]) -> None:
    """Refuse what pyss does not do, or what nobody has compared with it."""
    if not isinstance(machine, FlatMachine) or options.name != EasyBackfill.name:
        raise ConfigurationError(
            f"the event order {EventOrder.PYSS} is for the scheduler {EasyBackfill.name} on a flat machine; here is "
            f"{options.name} on {machine.name}",
            key="event-order",
        )
    if options.overrun is not Overrun.CUT or reservations:
        other = "a reservation" if reservations else f"--overrun {options.overrun}"
        raise ConfigurationError(
            f"in the event order {EventOrder.PYSS} jobs end at their requests and nothing is reserved; {other} does "
            "not go with it",
            key="event-order",
        )


def _jobs(jobs: JobTable, requests: Sequence[JobRequest]) -> list[Job]:
    rows = zip(
        jobs.job_number.tolist(),
        jobs.submit_time.tolist(),
        jobs.run_time.tolist(),
        jobs.requested_time.tolist(),
        requests,
        strict=True,
    )
    return [Job(number, submit, run, requested, request) for number, submit, run, requested, request in rows]


def warm_up(machine: Machine, options: SchedulerOptions) -> None:
    """Let everything be compiled that a run needs, so that its time is the simulation's own.

    Runs a few jobs through a copy: one unit, then the whole machine, which waits for it, then single units that may
    overtake it or may not.

    Args:
        machine: the machine, empty; never changed.
        options: the scheduler.

    Raises:
        ConfigurationError: the scheduler's options are wrong.
    """
    numbers = np.arange(1, 6)
    units = 1 if isinstance(machine, FlatMachine) else prod(machine.extents)
    size = np.array([1, units, 1, 1, 1], np.int64)
    requested = np.array([9, 1, 1, 99, 1], np.int64)
    run_time = np.array([4, 1, 1, 1, 1], np.int64)
    jobs = JobTable(numbers, np.array([0, 0, 1, 1, 1], np.int64), run_time, requested, size, numbers - 1)
    run_log(machine.copy(), jobs, options)


def _run_flat(machine: FlatMachine, jobs: JobTable, options: SchedulerOptions) -> LogRun:
    """The same by the compiled loops."""
    from simulation.schedulers import flat_conservative, flat_event_order, flat_loops

    make_scheduler(options.name, window=options.window, window_counts=options.window_counts)  # checks the options
    loops = {
        "fcfs": flat_loops.first_come_first_served,
        "first-fit": flat_loops.first_fit,
        "window-first-fit": flat_loops.window_first_fit,
        "window-room-ahead": flat_loops.window_first_fit,  # there are no places to choose
        "easy": (flat_event_order.easy_event_by_event if options.event_order is EventOrder.PYSS else flat_loops.easy),
        "conservative": flat_conservative.conservative,
    }
    fits = jobs.size <= machine.capacity
    ran = jobs.select(fits)
    duration = ran.run_time
    if options.overrun is Overrun.CUT:
        duration = np.minimum(duration, ran.requested_time)
    window = options.window if options.window_counts is WindowCounts.INDICES else -options.window
    start = loops[options.name](ran.submit_time, duration, ran.requested_time, ran.size, machine.capacity, window)
    end = start + duration
    schedule = Schedule(ran.submit_time, start, end, ran.size, ran.size, machine.capacity)
    return LogRun(ran, schedule, len(jobs) - len(ran))


def replay_ends(run: LogRun, on_end: Callable[[EndedJob], None]) -> None:
    """Tell of all ends of a run on a flat machine as the event simulation would: in order of time, then of starting.

    Args:
        run: what came out.
        on_end: called for every job.
    """
    jobs, start, end = run.jobs, run.schedule.start_time, run.schedule.end_time
    numbers, sizes = jobs.job_number.tolist(), jobs.size.tolist()
    requests = [JobRequest(number, size) for number, size in zip(numbers, sizes, strict=True)]
    everyone = _jobs(jobs, requests)
    for index in np.lexsort((np.arange(len(jobs)), start, end)).tolist():
        job = everyone[index]
        ran_for = int(end[index] - start[index])
        reason = EndReason.COMPLETED if ran_for >= job.run_time else EndReason.REQUESTED_TIME_OVER
        placement = Placement(job.job_number, job.request.size)
        on_end(EndedJob(job, placement, int(start[index]), int(end[index]), reason))
