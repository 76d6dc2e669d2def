"""`ramp fake-qstat` and `ramp fake-qrstat`: Grid Engine's commands for a machine of a running market.

With `--cores` they are the paper's scripts of the same names (section 8): a simulated machine without a market.
"""

from __future__ import annotations

from typing import Any, Final

import click

from ramp.cli.connection import ask, open_market
from ramp.cli.options import (
    WholeNumber,
    duration_or_zero_type,
    duration_type,
    example,
    json_option,
    moment_type,
    state_option,
    together,
    user_option,
)
from ramp.cli.verbs.machines import check_registered
from ramp.cli.views.output import printed_as_json, say, wants_json
from ramp.client import dialogues
from ramp.client.machine_state import MachineState
from ramp.client.times import DURATION_HELP, MOMENT_HELP
from ramp.model.instant import HOUR
from ramp.runtime.state_folder import StateFolder
from simulation.resource.gridengine import formats
from simulation.resource.gridengine.mirror import queue_of, reservations_of

_EXITS: Final = "0 done, 1 no market, no answer, no such reservation, or the job cannot start, 2 bad input"
_xml_option: Final = click.option("-xml", "as_xml", is_flag=True, help="Print XML, as the command's own -xml does.")


class _NumbersType(click.ParamType[tuple[int, ...]]):
    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        parts = str(value).split(",")
        if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
            self.fail(f"got {value!r}, expected numbers such as 2 or 2,3", param, ctx)
        return tuple(int(part) for part in parts)


_job_options: Final = together(
    click.option("--cores", type=WholeNumber(min=1), help="Ask about a job of this size, without a market."),
    click.option("--at", "start", type=moment_type, metavar="TIME",
                 help=f"With --cores: exact start of the job, {MOMENT_HELP} [default: now]."),
    click.option("--walltime", type=duration_type, metavar="LENGTH",
                 help=f"With --cores: length of the job, {DURATION_HELP} [default: 1h]."),
    click.option("--system-start", type=moment_type, metavar="TIME",
                 help="With --cores: when the log stood at its base time [default: the first question]."),
    click.option("--base-time", type=duration_or_zero_type, metavar="LENGTH",
                 help="With --cores and a log or machine: where the log stands then [default: its beginning]."),
    json_option,
)  # fmt: skip
"""The options of the paper's scripts."""


@click.command("fake-qstat", epilog=example("ramp fake-qstat curie3", "ramp fake-qstat curie3 -f -r -xml -u '*'",
                                            "ramp fake-qstat table2:curie3 --cores 64 --at +2h",
                                            exits=_EXITS))  # fmt: skip
@click.argument("machine")
@click.option("-f", "full", is_flag=True, help="Also show the queue instance: slots used, reserved and total.")
@click.option("-r", "requests", is_flag=True, help="Also show what jobs requested: slots and the time limit h_rt.")
@_xml_option
@click.option("-u", "owner", default="*", metavar="USER", help="User whose jobs to show; '*' for all (the default).")
@_job_options
@user_option
@state_option
def fake_qstat(
    machine: str, full: bool, requests: bool, as_xml: bool, owner: str, user: str | None, state: StateFolder, **job: Any
) -> None:
    """Print a machine's queue as Grid Engine's `qstat` would, so that programs made for that can read it.

    Times are UTC. JSON of the same is `ramp qstat MACHINE --json`.

    With --cores, print the load of a simulated machine without a market, in percent, over the time of a job that could
    start at --at (fake_qstat of the RAMP paper, section 8). MACHINE is then a resource of a market's configuration
    (table2:curie3), a workload log, or a machine's file. Exit code 1 if the job cannot start then.
    """
    if _is_told(machine, state, job, reserves=False):
        return
    shown = _asked(machine, user, state)
    report = queue_of(shown)
    if owner != "*":
        report = type(report)(report.instances, tuple(job for job in report.jobs if job.owner == owner))
    if as_xml:
        click.echo(formats.queue_document(report, full, requests), nl=False)
    else:
        click.echo(formats.queue_table(report) if full else formats.job_table(report, requests), nl=False)
    missing = shown.running_total + shown.queued_total - len(shown.running) - len(shown.queued)
    if missing > 0:
        say(f"{missing} jobs more did not fit the machine's answer")


@click.command("fake-qrstat", epilog=example("ramp fake-qrstat curie3", "ramp fake-qrstat curie3 -ar 2 -xml",
                                             "ramp fake-qrstat table2:curie3 --cores 64 --at +2h",
                                             exits=_EXITS))  # fmt: skip
@click.argument("machine")
@_xml_option
@click.option("-u", "owner", default="*", metavar="USER", help="User whose reservations to show; '*' for all.")
@click.option("-ar", "numbers", type=_NumbersType(), help="Numbers of reservations to show in full: 2 or 2,3.")
@_job_options
@user_option
@state_option
def fake_qrstat(
    machine: str,
    as_xml: bool,
    owner: str,
    numbers: tuple[int, ...] | None,
    user: str | None,
    state: StateFolder,
    **job: Any,
) -> None:
    """Print a machine's reservations as Grid Engine's `qrstat` would, so that programs made for that can read them.

    Times are UTC. JSON of the same is `ramp qstat MACHINE --json`.

    With --cores, reserve a job on a simulated machine without a market and print the reservation's id (fake_qrstat of
    the RAMP paper, section 8); it counts in every later answer of `ramp fake-qstat MACHINE --cores`. The state folder
    keeps it.
    """
    if _is_told(machine, state, job, reserves=True):
        return
    found = [each for each in reservations_of(_asked(machine, user, state)) if owner in {"*", each.owner}]
    if not numbers:
        click.echo(formats.reservation_document(found) if as_xml else formats.reservation_table(found), nl=False)
        return
    named = [each for each in found if each.number in numbers]
    unknown = [number for number in numbers if number not in {each.number for each in named}]
    if as_xml:
        click.echo(formats.reservation_document(named, detailed=True, unknown=unknown), nl=False)
        return
    click.echo("".join(formats.reservation_text(each) for each in named), nl=False)
    if unknown:
        click.echo("\n".join(("Following advance reservations do not exist:", *map(str, unknown))), err=True)
        raise click.exceptions.Exit(1)


def _asked(machine: str, user: str | None, state: StateFolder) -> MachineState:
    market = open_market(state, user)
    check_registered(market, machine)
    return ask(market, dialogues.machine(machine, HOUR), f"asking {machine}")


def _is_told(machine: str, state: StateFolder, job: dict[str, Any], *, reserves: bool) -> bool:
    """Answer a question about a job on a machine without a market; return False for any other question."""
    from simulation.without_market import answer

    if job["cores"] is None:
        if wants_json() or any(job.values()):
            raise click.UsageError("--at, --walltime, --system-start, --base-time and --json need --cores")
        return False
    told = answer(machine, state.without_market, **job, reserves=reserves)
    if not printed_as_json(told):
        if told["source"] == "synthetic":
            say(f"{machine}: its load is a synthetic workload's")
        if refusal := told["refusal"]:
            nearest = f"; nearest: {refusal['nearest']}" if refusal["nearest"] else ""
            say(f"{machine}: {refusal['detail']}{nearest}")
        else:
            click.echo(told["reservation_id"] or told["load_percent"])
    if told["refusal"]:
        raise click.exceptions.Exit(1)
    return True
