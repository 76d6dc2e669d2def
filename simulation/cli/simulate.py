"""`ramp simulate`: workload logs through machines."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ramp.cli.options import RealNumber, WholeNumber, example, output_type
from ramp.cli.views.visible import console
from ramp.errors import ConfigurationError
from ramp.options import value_of_text
from simulation.cli.progress import progress_of
from simulation.lab import check_pictures, tell_loops
from simulation.queueing.outages import FAILURES_FORM
from simulation.queueing.queue_simulation import EndedJob, Overrun
from simulation.queueing.reservation_text import RESERVATION_FORM
from simulation.queueing.whole_log import EventOrder
from simulation.schedulers.declaration import SCHEDULERS
from simulation.simulated_run import PreparedRun, SimulatedRun, left_out
from simulation.simulated_run import simulate as simulate_log
from simulation.workload.logs import find_log

_PROBABILITY = RealNumber(0, 1)


@click.command(
    epilog=example("ramp simulate --machine bgl --log SDSC-SP2-1998-4.2-cln --scheduler easy --shape fat --load 1.0")
)
@click.option("--machine", "machine_name", required=True, metavar="FILE|NAME|flat:N", help="The machine.")
@click.option(
    "--log",
    "log_name",
    required=True,
    metavar="FILE|NAME|synthetic",
    help="Workload log (SWF, plain or .gz), or synthetic.",
)
@click.option(
    "--scheduler",
    required=True,
    metavar="NAME|MODULE:NAME|FILE.py:NAME",
    help="Scheduler: " + ", ".join(SCHEDULERS.names()) + ", or one of your own.",
)
@click.option(
    "-o",
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Option of the scheduler (see `ramp plugins list`).",
)
@click.option(
    "--allocator",
    metavar="NAME|MODULE:NAME|FILE.py:NAME",
    help="Allocator of the jobs; overrides the machine's file.",
)
@click.option(
    "--allocator-option", "allocator_options", multiple=True, metavar="NAME=VALUE", help="Option of the allocator."
)
@click.option("--shape", type=click.Choice(["slim", "fat"]), help="Shapes of the jobs [default: slim; any on Angara].")
@click.option("--fat-probability", type=_PROBABILITY, help="Share of fat jobs, instead of --shape.")
@click.option("--torus-probability", type=_PROBABILITY, help="Share of jobs that are tori [default: 0].")
@click.option("--load", type=RealNumber(), help="Offered load; arrivals are scaled to reach it [default: the log's].")
@click.option("--max-jobs", type=WholeNumber(min=1), help="Number of jobs to use, the first of the log.")
@click.option("--size-divisor", type=WholeNumber(min=1), default=1, help="Processors of the log per unit.")
@click.option(
    "--overrun",
    type=click.Choice([str(overrun) for overrun in Overrun]),
    default=str(Overrun.CUT),
    show_default=True,
    help="What happens to a job that exceeds its requested time: end it or keep it running.",
)
@click.option(
    "--event-order",
    type=click.Choice([str(order) for order in EventOrder]),
    default=str(EventOrder.BATCH),
    show_default=True,
    help="Order of simultaneous events: ends, submissions, then one decision; or that of pyss (easy on flat:N).",
)
@click.option("--reservation", "reservations", multiple=True, metavar="B:E:SIZE", help=RESERVATION_FORM)
@click.option("--failures", metavar="MTBF:REPAIR|FILE", help=f"Units that fail during the run: {FAILURES_FORM}.")
@click.option(
    "--malleable-share",
    type=_PROBABILITY,
    metavar="SHARE",
    help="Share of malleable jobs [default: 0]; with --scheduler malleable.",
)
@click.option(
    "--resize-cost",
    "resize_cost_s",
    type=WholeNumber(min=0),
    default=0,
    show_default=True,
    metavar="SECONDS",
    help="Pause of a malleable job at each change of size, in seconds.",
)
@click.option(
    "--seed",
    type=WholeNumber(min=0),
    default=1,
    show_default=True,
    help="Seed of random shapes, connections and speed-ups.",
)
@click.option("--trace", type=output_type, help="File with one JSON line for each job and reservation.")
@click.option("--swf", type=output_type, help="File of the schedule as a workload log.")
@click.option("--gantt", type=output_type, metavar="PNG", help="Picture of the units of each job over time.")
@click.option("--timeline", type=output_type, metavar="PNG", help="Picture of utilisation and queue over time.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def simulate(
    *,
    machine_name: str,
    log_name: str,
    options: tuple[str, ...],
    allocator_options: tuple[str, ...],
    trace: Path | None,
    swf: Path | None,
    gantt: Path | None,
    timeline: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Run a workload log through one machine, its allocator and a scheduler.

    Utilisation is work done / (units x time from the first submission to the last end). Jobs larger than the machine
    are refused and counted. Backfilling plans with requested times. A job that exceeds its requested time is ended, or
    continues with --overrun keep.

    Events of one instant are processed in this order: ends, submissions, then one decision. --event-order pyss follows
    that simulator: submissions before ends, a decision after each, the plan counts a job as gone at its expected
    end, and a job that outruns its request is planned with its run time.

    With --malleable-share some jobs are malleable: they prefer the log's size, may have a fourth to four times of it,
    and speed up by Downey's model, drawn for each. A job's run time follows from its speed-up; written logs contain the
    mean of its sizes.
    """
    _check_outputs(log_name, {"trace": trace, "swf": swf, "gantt": gantt, "timeline": timeline})
    tell_loops()

    with contextlib.ExitStack() as stack:

        def watch(prepared: PreparedRun) -> Callable[[EndedJob], None] | None:
            if left := left_out(prepared.log):
                words = "jobs have no known size, submission or run time"
                click.echo(f"{left} of the log's {len(prepared.log)} {words}", err=True)
            if partial := prepared.log.partial:
                words = "lines are partial executions (status 2, 3, 4), replaced by one line for each job"
                click.echo(f"{partial} of the log's {words}", err=True)
            if prepared.counts_only:
                return None
            advance, ended = stack.enter_context(progress_of("jobs")), itertools.count(1)
            return lambda _: advance(next(ended), len(prepared.jobs.jobs))

        run = simulate_log(
            log_name,
            machine=machine_name,
            scheduler_options=_options_of(options, "--option"),
            allocator_options=_options_of(allocator_options, "--allocator-option"),
            watch=watch,
            **given,
        )
    for path, write in ((trace, run.write_trace), (swf, run.write_swf), (gantt, run.gantt), (timeline, run.timeline)):
        if path is not None:
            write(path)
    for text, granted in zip(given["reservations"], run.result.reservations, strict=True):
        if granted is None:
            click.echo(f"no free space for the reservation {text} on {run.machine.name}", err=True)
    _report(run, as_json)


def _options_of(words: Sequence[str], key: str) -> dict[str, Any]:
    options = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigurationError(f"got {word!r}, expected NAME=VALUE", key=key)
        options[name.replace("-", "_")] = value_of_text(value)
    return options


def _check_outputs(log_name: str, outputs: dict[str, Path | None]) -> None:
    """Refuse before the simulation what could not be written after it, or would overwrite something of its own."""
    log = find_log(log_name)
    seen: dict[Path, str] = {}
    for key, path in outputs.items():
        if path is None:
            continue
        if key in {"gantt", "timeline"}:
            check_pictures(f"--{key}")
        if log is not None and path.resolve() == log.resolve():
            raise ConfigurationError("is the log that is read", path=path, key=key)
        other = seen.setdefault(path.resolve(), key)
        if other != key:
            raise ConfigurationError(f"is also the file of --{other}; give another", path=path, key=key)
        writable = path if path.exists() else path.parent
        if not os.access(writable, os.W_OK):
            reason = "there is no such folder" if not writable.exists() else "it is not writable"
            raise ConfigurationError(f"cannot be written: {reason}", path=path, key=key)


def _report(run: SimulatedRun, as_json: bool) -> None:
    summary: dict[str, Any] = asdict(run.metrics)
    if not run.result.reservations:
        del summary["reservations_granted"]
    if not run.result.outages:
        del summary["requeued"]
    if refused := run.metrics.refused:
        click.echo(f"{refused} jobs do not fit {run.machine.name} even when it is empty (--size-divisor?)", err=True)
    malleable = run.malleable
    if malleable is not None and malleable.jobs and not malleable.changed_jobs:
        click.echo(f"the scheduler {run.scheduler} does not resize jobs; use --scheduler malleable", err=True)
    if as_json:
        click.echo(json.dumps(summary if malleable is None else {**summary, "malleable": asdict(malleable)}))
        return
    if malleable is not None:
        summary |= malleable.measures
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for key, value in summary.items():
        table.add_row(key, f"{value:,.3f}" if isinstance(value, float) else f"{value:,}")
    console().print(table)
    for note in () if malleable is None else malleable.notes:
        click.echo(note)
