"""One workload through one machine and scheduler, and what came of it: the function `simulate` and its result.

`ramp simulate` is a client of this module. Everything is given by name or as an object of one's own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from ramp.errors import ConfigurationError, WorkloadError
from ramp.model.instant import SECOND
from ramp.runtime.atomic_writes import write_output
from simulation.lab import check_pictures
from simulation.machine_files import load_machine
from simulation.machines.interface import Machine, has_cables, has_places
from simulation.queueing.job_table import ShapedJobs, jobs_of_log, jobs_to_simulate, shaped_jobs
from simulation.queueing.malleable_share import MalleableShare, MalleableSummary, malleable_share_of
from simulation.queueing.outages import Outage, outages_of
from simulation.queueing.queue_simulation import EndedJob, Overrun
from simulation.queueing.run_history import PlacementRecorder, amount_over_time, bars_without_places
from simulation.queueing.trace import header_line, job_line, outage_line, reservation_line, schedule_as_swf
from simulation.queueing.whole_log import (
    EventOrder,
    LogRun,
    ReservationRequest,
    SchedulerOptions,
    counts_only,
    replay_ends,
    reservation_of,
    run_log,
    warm_up,
)
from simulation.record_array import RecordArray
from simulation.schedulers.interface import Scheduler
from simulation.workload.generators.lublin import DAY_S, DEFAULT_LOAD, synthetic_log
from simulation.workload.logs import find_log
from simulation.workload.metrics import Summary, summarise
from simulation.workload.replay_source import SYNTHETIC
from simulation.workload.swf import SwfLog, read_swf, write_swf

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SYNTHETIC_DAYS: Final = 30
"""Length of a synthetic workload."""
_JOB_FIELDS: Final = [
    ("job_number", np.int64), ("submit_s", np.float64), ("start_s", np.float64), ("end_s", np.float64),
    ("wait_s", np.float64), ("run_time_s", np.float64), ("requested_time_s", np.float64), ("size", np.int64),
    ("held", np.int64), ("user", np.int64),
]  # fmt: skip


class JobArray(RecordArray):
    """Jobs as a structured array, one entry a job in order of submission.

    Fields: `job_number`; `submit_s`, `start_s`, `end_s` in seconds of log time; `wait_s`; `run_time_s`, which the log
    says and which is longer than end - start where a job was ended at its request; `requested_time_s`; `size`, units
    asked for; `held`, units given; `user`, -1 where the log does not know.
    """


@dataclass(frozen=True, slots=True)
class Metrics(Summary):
    """The results of a run.

    Attributes:
        wall_s: seconds that the simulation took.
        jobs_per_s: jobs simulated a second.
        refused: jobs that do not fit the machine even when it is empty.
        ended_at_request: jobs that were ended at the time they had asked for.
        reservations_granted: advance reservations that there was room for.
        requeued: runs that failures of units ended.
    """

    wall_s: float
    jobs_per_s: float
    refused: int
    ended_at_request: int
    reservations_granted: int
    requeued: int


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """What came of a run.

    Attributes:
        machine: that ran the jobs.
        log: the workload.
        scheduler: its name.
        title: workload, machine and scheduler in words.
        wall_s: seconds that the simulation took.
        result: the schedule by columns, times in microseconds.
        malleable: what came of malleable jobs; None where no share of the jobs was made malleable.
        machine_name: name or file by which the machine is loaded.
    """

    machine: Machine
    log: SwfLog
    scheduler: str
    title: str
    wall_s: float
    result: LogRun
    _ended: tuple[EndedJob, ...] | None
    malleable: MalleableSummary | None = None
    machine_name: str = ""

    def __repr__(self) -> str:
        metrics = self.metrics
        return f"<{self.title}: utilisation {metrics.utilisation:.1%}, mean wait {metrics.mean_wait_s:,.0f} s>"

    @cached_property
    def jobs(self) -> JobArray:
        """When each job ran."""
        schedule, table = self.result.schedule, self.result.jobs
        jobs = np.empty(len(table), _JOB_FIELDS)
        for name, times in (
            ("submit_s", schedule.submit_time),
            ("start_s", schedule.start_time),
            ("end_s", schedule.end_time),
            ("wait_s", schedule.start_time - schedule.submit_time),
            ("run_time_s", table.run_time),
            ("requested_time_s", table.requested_time),
        ):
            jobs[name] = times / SECOND
        jobs["job_number"], jobs["size"], jobs["held"] = table.job_number, schedule.size, schedule.held
        jobs["user"] = self.log.user_id[table.line]
        return jobs.view(JobArray)

    @cached_property
    def metrics(self) -> Metrics:
        """Utilisation, waits, slowdowns, and how long the simulation took."""
        summary, run = summarise(self.result.schedule), self.result
        return Metrics(
            **{name: getattr(summary, name) for name in Summary.__dataclass_fields__},
            wall_s=self.wall_s,
            jobs_per_s=summary.jobs / self.wall_s if self.wall_s > 0 else 0.0,
            refused=run.refused,
            ended_at_request=int(run.cut.sum()),
            reservations_granted=sum(one is not None for one in run.reservations),
            requeued=run.requeued,
        )

    @cached_property
    def ended(self) -> tuple[EndedJob, ...]:
        """Every job's run and place, in order of the ends."""
        if self._ended is not None:
            return self._ended
        ends: list[EndedJob] = []
        replay_ends(self.result, ends.append)
        return tuple(ends)

    @property
    def trace(self) -> Iterable[dict[str, Any]]:
        """The machine, then where each job ran and when, in order of the ends, reservations and outages."""
        yield header_line(self.machine, self.machine_name or self.machine.name, scheduler=self.scheduler)
        for ended in self.ended:
            yield job_line(ended, self.machine)
        for number, granted in enumerate(self.result.reservations, start=1):
            if granted is not None:
                yield reservation_line(f"reservation{number}", granted, self.machine)
        for outage in self.result.outages:
            assert has_places(self.machine)
            yield outage_line(outage, self.machine)

    def write_trace(self, path: str | Path) -> None:
        """Write the trace as one JSON object a line.

        Raises:
            RampError: the file cannot be written.
        """
        write_output(Path(path), "".join(json.dumps(line) + "\n" for line in self.trace))

    def write_swf(self, path: str | Path) -> None:
        """Write the schedule as a workload log."""
        notes = () if self.malleable is None else self.malleable.notes
        note = f"simulated on {self.machine.name} with {self.scheduler}"
        write_swf(Path(path), schedule_as_swf(self.log, self.result, note, *notes))

    def gantt(self, path: str | Path | None = None) -> Figure:
        """Draw which units each job held when; as a PNG file, too, where a path is given."""
        check_pictures()
        from simulation.plots.one_run import draw_gantt

        schedule, machine = self.result.schedule, self.machine
        if not machine.traits.interchangeable:
            recorder = PlacementRecorder()
            for ended in self.ended:
                recorder(ended)
            for granted in self.result.reservations:
                if granted is not None:
                    recorder.reserved(granted)
            bars = recorder.bars()
        else:
            bars = bars_without_places(self.result)
        return draw_gantt(
            None if path is None else Path(path),
            bars,
            origin=int(schedule.submit_time.min()),
            title=self.title,
            capacity=prod(machine.extents),
            unit_noun=machine.traits.unit_noun,
            name_of=getattr(machine, "unit_name", None),
        )

    def timeline(self, path: str | Path | None = None) -> Figure:
        """Draw utilisation and queue over time; as a PNG file, too, where a path is given."""
        check_pictures()
        from simulation.plots.one_run import draw_timeline

        schedule = self.result.schedule
        segments = schedule.segments()
        return draw_timeline(
            None if path is None else Path(path),
            amount_over_time(segments.begin, segments.end, segments.held),
            amount_over_time(schedule.submit_time, schedule.start_time),
            amount_over_time(schedule.submit_time, schedule.start_time, schedule.size),
            title=self.title,
            capacity=schedule.capacity,
            unit_noun=self.machine.traits.unit_noun,
        )


def simulate(
    log: str | Path | SwfLog,
    *,
    machine: str | Path | Machine,
    scheduler: str | Scheduler | type[Scheduler] = "easy",
    scheduler_options: Mapping[str, Any] | None = None,
    allocator: str | None = None,
    allocator_options: Mapping[str, Any] | None = None,
    shape: Literal["slim", "fat"] | None = None,
    fat_probability: float | None = None,
    torus_probability: float | None = None,
    load: float | None = None,
    max_jobs: int | None = None,
    size_divisor: int = 1,
    overrun: Overrun | str = Overrun.CUT,
    event_order: EventOrder | str = EventOrder.BATCH,
    reservations: Iterable[str | ReservationRequest] = (),
    malleable_share: float | None = None,
    resize_cost_s: int = 0,
    failures: str | Iterable[Outage] | None = None,
    seed: int = 1,
    watch: Callable[[SwfLog, int | None], Callable[[EndedJob], None] | None] | None = None,
) -> SimulatedRun:
    """Run a workload through one machine, its allocator and a scheduler.

    Args:
        log: name or path of a workload log, `synthetic` (a month of jobs that suit the machine), or a log that is read.
        machine: name or path of a machine, `flat:N`, or a machine, which is copied.
        scheduler: name or place (`module:Name`, `FILE.py:Name`) of a scheduler, its class, or one with an empty queue.
        scheduler_options: of a scheduler that is named; `ramp plugins list` shows them.
        allocator: name or place of the allocator; the machine's own by default.
        allocator_options: of the allocator.
        shape: of the jobs, on machines whose allocators do not choose it: slim by default.
        fat_probability: share of fat jobs, in place of `shape`.
        torus_probability: share of jobs that are tori; none by default.
        load: offered load, reached by scaling the arrivals; the log's own by default.
        max_jobs: number of jobs to take, the first submitted; all by default.
        size_divisor: processors of the log that make one unit of the machine.
        overrun: what happens to a job that outruns its requested time: `cut` or `keep`.
        event_order: of one instant: `batch` or `pyss`.
        reservations: advance reservations, written as on the command line or as objects.
        malleable_share: probability that a job is malleable (`simulation.malleable.malleability`); all are rigid by
            default.
        resize_cost_s: seconds for which a malleable job stands still at every change of its size.
        failures: units that fail or are drained during the run (`simulation.queueing.outages`): `MTBF:REPAIR`, a file,
            or outages by begin. Their jobs are requeued.
        seed: of the drawn shapes, connections, synthetic jobs, speed-ups and failures.
        watch: called with the log and the number of jobs, or None where a compiled loop runs them all at once without
            a report of single ones; what it returns is called with every job that ends.

    Raises:
        ConfigurationError: something of that name does not exist, or an option is wrong.
        WorkloadError: the log is not here or damaged, or none of its jobs fits the machine.
        MachineError: the scheduler fails, or leaves jobs waiting for ever.
    """
    own = machine.copy() if not isinstance(machine, str | Path) else None
    if own is not None and (allocator is not None or allocator_options):
        raise ConfigurationError("a machine that is made already has its allocator", key="allocator")
    chosen = own or load_machine(str(machine), allocator=allocator, allocator_options=allocator_options)
    if not has_places(chosen) and (shape, fat_probability, torus_probability) != (None, None, None):
        raise ConfigurationError("jobs of a flat machine have no shape and no connection", key="shape")
    if shape is not None and fat_probability is not None:
        raise ConfigurationError("--shape and --fat-probability say the same thing; give one", key="shape")
    made = scheduler() if isinstance(scheduler, type) else scheduler
    options = SchedulerOptions(made, scheduler_options or {}, Overrun(overrun), EventOrder(event_order))
    options.declared()
    asked = tuple(reservation_of(one, chosen) if isinstance(one, str) else one for one in reservations)
    name, workload = workload_of(log, prod(chosen.extents), load, seed)
    named = chosen.name if own is not None else str(machine)
    jobs = shaped_jobs(
        jobs_of_log(workload, size_divisor=size_divisor, max_jobs=max_jobs),
        chosen,
        fat_probability=float(shape == "fat") if fat_probability is None else fat_probability,
        torus_probability=torus_probability or 0.0,
        seed=seed,
        any_shape=shape is None and fat_probability is None and chosen.traits.chooses_shapes,
    )
    if load is not None:
        jobs = jobs.with_load(chosen.capacity, load)
    _check_fit(chosen, jobs, workload)
    if has_cables(chosen) and chosen.layout.block_times:
        if malleable_share:
            raise ConfigurationError("jobs of a machine whose blocks boot keep their size", key="malleable-share")
        jobs = jobs.in_blocks(chosen.layout.around_s)
    first = int(jobs.jobs.submit_time[0])
    outages = outages_of(failures, chosen, first=first, seed=seed) if isinstance(failures, str) else failures or ()
    if failures is not None and asked:
        raise ConfigurationError("reservations and failures exclude each other", key="failures")
    sizes = [request.size for request in jobs.requests]
    malleable = malleable_share_of(
        jobs.jobs.job_number, sizes, chosen.capacity, malleable_share, resize_cost_s, seed, options.event_order
    )
    begun = None if watch is None else partial(watch, workload)
    result, wall_s, ended = _run(chosen, jobs, options, asked, malleable, outages, begun)
    title = f"{name} on {chosen.name}, {options.name}: {len(result.jobs):,} jobs"
    summary = None if malleable is None else malleable.summary(result)
    if summary is not None:
        title += f", {summary.jobs:,} of them malleable"
    return SimulatedRun(chosen, workload, options.name, title, wall_s, result, ended, summary, named)


def _run(
    machine: Machine,
    jobs: ShapedJobs,
    options: SchedulerOptions,
    reservations: tuple[ReservationRequest, ...],
    malleable: MalleableShare | None,
    outages: Iterable[Outage],
    begun: Callable[[int | None], Callable[[EndedJob], None] | None] | None,
) -> tuple[LogRun, float, tuple[EndedJob, ...] | None]:
    """Return what came out, the seconds that it took, and all jobs that ended; None where a run only counts."""
    only_counts = malleable is None and counts_only(machine, options, reservations)
    on_end = None if begun is None else begun(None if only_counts else len(jobs.jobs))
    ended: list[EndedJob] = []

    def record(one: EndedJob) -> None:
        ended.append(one)
        if on_end is not None:
            on_end(one)

    warm_up(machine, options)
    began = time.perf_counter()
    result = run_log(
        machine,
        jobs.jobs,
        options,
        requests=jobs.requests,
        reservations=reservations,
        malleability=None if malleable is None else malleable.malleability,
        on_end=None if only_counts else record,
        outages=outages,
        boots=has_cables(machine) and bool(machine.layout.blocks),
    )
    return result, time.perf_counter() - began, None if only_counts else tuple(ended)


def left_out(log: SwfLog) -> int:
    """Jobs of a log that cannot be simulated: without a known size, submission or run time."""
    return len(log) - len(jobs_to_simulate(log))


def workload_of(log: str | Path | SwfLog, units: int, load: float | None, seed: int) -> tuple[str, SwfLog]:
    """Return the name and the jobs of a workload; synthetic ones suit a machine of so many units.

    Raises:
        WorkloadError: the log is not here or damaged.
    """
    if isinstance(log, SwfLog):
        return str(log.source or "log"), log
    if log == SYNTHETIC:
        return SYNTHETIC, synthetic_log(units, SYNTHETIC_DAYS * DAY_S, seed, load=load or DEFAULT_LOAD)
    path = find_log(str(log))
    if path is None:
        raise WorkloadError(
            "there is no such workload log; `ramp logs` shows where they are looked for, `ramp logs --fetch` gets "
            f"one, and `{SYNTHETIC}` needs none",
            path=log,
        )
    return Path(log).name, read_swf(path)


def _check_fit(machine: Machine, jobs: ShapedJobs, log: SwfLog) -> None:
    kinds = {request.kind: request for request in jobs.requests}
    if not any(machine.fits_ever(request) for request in kinds.values()):
        smallest = min(request.size for request in kinds.values())
        raise WorkloadError(
            f"none of the {len(jobs.jobs)} jobs fits {machine.name}, which has {machine.capacity} units; the smallest "
            f"one asks for {smallest} (--size-divisor?)",
            path=log.source,
        )
