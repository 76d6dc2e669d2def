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
from click.core import ParameterSource
from rich.table import Table

from ramp.cli.options import RealNumber, WholeNumber, example, output_type
from ramp.cli.views.output import console
from ramp.errors import ConfigurationError
from ramp.options import value_of_text
from simulation.cli.progress import progress_of
from simulation.koala.run import COMPONENTS_MAX, KoalaRun, koala
from simulation.koala.scheduler import APPROACHES, PLACEMENT_POLICIES, SIZE_POLICIES
from simulation.lab import check_pictures, tell_loops
from simulation.queueing.outages import FAILURES_FORM
from simulation.queueing.queue_simulation import Overrun
from simulation.queueing.whole_log import RESERVATION_FORM, EventOrder
from simulation.schedulers.declaration import SCHEDULERS
from simulation.simulated_run import SimulatedRun, left_out
from simulation.simulated_run import simulate as simulate_log
from simulation.workload.logs import find_log
from simulation.workload.swf import SwfLog

_PROBABILITY = RealNumber(0, 1)
_OF_QUEUES = {
    "scheduler": "KOALA is the scheduler",
    "options": "KOALA's policies have no options",
    "allocator": "the nodes of a cluster are alike",
    "allocator_options": "the nodes of a cluster are alike",
    "shape": "jobs of clusters have no shape",
    "fat_probability": "jobs of clusters have no shape",
    "torus_probability": "jobs of clusters have no shape",
    "overrun": "KOALA uses no requested times",
    "event_order": "KOALA has an order of its own",
    "reservations": "KOALA has no advance reservations",
    "failures": "the nodes of KOALA's clusters do not fail",
}
"""Options that do not go with --approach, and why."""
_OF_KOALA = ("sizes", "placement", "threshold", "poll_s", "tries", "fill", "components")
_NAMED = "NAME|MODULE:NAME|FILE.py:NAME"


@click.command(
    epilog=example(
        "ramp simulate --machine bgl --log SDSC-SP2-1998-4.2-cln --scheduler easy --shape fat --load 1.0",
        "ramp simulate --machine das3 --log wpm --approach pwa --sizes egs --threshold 30 --resize-cost 30",
    )
)
@click.option("--machine", "machine_name", required=True, metavar="FILE|NAME|flat:N", help="The machine.")
@click.option(
    "--log",
    "log_name",
    required=True,
    metavar="FILE|NAME|synthetic",
    help="Workload log (SWF, plain or .gz), or synthetic; with --approach also the paper's wm, wmr, wpm (W'm), wpmr.",
)
@click.option(
    "--scheduler",
    metavar=_NAMED,
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
    metavar=_NAMED,
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
    help="Share of malleable jobs [default: 0]; with --scheduler malleable or --approach.",
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
@click.option(
    "--approach",
    metavar=_NAMED,
    help="Run the clusters of the machine under KOALA, not as one pool; who has precedence: "
    + ", ".join(APPROACHES.names())
    + ".",
)
@click.option(
    "--sizes",
    metavar=_NAMED,
    default="fpsma",
    show_default=True,
    help="With --approach: size policy: " + ", ".join(SIZE_POLICIES.names()) + ".",
)
@click.option(
    "--placement",
    metavar=_NAMED,
    default="wf",
    show_default=True,
    help="With --approach: placement policy: " + ", ".join(PLACEMENT_POLICIES.names()) + ".",
)
@click.option(
    "--threshold",
    type=WholeNumber(min=0),
    metavar="NODES",
    help="With --approach: nodes of each cluster kept for its own users [default: the machine's file].",
)
@click.option(
    "--poll",
    "poll_s",
    type=WholeNumber(min=1),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="With --approach: time between two polls of the information service.",
)
@click.option("--tries", type=WholeNumber(min=1), help="With --approach: failed placements until a submission fails.")
@click.option("--fill", is_flag=True, help="With --approach: malleable jobs start with all free nodes they can use.")
@click.option(
    "--components",
    type=WholeNumber(min=1, max=COMPONENTS_MAX),
    default=1,
    show_default=True,
    help="With --approach: equal components of each rigid job; more if a job fits no cluster.",
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

    With --approach the clusters of the machine are scheduled by KOALA. Rigid jobs larger than a cluster are split into
    the fewest equal components that fit, and start on all their clusters at once. Requested times are not used.
    """
    _check_outputs(log_name, {"trace": trace, "swf": swf, "gantt": gantt, "timeline": timeline})
    chosen = _chosen(given)
    tell_loops()
    run: SimulatedRun
    with contextlib.ExitStack() as stack:

        def begun(log: SwfLog, jobs: int | None) -> Callable[..., None] | None:
            if left := left_out(log):
                click.echo(f"{left} of the log's {len(log)} jobs have no known size, submission or run time", err=True)
            if partial := log.partial:
                words = "lines are partial executions (status 2, 3, 4), replaced by one line for each job"
                click.echo(f"{partial} of the log's {words}", err=True)
            if jobs is None:
                return None
            advance, ended = stack.enter_context(progress_of("jobs")), itertools.count(1)
            return lambda _: advance(next(ended), jobs)

        if "approach" in chosen:
            run = koala(log_name, machine=machine_name, watch=begun, **chosen)
        else:
            run = simulate_log(
                log_name,
                machine=machine_name,
                scheduler_options=_options_of(options, "--option"),
                allocator_options=_options_of(allocator_options, "--allocator-option"),
                watch=begun,
                **chosen,
            )
    for path, write in ((trace, run.write_trace), (swf, run.write_swf), (gantt, run.gantt), (timeline, run.timeline)):
        if path is not None:
            write(path)
    for text, granted in zip(given["reservations"], run.result.reservations, strict=True):
        if granted is None:
            click.echo(f"no free space for the reservation {text} on {run.machine.name}", err=True)
    _report(run, as_json)


def _chosen(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the kind of run that is asked for.

    Raises:
        ConfigurationError: there is neither a scheduler nor an approach, or an option does not go with it.
    """
    context = click.get_current_context()
    stated = {name for name in context.params if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
    approach = given["approach"]
    if approach is None:
        if wrong := [name for name in _OF_KOALA if name in stated]:
            raise ConfigurationError("needs --approach", key=_flag(context, wrong[0]))
        if given["scheduler"] is None:
            raise ConfigurationError("is missing; give it, or --approach for a machine of clusters", key="scheduler")
        return {name: value for name, value in given.items() if name not in (*_OF_KOALA, "approach")}
    if wrong := [name for name in _OF_QUEUES if name in stated]:
        raise ConfigurationError(
            f"does not go with --approach: {_OF_QUEUES[wrong[0]]}; remove it", key=_flag(context, wrong[0])
        )
    return {name: value for name, value in given.items() if name not in _OF_QUEUES}


def _flag(context: click.Context, name: str) -> str:
    """Return an option as it is written."""
    return next(each.opts[-1] for each in context.command.params if each.name == name)


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
        hint = "--size-divisor or --placement fcm?" if isinstance(run, KoalaRun) else "--size-divisor?"
        click.echo(f"{refused} jobs do not fit {run.machine.name} even when it is empty ({hint})", err=True)
    malleable = run.malleable
    if isinstance(run, KoalaRun):
        summary |= {} if as_json else run.measures
    elif malleable is not None and malleable.jobs and not malleable.changed_jobs:
        click.echo(f"the scheduler {run.scheduler} does not resize jobs; use --scheduler malleable", err=True)
    if as_json:
        further = {} if malleable is None else {"malleable": asdict(malleable)}
        click.echo(json.dumps(summary | further | ({"koala": run.measures} if isinstance(run, KoalaRun) else {})))
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
