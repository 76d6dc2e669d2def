"""`ramp simulate`: workload logs through machines."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ramp.cli.options import example
from ramp.errors import ConfigurationError, WorkloadError
from simulation.cli.reservations import RESERVATION_FORM, reservation_of
from simulation.cli.run_pictures import RunPictures
from simulation.machine_files import load_machine, machine_chooses_shapes
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import Machine
from simulation.queueing.job_table import jobs_of_log, jobs_to_simulate
from simulation.queueing.shaped_jobs import ShapedJobs, shaped_jobs
from simulation.queueing.simulation import EndedJob, Overrun
from simulation.queueing.trace import TraceWriter, schedule_as_swf
from simulation.queueing.whole_log import (
    EventOrder,
    LogRun,
    ReservationRequest,
    SchedulerOptions,
    replay_ends,
    run_log,
    warm_up,
)
from simulation.schedulers.registry import SCHEDULER_NAMES
from simulation.schedulers.window_first_fit import WINDOW_DEFAULT, WindowCounts
from simulation.workload.logs import find_log
from simulation.workload.metrics import summarise
from simulation.workload.swf import SwfLog, read_swf, write_swf

_PROBABILITY = click.FloatRange(0, 1)


@click.command(
    epilog=example("ramp simulate --machine bgl --log SDSC-SP2-1998-4.2-cln --scheduler easy --shape fat --load 1.0")
)
@click.option("--machine", "machine_name", required=True, metavar="FILE|NAME|flat:N", help="The machine.")
@click.option("--log", "log_name", required=True, metavar="FILE|NAME", help="Workload log (SWF, plain or .gz).")
@click.option("--scheduler", required=True, type=click.Choice(SCHEDULER_NAMES), help="Who may start when.")
@click.option("--allocator", metavar="NAME", help="Where jobs are placed; overrules the machine's file.")
@click.option("--shape", type=click.Choice(["slim", "fat"]), help="Shapes of the jobs [default: slim; any on Angara].")
@click.option("--fat-probability", type=_PROBABILITY, help="Share of fat jobs, in place of --shape.")
@click.option("--torus-probability", type=_PROBABILITY, help="Share of jobs that are tori [default: 0].")
@click.option("--load", type=float, help="Offered load, reached by scaling the arrivals [default: the log's].")
@click.option("--max-jobs", type=click.IntRange(min=1), help="Take only the first N jobs.")
@click.option("--size-divisor", type=click.IntRange(min=1), default=1, help="Processors of the log in one unit.")
@click.option("--window", type=click.IntRange(min=1), default=WINDOW_DEFAULT, help="Of window-first-fit.")
@click.option(
    "--window-counts",
    type=click.Choice([str(counts) for counts in WindowCounts]),
    default=str(WindowCounts.INDICES),
    help="Window positions: numbers of submission, or jobs that still wait.",
)
@click.option(
    "--overrun",
    type=click.Choice([str(overrun) for overrun in Overrun]),
    default=str(Overrun.CUT),
    show_default=True,
    help="End a job that outruns its requested time, or keep it running.",
)
@click.option(
    "--event-order",
    type=click.Choice([str(order) for order in EventOrder]),
    default=str(EventOrder.BATCH),
    show_default=True,
    help="Of one instant: all ends, all submissions, one decision; or as the simulator pyss does (easy on flat:N).",
)
@click.option("--reservation", "reservations", multiple=True, metavar="B:E:SIZE", help=RESERVATION_FORM)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the drawn shapes and connections.")
@click.option("--trace", type=click.Path(dir_okay=False, path_type=Path), help="Write one JSON line a job, and "
              "one a reservation.")  # fmt: skip
@click.option("--swf", type=click.Path(dir_okay=False, path_type=Path), help="Write the schedule as a workload log.")
@click.option(
    "--gantt",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PNG",
    help="Draw which units each job held when.",
)
@click.option(
    "--timeline",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PNG",
    help="Draw utilisation and queue over time.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def simulate(
    *,
    machine_name: str,
    log_name: str,
    scheduler: str,
    allocator: str | None,
    shape: str | None,
    fat_probability: float | None,
    torus_probability: float | None,
    load: float | None,
    max_jobs: int | None,
    size_divisor: int,
    window: int,
    window_counts: str,
    overrun: str,
    event_order: str,
    reservations: tuple[str, ...],
    seed: int,
    trace: Path | None,
    swf: Path | None,
    gantt: Path | None,
    timeline: Path | None,
    as_json: bool,
) -> None:
    """Run a workload log through one machine, its allocator and a scheduler.

    Utilisation is work done / (units x time from the first submission to the last end). Jobs larger than the machine
    are refused and counted. Backfilling plans with requested times; a job that outruns its own is ended, or kept with
    --overrun keep.

    Of what happens in one instant all ends come first, then all submissions, then one decision. With --event-order
    pyss it is as in that simulator: submissions before ends, a decision after each, and the plan counts a job as gone
    from its expected end on.
    """
    machine = load_machine(machine_name, allocator=allocator)
    _check_shapes(machine, shape, fat_probability, torus_probability)
    _check_window(scheduler)
    asked = [reservation_of(text, machine) for text in reservations]
    _check_outputs(log_name, {"trace": trace, "swf": swf, "gantt": gantt, "timeline": timeline})
    log = _read_log(log_name)
    jobs = shaped_jobs(
        jobs_of_log(log, size_divisor=size_divisor, max_jobs=max_jobs),
        machine,
        fat_probability=float(shape == "fat") if fat_probability is None else fat_probability,
        torus_probability=torus_probability or 0.0,
        seed=seed,
        any_shape=shape is None and fat_probability is None and machine_chooses_shapes(machine),
    )
    if load is not None:
        jobs = jobs.with_load(machine.capacity, load)
    _check_fit(machine, jobs, log)
    options = SchedulerOptions(
        scheduler, window, WindowCounts(window_counts), Overrun(overrun), EventOrder(event_order)
    )
    pictures = RunPictures(machine, gantt, timeline)
    run, wall_s = _run(machine, jobs, options, asked, trace, pictures)
    if swf is not None:
        write_swf(swf, schedule_as_swf(log, run, f"simulated on {machine.name} with {scheduler}"))
    pictures.draw(run, f"{Path(log_name).name} on {machine.name}, {scheduler}: {len(run.jobs):,} jobs")
    for text, granted in zip(reservations, run.reservations, strict=True):
        if granted is None:
            click.echo(f"there is no room for the reservation {text} on {machine.name}", err=True)
    _report(machine, run, wall_s, as_json)


def _run(
    machine: Machine,
    jobs: ShapedJobs,
    options: SchedulerOptions,
    asked: Sequence[ReservationRequest],
    trace: Path | None,
    pictures: RunPictures,
) -> tuple[LogRun, float]:
    """Simulate, and write and record what is asked for; also how many seconds the simulation itself took."""
    with contextlib.ExitStack() as stack:
        observers: list[Callable[[EndedJob], None]] = []
        writer = None
        if trace is not None:
            writer = TraceWriter(stack.enter_context(_open_for_writing(trace)), machine)
            observers.append(writer)
        if pictures.recorder is not None:
            observers.append(pictures.recorder)
        replayed = isinstance(machine, FlatMachine) and not asked  # placed nowhere: the ends say all
        if not replayed:
            observers.extend(stack.enter_context(_progress(len(jobs.jobs))))
        observer = _all_of(observers)
        warm_up(machine, options)
        began = time.perf_counter()
        run = run_log(
            machine,
            jobs.jobs,
            options,
            requests=jobs.requests,
            reservations=asked,
            on_end=None if replayed else observer,
        )
        wall_s = time.perf_counter() - began
        if replayed and observer is not None:
            replay_ends(run, observer)
        for number, granted in enumerate(run.reservations, start=1):
            if writer is not None and granted is not None:
                writer.reservation(f"reservation{number}", granted)
    return run, wall_s


def _check_shapes(
    machine: Machine, shape: str | None, fat_probability: float | None, torus_probability: float | None
) -> None:
    """Refuse what shapes and connections cannot be."""
    if isinstance(machine, FlatMachine) and (shape, fat_probability, torus_probability) != (None, None, None):
        raise ConfigurationError("jobs of a flat machine have no shape and no connection", key="shape")
    if shape is not None and fat_probability is not None:
        raise ConfigurationError("--shape and --fat-probability say the same thing; give one", key="shape")


def _check_window(scheduler: str) -> None:
    """Refuse a window for a scheduler that has none, instead of not heeding it."""
    context = click.get_current_context()
    for name in ("window", "window_counts"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and not scheduler.startswith("window-"):
            having = ", ".join(known for known in SCHEDULER_NAMES if known.startswith("window-"))
            raise ConfigurationError(f"{scheduler} has no window; {having} have", key="--" + name.replace("_", "-"))


def _check_fit(machine: Machine, jobs: ShapedJobs, log: SwfLog) -> None:
    """Refuse a log of which no job fits the machine: its summary would be all zeros."""
    kinds = {request.kind: request for request in jobs.requests}
    if not any(machine.fits_ever(request) for request in kinds.values()):
        smallest = min(request.size for request in kinds.values())
        raise WorkloadError(
            f"none of the {len(jobs.jobs)} jobs fits {machine.name}, which has {machine.capacity} units; the smallest "
            f"one asks for {smallest} (--size-divisor?)",
            path=log.source,
        )


def _check_outputs(log_name: str, outputs: dict[str, Path | None]) -> None:
    """Refuse before the simulation what could not be written after it, or would overwrite something of its own."""
    log = find_log(log_name)
    seen: dict[Path, str] = {}
    for key, path in outputs.items():
        if path is None:
            continue
        if log is not None and path.resolve() == log.resolve():
            raise ConfigurationError("is the log that is read", path=path, key=key)
        other = seen.setdefault(path.resolve(), key)
        if other != key:
            raise ConfigurationError(f"--{other} and --{key} name the same file", path=path, key=key)
        writable = path if path.exists() else path.parent
        if not os.access(writable, os.W_OK):
            reason = "there is no such folder" if not writable.exists() else "it is not writable"
            raise ConfigurationError(f"cannot be written: {reason}", path=path, key=key)


def _read_log(name: str) -> SwfLog:
    path = find_log(name)
    if path is None:
        raise WorkloadError(
            "there is no such workload log; `ramp logs list` shows where they are looked for", path=name
        )
    log = read_swf(path)
    left_out = len(log) - len(jobs_to_simulate(log))
    if left_out:
        click.echo(f"{left_out} of the log's {len(log)} jobs have no known size, submission or run time", err=True)
    return log


@contextlib.contextmanager
def _open_for_writing(path: Path) -> Iterator[Any]:
    try:
        stream = path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot be written: {error.strerror}", path=path, key="trace") from error
    with stream:
        yield stream


def _all_of(observers: list[Callable[[EndedJob], None]]) -> Callable[[EndedJob], None] | None:
    if len(observers) < 2:
        return observers[0] if observers else None

    def tell(ended: EndedJob) -> None:
        for observer in observers:
            observer(ended)

    return tell


@contextlib.contextmanager
def _progress(total: int) -> Iterator[list[Callable[[EndedJob], None]]]:
    """A progress bar on standard error where that is a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield []
        return
    columns = (TextColumn("jobs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("jobs", total=total)
        step = max(total // 200, 1)
        count = 0

        def advance(ended: EndedJob) -> None:
            nonlocal count
            count += 1
            if count % step == 0:
                progress.update(task, completed=count)

        yield [advance]


def _report(machine: Machine, run: LogRun, wall_s: float, as_json: bool) -> None:
    summary: dict[str, Any] = asdict(summarise(run.schedule))
    summary["wall_s"] = wall_s
    summary["jobs_per_s"] = summary["jobs"] / wall_s if wall_s > 0 else 0.0
    summary["refused"] = run.refused
    summary["ended_at_request"] = int((run.schedule.end_time - run.schedule.start_time < run.jobs.run_time).sum())
    if run.reservations:
        summary["reservations_granted"] = sum(reservation is not None for reservation in run.reservations)
    if run.refused:
        click.echo(f"{run.refused} jobs do not fit {machine.name} even when it is empty (--size-divisor?)", err=True)
    if as_json:
        click.echo(json.dumps(summary))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for key, value in summary.items():
        table.add_row(key, f"{value:,.3f}" if isinstance(value, float) else f"{value:,}")
    Console(highlight=False).print(table)
