"""`ramp launch`, `jobs` and `job`: jobs on reservations."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import click

from ramp.cli.completing import complete_ids
from ramp.cli.connection import ask, open_market
from ramp.cli.options import WholeNumber, example, file_type, market_options
from ramp.cli.views.output import moment_text, print_json, print_line, print_pairs, print_rows, say
from ramp.client import dialogues
from ramp.client.identifiers import shortened
from ramp.client.jobs.job import Job, job_of
from ramp.client.jobs.work import work_of
from ramp.client.market import Market
from ramp.control.events import JobStanding
from ramp.model.contents.jobs import STDOUT
from ramp.model.instant import from_datetime, iso, seconds
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.state_folder import StateFolder

LOOK_AGAIN_S: Final = 1.0
"""Pause between two looks at a job that is waited for, in seconds."""

TOLD_EVERY_S: Final = 10.0
"""Interval in seconds between state lines while waiting for a job."""

WAITED: Final = (
    "0 done; 1 refused, failed, or no market is running; with --wait also if the job did not end well; 2 bad input"
)


@click.command(
    epilog=example(
        "ramp launch thunder3-1 -- hostname",
        "ramp launch request-1f0c9a5e --script job.sh --input data.csv -- --steps 100",
    ),
    context_settings={"ignore_unknown_options": True},
)
@click.argument("any_id", shell_complete=complete_ids("request", "agreement", "reservation"), metavar="ID")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--script", type=file_type, metavar="FILE", help="Script to stage and run; COMMAND becomes its arguments."
)
@click.option(
    "--input", "inputs", type=file_type, multiple=True, metavar="FILE", help="Input file to stage; repeatable."
)
@click.option("--cores", type=WholeNumber(min=1), metavar="N", help="Number of cores on each slot (default: all).")
@click.option("--apart", is_flag=True, help="Start each unit with its own slot, independent of the others.")
@market_options
def launch(
    any_id: str,
    command: tuple[str, ...],
    script: Path | None,
    inputs: tuple[Path, ...],
    cores: int | None,
    apart: bool,
    user: str | None,
    state: StateFolder,
    as_json: bool,
) -> None:
    """Run a command or a script on reservations: one job on each slot of ID.

    ID is a reservation, an agreement, or a request. A request gets one job for each unit; all start together where the
    slots overlap. Each job finds the others in RAMP_UNIT, RAMP_UNITS and RAMP_PEERS (UNIT=RESOURCE/RESERVATION,
    separated by spaces).

    The site runs the job in its own folder, as the local account of the buyer, with a clean environment, and ends it at
    the end of the slot. For a simulated machine it runs on the agent's computer, and the output says so. Follow it with
    `ramp jobs` and `ramp job ID --output`.
    """
    market = open_market(state, user)
    work = work_of(command, script=script, inputs=inputs, cores=cores, together=not apart)
    found = _jobs(market, ask(market, dialogues.launch(any_id, work, RandomIds().new), f"launching on {any_id}"))
    if as_json:
        print_json([job_object(each) for each in found])
        return
    for each in found:
        print_line(f"Job {each.job_id}: {each.state} at {each.resource}, due {_moment(each)}{_where(each)}")
        if each.detail:
            say(f"ramp: job {each.job_id}: {each.detail}")


@click.command(epilog=example("ramp jobs", "ramp jobs --json"))
@market_options
def jobs(user: str | None, state: StateFolder, as_json: bool) -> None:
    """Show all jobs with their state and the delivery of their slots.

    Delivery is `on_time` if the job started on all its cores within the site's grace period, `late`, `undelivered` (the
    resource refunds it), or `pending` before that is known.
    """
    market = open_market(state, user)
    found = _jobs(market, ask(market, dialogues.jobs(), "asking the resources"))
    if as_json:
        print_json([job_object(each) for each in found])
        return
    if not found:
        click.echo(f"{market.user} has no jobs; start one with `ramp launch`")
        return
    short = shortened([each.job_id for each in found])
    columns = ("Job", "State", "Resource", "Unit", "Due", "Started", "Cores", "Exit", "Delivery", "Command")
    rows = [
        (
            short[each.job_id],
            each.state,
            each.resource,
            each.unit,
            _moment(each),
            "" if each.started is None else moment_text(from_datetime(each.started)),
            each.cores or "",
            "" if each.exit_code is None else each.exit_code,
            each.delivery,
            " ".join(each.command),
        )
        for each in found
    ]
    print_rows(columns, rows, right=("Unit", "Cores", "Exit"), wrap=("Command",))
    if any(each.simulated for each in found):
        click.echo("Jobs on simulated machines run on the computer of their Resource Agent")


@click.command(
    epilog=example(
        "ramp job 3f9a1c", "ramp job 3f9a1c --wait --output", "ramp job 3f9a1c --file result.csv > result.csv",
        "ramp job 3f9a1c --cancel", exits=WAITED,
    )
)  # fmt: skip
@click.argument("any_id", shell_complete=complete_ids("job"), metavar="ID")
@click.option("--output", "name", flag_value=STDOUT, help="Print its standard output so far.")
@click.option("--errors", "name", flag_value="stderr", help="Print its standard error so far.")
@click.option("--file", "file_name", metavar="NAME", help="Print this file of its folder.")
@click.option("--cancel", is_flag=True, help="Cancel the job; its slot stays bought.")
@click.option("--wait", is_flag=True, help="Wait until the job ends.")
@market_options
@click.pass_context
def job(
    ctx: click.Context,
    any_id: str,
    name: str | None,
    file_name: str | None,
    cancel: bool,
    wait: bool,
    user: str | None,
    state: StateFolder,
    as_json: bool,
) -> None:
    """Show a job, its output, or a file of it; end it, or wait for it."""
    wanted = name or file_name
    if wanted is not None and as_json:
        raise click.UsageError("--json excludes --output, --errors and --file")
    if name is not None and file_name is not None:
        raise click.UsageError("--output, --errors and --file exclude each other; give one")
    market = open_market(state, user)
    asking = f"asking for {any_id}"
    if cancel:
        found = job_of(ask(market, dialogues.cancel_job(any_id), f"ending {any_id}"), market.access.domain)
    else:
        found = job_of(ask(market, dialogues.job(any_id), asking), market.access.domain)
    if wait:
        found = _waited(market, found)
    if wanted is not None:
        sys.stdout.buffer.write(ask(market, dialogues.job_output(found.job_id, wanted), asking))
        sys.stdout.buffer.flush()
    elif as_json:
        print_json(job_object(found))
    else:
        _print(found)
    if wait and found.state != "done":
        say(f"ramp: job {found.job_id}: {found.state}{f': {found.detail}' if found.detail else ''}")
        ctx.exit(1)


def _waited(market: Market, found: Job) -> Job:
    told = time.monotonic()
    while not found.has_ended:
        if time.monotonic() - told > TOLD_EVERY_S:
            told = time.monotonic()
            say(f"ramp: job {found.job_id}: {found.state}, due {_moment(found)}")
        time.sleep(LOOK_AGAIN_S)
        found = job_of(ask(market, dialogues.job(found.job_id), "asking"), market.access.domain)
    return found


def _jobs(market: Market, found: tuple[JobStanding, ...]) -> tuple[Job, ...]:
    return tuple(job_of(each, market.access.domain) for each in found)


def _moment(found: Job) -> str:
    return moment_text(from_datetime(found.due))


def _where(found: Job) -> str:
    if not found.simulated:
        return f", as {found.account}" if found.account else ""
    return ", on the agent's own computer, for the machine is simulated"


def _print(found: Job) -> None:
    print_pairs(
        (
            ("Job", found.job_id),
            ("State", f"{found.state}{f' ({found.detail})' if found.detail else ''}"),
            ("Command", " ".join(found.command)),
            ("Agreement", found.agreement_id),
            ("Resource", f"{found.resource}{_where(found)}"),
            ("Due", _moment(found)),
            ("Started", "" if found.started is None else moment_text(from_datetime(found.started))),
            ("Ended", "" if found.ended is None else moment_text(from_datetime(found.ended))),
            ("Cores", found.cores or ""),
            ("Exit code", "" if found.exit_code is None else found.exit_code),
            ("Delivery", found.delivery),
        )
    )


def job_object(found: Job) -> dict[str, object]:
    """Convert a job to JSON types."""
    return {
        "job_id": found.job_id,
        "agreement_id": found.agreement_id,
        "request_id": found.standing.request_id,
        "resource": found.resource,
        "unit": found.unit,
        "command": list(found.command),
        "state": found.state,
        "detail": found.detail,
        "simulated": found.simulated,
        "account": found.account,
        "cores": found.cores,
        "due": iso(from_datetime(found.due)),
        "started": None if found.started is None else iso(from_datetime(found.started)),
        "ended": None if found.ended is None else iso(from_datetime(found.ended)),
        "start_delay_s": None
        if found.started is None
        else seconds(from_datetime(found.started) - from_datetime(found.due)),
        "exit_code": found.exit_code,
        "delivery": found.delivery,
    }
