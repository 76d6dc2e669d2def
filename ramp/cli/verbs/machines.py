"""`ramp qstat` and `ramp resources`: the resources and the states of their machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import click

from ramp.cli.connection import ask, open_market
from ramp.cli.options import complete_agents, duration_type, example, market_options
from ramp.cli.views.fields import DATETIME, NUMBER, Field, Fields
from ramp.cli.views.output import (
    bar_text,
    count_text,
    duration_text,
    moment_text,
    print_line,
    print_rows,
    printed_as_json,
    waiting,
)
from ramp.client import dialogues
from ramp.client.machine_state import MachineJob, MachineReservation, MachineState
from ramp.client.market import Market
from ramp.client.results import Resource
from ramp.client.times import DURATION_HELP
from ramp.errors import ConfigurationError
from ramp.model.instant import Duration, from_datetime
from ramp.options import nearest_name
from ramp.runtime.state_folder import StateFolder

T = TypeVar("T")
JOBS_SHOWN: Final = 10
"""Number of running and queued jobs shown without --all."""


@click.command(epilog=example("ramp qstat thunder1 --horizon 12h"))
@click.argument("machine", shell_complete=complete_agents("resource"))
@click.option("--horizon", type=duration_type, default="24h", show_default=True, metavar="TIME",
              help=f"Period of the projected load, {DURATION_HELP}.")  # fmt: skip
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help=f"Show all jobs of the answer, not only the first {JOBS_SHOWN} of each table.",
)
@market_options
def qstat(machine: str, horizon: Duration, show_all: bool, user: str | None, state: StateFolder) -> None:
    """Show a machine's running and queued jobs, its reservations, and its projected load."""
    market = open_market(state, user)
    check_registered(market, machine)
    shown = ask(market, dialogues.machine(machine, horizon), f"asking {machine}")
    if printed_as_json(shown.snapshot):
        return
    limit = None if show_all else JOBS_SHOWN
    print_line(
        f"{shown.resource} at {moment_text(from_datetime(shown.time))}: {shown.cores_busy} of {shown.cores} cores busy "
        f"({shown.load:.1%}); {source_text(shown)}"
    )
    shares = [part.load for part in shown.projected_load]
    if shares:
        print_line(
            f"projected load over {duration_text(horizon)}: {bar_text(shares)} (mean {sum(shares) / len(shares):.1%})"
        )
    if why := shown.snapshot.get("not_selling"):
        print_line(f"It sells nothing at present: {why}")
    _print_part("Running", JOBS, shown.running, shown.running_total, limit, "end projected")
    _print_part("Queued", JOBS, shown.queued, shown.queued_total, limit, "start and end projected")
    _print_part("Reservations", RESERVATIONS, shown.reservations, len(shown.reservations), limit)


@click.command(
    epilog=example(
        "ramp resources",
        "ramp resources --brief",
        "ramp resources --site west.example",
        "ramp resources --json | jq '.[].start_price'",
    )
)
@click.option("--brief", is_flag=True, help="Only names, from the directory; do not ask the machines.")
@click.option("--site", "sites", multiple=True, metavar="NAME", help="Only resources of this site; repeatable.")
@click.option("--load", "with_load", is_flag=True, help="Also show the numbers of running and queued jobs.")
@market_options
def resources(brief: bool, with_load: bool, sites: tuple[str, ...], user: str | None, state: StateFolder) -> None:
    """Show the sellers that the next request would call: cores, architecture, free cores and start price.

    Every machine is asked; one that does not answer in time shows `?`. A machine that fails, or that sells nothing at
    present, shows the reason. With several sites, a column names the site.
    """
    if brief and with_load:
        raise click.UsageError("--brief and --load exclude each other")
    market = open_market(state, user)
    found = ask(market, dialogues.resources(market.access.domain, draining_too=True), "asking the directory")
    several = len({each.site for each in found}) > 1
    named = {site.lower() for site in sites}
    found = tuple(each for each in found if not named or each.site in named)
    if not brief:
        with waiting(f"asking {count_text(len(found), 'machine')}"):
            found = market.machines(found)
    objects = [
        {"resource": each.name, "address": each.address, "site": each.site, "draining": each.draining}
        | ({} if brief else {**machine_object(each.machine), "not_selling": each.not_selling or None})
        for each in found
    ]
    if printed_as_json(objects):
        return
    if not found:
        click.echo(f"No resource of {' or '.join(sites)} is registered" if sites else "No resource is registered")
    elif brief:
        rows = [(each.name, each.address, "draining" if each.draining else "") for each in found]
        print_rows(("Resource", "Address", ""), rows)  # an address says the site
    else:
        _fields(with_load, several).print_table(found)


def asked(find: Callable[[MachineState], object]) -> Callable[[Resource], object]:
    """Return what a resource's machine says of itself, or "?" where it does not."""

    def found(each: Resource) -> object:
        value = None if each.machine is None else find(each.machine)
        return "?" if value is None else value

    return found


def _driven_by(each: Resource) -> str:
    if each.not_selling:
        return f"not selling: {each.not_selling}"
    return "(no answer)" if each.machine is None else each.machine.source


def _has(key: str) -> Callable[[Resource], bool]:
    return lambda each: each.machine is not None and bool(each.machine.snapshot.get(key))


def _fields(with_load: bool, with_site: bool) -> Fields[Resource]:
    return Fields(
        Field("", "Resource", lambda each: f"{each.name} (draining)" if each.draining else each.name),
        Field("", "Site", lambda each: each.site, shown_if=lambda _: with_site),
        Field("", "Cores", asked(lambda state: state.cores), NUMBER),
        Field("", "Free cores", asked(lambda state: state.cores_free), NUMBER),
        Field("", "Load", asked(lambda state: f"{state.load:.1%}"), NUMBER),
        Field("", "Architecture", asked(lambda state: state.architecture)),
        Field("", "GPUs", asked(lambda state: state.snapshot.get("gpus", "")), shown_if=_has("gpus")),
        Field(
            "",
            "Applications",
            asked(lambda state: state.snapshot.get("applications", "")),
            shown_if=_has("applications"),
        ),
        Field("", "Start price (credits/core-hour)", asked(lambda state: state.start_price), NUMBER),
        Field("", "Running (jobs)", asked(lambda state: state.running_total), NUMBER, shown_if=lambda _: with_load),
        Field("", "Queued (jobs)", asked(lambda state: state.queued_total), NUMBER, shown_if=lambda _: with_load),
        Field("", "Queue driven by", _driven_by),
    )


def check_registered(market: Market, name: str) -> None:
    """Refuse an unknown local name before a wait for its machine; addresses of other domains pass."""
    found = ask(market, dialogues.resources(market.access.domain), "asking the directory")
    names = [each.name for each in found]
    if market.short(name) not in names and "@" not in market.short(name):
        raise ConfigurationError(f"unknown resource {name!r}{nearest_name(name, names)}")


MACHINE: Final[Fields[MachineState]] = Fields(
    Field("cores", "", lambda state: state.cores),
    Field("cores_busy", "", lambda state: state.cores_busy),
    Field("load", "", lambda state: round(state.load, 4)),
    Field("source", "", lambda state: state.source),
    Field("running", "", lambda state: state.running_total),
    Field("queued", "", lambda state: state.queued_total),
    Field("cores_free", "", lambda state: state.cores_free),
    Field("architecture", "", lambda state: state.architecture),
    Field("operating_system", "", lambda state: state.operating_system),
    Field("start_price", "", lambda state: state.start_price),
    Field("applications", "", lambda state: state.snapshot.get("applications")),
    Field("gpus", "", lambda state: state.snapshot.get("gpus")),
    Field("gpu_price", "", lambda state: state.snapshot.get("gpu_price")),
)


def machine_object(state: MachineState | None) -> dict[str, object]:
    """Convert the state of a machine to JSON types; all None if it did not answer."""
    return MACHINE.nothing() if state is None else MACHINE.plain(state)


def source_text(state: MachineState) -> str:
    """Describe the source of a machine's queue."""
    torus = {
        "log": "a live torus, whose own users submit the jobs of a workload log",
        "synthetic": "a live torus, whose own users submit synthetic jobs",
    }
    if "map" in state.snapshot and state.source in torus:
        return torus[state.source]
    words = {
        "log": "its queue replays a workload log",
        "synthetic": "its queue is a synthetic workload (no log on this machine)",
        "live": "its queue is the machine's own",
    }
    return words.get(state.source, state.source)


JOBS: Final[Fields[MachineJob]] = Fields(
    Field("", "Job", lambda job: job.job, NUMBER),
    Field("", "User", lambda job: job.user, NUMBER),
    Field("", "Cores", lambda job: job.cores, NUMBER),
    Field("", "Submitted", lambda job: job.submitted, DATETIME),
    Field("", "Start", lambda job: job.start, DATETIME),
    Field("", "End", lambda job: job.end, DATETIME),
)
RESERVATIONS: Final[Fields[MachineReservation]] = Fields(
    Field("", "Reservation", lambda slot: slot.reservation_id),
    Field("", "Cores", lambda slot: slot.cores, NUMBER),
    Field("", "Start", lambda slot: slot.start, DATETIME),
    Field("", "End", lambda slot: slot.end, DATETIME),
    Field(
        "",
        "State",
        lambda slot: slot.held_until,
        text=lambda slot: "firm" if slot.held_until is None else f"held until {DATETIME.text(slot.held_until)}",
    ),
)


def _print_part(name: str, fields: Fields[T], rows: Sequence[T], total: int, limit: int | None, note: str = "") -> None:
    """Print the first rows of an answer; `note` says how the times of jobs are known."""
    shown = len(rows[:limit])
    cut = ""
    if total and not shown:
        cut = "; too many for one answer, none is listed"
    elif shown < total:
        cut = f"; the first {shown} are shown" + (" (--all shows more)" if shown == JOBS_SHOWN else "")
    jobs = f" {'job' if total == 1 else 'jobs'}, {note}" if note and total else ""
    fields.print_table(rows[:limit], title=f"{name}: {total}{jobs}{cut}")
