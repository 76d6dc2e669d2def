"""`ramp launch` and `ramp jobs`: jobs on reservations."""

from __future__ import annotations

import codecs
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from ramp.cli.connection import open_market
from ramp.cli.options import WholeNumber, complete_ids, example, file_type, folder_type, market_options
from ramp.cli.views.fields import DATETIME, NUMBER, PROSE, Field, Fields
from ramp.cli.views.output import count_text, moment_text, print_line, printed_as_json, say, waiting, wants_json
from ramp.client.identifiers import shortened
from ramp.client.jobs import Job, JobFile
from ramp.client.market import Market
from ramp.model.contents.jobs import STDOUT
from ramp.model.instant import from_datetime
from ramp.runtime.state_folder import StateFolder

WAITED: Final = (
    "0 done; 1 refused, failed, or no market is running; with --wait and --follow also if the job did not end well; "
    "2 bad input"
)

STARTED: Final[Field[Job]] = Field("started", "Started", lambda job: job.started, DATETIME)
CORES: Final[Field[Job]] = Field("cores", "Cores", lambda job: job.cores, NUMBER, text=lambda job: job.cores or "")
DELIVERY: Final[Field[Job]] = Field("delivery", "Delivery", lambda job: job.delivery)
LISTED: Final[tuple[Field[Job], ...]] = (
    Field("", "State", lambda job: job.state),
    Field("", "Resource", lambda job: job.resource),
    Field("", "Unit", lambda job: job.unit, NUMBER),
    Field("", "Due", lambda job: job.due, DATETIME),
    STARTED,
    CORES,
    Field("", "Exit", lambda job: job.exit_code, NUMBER),
    DELIVERY,
    Field("", "Command", lambda job: shlex.join(job.command), PROSE),
)
JOB: Final[Fields[Job]] = Fields(
    Field("job_id", "Job", lambda job: job.job_id),
    Field("", "State", lambda job: f"{job.state}{f' ({job.detail})' if job.detail else ''}"),
    Field("", "Command", lambda job: shlex.join(job.command)),
    Field("agreement_id", "Agreement", lambda job: job.agreement_id),
    Field("request_id", "", lambda job: job.standing.request_id),
    Field("resource", "Resource", lambda job: job.resource, text=lambda job: f"{job.resource}{_where(job)}"),
    Field("unit", "", lambda job: job.unit),
    Field("command", "", lambda job: list(job.command)),
    Field("state", "", lambda job: job.state),
    Field("detail", "", lambda job: job.detail),
    Field("simulated", "", lambda job: job.simulated),
    Field("account", "", lambda job: job.account),
    Field("due", "Due", lambda job: job.due, DATETIME),
    STARTED,
    Field("ended", "Ended", lambda job: job.ended, DATETIME),
    CORES,
    Field("start_delay_s", "", lambda job: job.started and (job.started - job.due).total_seconds()),
    Field("exit_code", "Exit code", lambda job: job.exit_code),
    DELIVERY,
)
FILES: Final[Fields[JobFile]] = Fields(
    Field("path", "Path", lambda file: file.path, PROSE),
    Field("bytes", "Bytes", lambda file: file.size, NUMBER),
    Field("changed", "Changed", lambda file: file.changed, DATETIME),
)

input_type: Final = click.Path(exists=True, path_type=Path)


@click.command(
    epilog=example(
        "ramp launch thunder3-1 -- hostname",
        "ramp launch request-1f0c9a5e --script job.sh --input data.csv -- --steps 100",
        "ramp launch --application NAMD --application-version 2.12 thunder3-1 --input protein.namd -- protein.namd",
        "ramp launch thunder3-1 --input model/ --env OMP_NUM_THREADS=8 -- model/run",
    ),
    context_settings={"ignore_unknown_options": True},
)
@click.argument("any_id", shell_complete=complete_ids("request", "agreement", "reservation"), metavar="ID")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--script", type=file_type, metavar="FILE", help="Script to stage and run; COMMAND becomes its arguments."
)
@click.option(
    "--input", "inputs", type=input_type, multiple=True, metavar="PATH", help="Input file or folder; repeatable."
)
@click.option(
    "--env", "variables", multiple=True, metavar="NAME=VALUE", help="Environment variable of the job; repeatable."
)
@click.option("--cores", type=WholeNumber(min=1), metavar="N", help="Number of cores on each slot (default: all).")
@click.option("--application", default="", metavar="NAME", help="Application of the seller; COMMAND becomes its input.")
@click.option(
    "--application-version",
    "version",
    default="",
    metavar="VERSION",
    help="Its version (default: that of the request, or the seller's first one).",
)
@click.option("--apart", is_flag=True, help="Start each unit with its own slot, independent of the others.")
@market_options
def launch(
    any_id: str,
    command: tuple[str, ...],
    script: Path | None,
    inputs: tuple[Path, ...],
    variables: tuple[str, ...],
    cores: int | None,
    application: str,
    version: str,
    apart: bool,
    user: str | None,
    state: StateFolder,
) -> None:
    """Run a command or a script on reservations: one job on each slot of ID.

    ID is a reservation, an agreement, or a request. A request gets one job for each unit; all start together where the
    slots overlap. Each job finds the others in RAMP_UNIT, RAMP_UNITS and RAMP_PEERS (UNIT=RESOURCE/RESERVATION,
    separated by spaces).

    The site runs the job in its own folder, as the local account of the buyer, with a clean environment, and ends it at
    the end of the slot. Inputs may have up to 32 MiB compressed. For a simulated machine the job runs on the agent's
    computer, and the output says so. Follow it with `ramp jobs` and `ramp jobs ID --follow`.
    """
    environment = dict(_variable(each) for each in variables)
    market = open_market(state, user)
    with waiting(f"launching on {any_id}"):
        found = market.launch(
            any_id,
            command,
            script=script,
            inputs=inputs,
            cores=cores,
            together=not apart,
            environment=environment,
            application=application,
            version=version,
        )
    if printed_as_json([JOB.plain(each) for each in found]):
        return
    for each in found:
        print_line(f"Job {each.job_id}: {each.state} at {each.resource}, due {_moment(each)}{_where(each)}")
        if each.detail:
            say(f"ramp: job {each.job_id}: {each.detail}")


def _variable(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals:
        raise click.UsageError(f"invalid --env: got {given!r}, expected NAME=VALUE")
    return name, value


def _list(market: Market) -> None:
    with waiting("asking the resources"):
        found = market.jobs()
    if printed_as_json([JOB.plain(each) for each in found]):
        return
    if not found:
        click.echo(f"{market.user} has no jobs; start one with `ramp launch`")
        return
    short = shortened([each.job_id for each in found])
    Fields(Field("", "Job", lambda job: short[job.job_id]), *LISTED).print_table(found)
    if any(each.simulated for each in found):
        click.echo("Jobs on simulated machines run on the computer of their Resource Agent")


@click.command(
    epilog=example(
        "ramp jobs", "ramp jobs 3f9a1c --wait --output", "ramp jobs 3f9a1c --file result.csv > result.csv",
        "ramp jobs 3f9a1c --follow", "ramp jobs 3f9a1c --files", "ramp jobs 3f9a1c --fetch results/",
        "ramp jobs 3f9a1c --cancel", exits=WAITED,
    )
)  # fmt: skip
@click.argument("any_id", required=False, shell_complete=complete_ids("job"), metavar="[ID]")
@click.option("--output", "name", flag_value=STDOUT, help="Print its standard output so far.")
@click.option("--errors", "name", flag_value="stderr", help="Print its standard error so far.")
@click.option("--file", "file_name", metavar="PATH", help="Print this file of its folder.")
@click.option("--files", is_flag=True, help="List its files.")
@click.option("--fetch", type=folder_type, metavar="FOLDER", help="Save its files (or the one of --file) here.")
@click.option("--follow", is_flag=True, help="Print its output (or the file of --file) until it ends.")
@click.option("--cancel", is_flag=True, help="Cancel the job; its slot stays bought.")
@click.option("--wait", is_flag=True, help="Wait until the job ends.")
@market_options
def jobs(
    any_id: str | None,
    name: str | None,
    file_name: str | None,
    files: bool,
    fetch: Path | None,
    follow: bool,
    cancel: bool,
    wait: bool,
    user: str | None,
    state: StateFolder,
) -> int:
    """Show all jobs; or one job, its output, or its files; end it, or wait for it.

    Delivery is `on_time` or `late` if the site has delivered the slot, `undelivered` (the resource refunds it),
    `unknown` if the site has no record (the money stays), `cancelled` if the slot or the job was cancelled before the
    job started, or `pending` before that is known.
    """
    if any_id is None:
        if any((name, file_name, fetch, files, follow, cancel, wait)):
            raise click.UsageError("give the ID of a job; `ramp jobs` lists all")
        _list(open_market(state, user))
        return 0
    _check_one_way(name, file_name, fetch, follow=follow)
    wanted = STDOUT if follow and name is None and file_name is None else name if file_name is None else file_name
    market = open_market(state, user)
    asking = f"asking for {any_id}"
    with waiting(f"ending {any_id}" if cancel else asking):
        found = market.cancel_job(any_id) if cancel else market.job(any_id)
    if follow and wanted is not None:
        _write(market.follow_job(found.job_id, wanted))
        found = market.job(found.job_id)
    if wait:
        found = _waited(market, found)
    if fetch is not None:
        paths = () if wanted is None else (wanted,)
        with waiting(asking):
            saved = market.fetch_job(found.job_id, fetch, *paths)
        print_line(f"Saved {count_text(len(saved), 'file')} in {fetch}")
    elif files:
        with waiting(asking):
            listed = market.job_files(found.job_id)
        FILES.print_list(listed)
    elif follow:
        pass
    elif wanted is not None:
        with waiting(asking):
            output = market.job_output(found.job_id, wanted)
        _write((output,))
    else:
        JOB.print_one(found)
    if (wait or follow) and found.state != "done":
        say(f"ramp: job {found.job_id}: {found.state}{f': {found.detail}' if found.detail else ''}")
        return 1
    return 0


def _check_one_way(name: str | None, file_name: str | None, fetch: Path | None, *, follow: bool) -> None:
    if wants_json() and (name is not None or file_name is not None or fetch is not None or follow):
        raise click.UsageError("--json excludes --output, --errors, --file, --fetch and --follow")
    if name is not None and file_name is not None:
        raise click.UsageError("--output, --errors and --file exclude each other; give one")
    if fetch is not None and follow:
        raise click.UsageError("--fetch and --follow exclude each other; give one")


def _waited(market: Market, found: Job) -> Job:
    def tell(now: Job) -> None:
        if not now.has_ended:
            say(f"ramp: job {now.job_id}: {now.state}, due {_moment(now)}")

    return found if found.has_ended else market.wait_job(found.job_id, tell)


def _write(pieces: Iterable[bytes]) -> None:
    """Write a job's output: the bytes themselves to a file or a pipe, text without hidden characters to a terminal."""
    if sys.stdout.isatty():
        for text in codecs.iterdecode(pieces, "utf-8", "replace"):
            sys.stdout.write(text)
            sys.stdout.flush()
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _moment(found: Job) -> str:
    return moment_text(from_datetime(found.due))


def _where(found: Job) -> str:
    if not found.simulated:
        return f", as {found.account}" if found.account else ""
    return ", on the agent's own computer, for the machine is simulated"
