"""`ramp fake-qstat` and `ramp fake-qrstat`: a machine of a running market in the words of Grid Engine's commands."""

from __future__ import annotations

from typing import Any, Final

import click

from ramp.cli.connection import ask, open_market
from ramp.cli.options import example, state_option, user_option
from ramp.cli.verbs.machines import check_registered
from ramp.cli.views.output import say
from ramp.client import dialogues
from ramp.client.machine_state import MachineState
from ramp.model.instant import HOUR
from ramp.runtime.state_folder import StateFolder
from simulation.resource.gridengine import formats
from simulation.resource.gridengine.mirror import queue_of, reservations_of

_EXITS: Final = "0 done, 1 no market or no answer, or no such reservation, 2 bad input"
_xml_option: Final = click.option("-xml", "as_xml", is_flag=True, help="Print XML, as the command's own -xml does.")


class _NumbersType(click.ParamType[tuple[int, ...]]):
    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        parts = str(value).split(",")
        if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
            self.fail(f"got {value!r}, expected numbers such as 2 or 2,3", param, ctx)
        return tuple(int(part) for part in parts)


@click.command("fake-qstat", epilog=example("ramp fake-qstat curie3", "ramp fake-qstat curie3 -f -r -xml -u '*'",
                                            exits=_EXITS))  # fmt: skip
@click.argument("machine")
@click.option("-f", "full", is_flag=True, help="Also show the queue instance: slots used, reserved and total.")
@click.option("-r", "requests", is_flag=True, help="Also show what jobs requested: slots and the time limit h_rt.")
@_xml_option
@click.option("-u", "owner", default="*", metavar="USER", help="User whose jobs to show; '*' for all (the default).")
@user_option
@state_option
def fake_qstat(
    machine: str, full: bool, requests: bool, as_xml: bool, owner: str, user: str | None, state: StateFolder
) -> None:
    """Print a machine's queue as Grid Engine's `qstat` would, so that programs made for that can read it.

    Times are UTC. JSON of the same is `ramp qstat MACHINE --json`.
    """
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
                                             exits=_EXITS))  # fmt: skip
@click.argument("machine")
@_xml_option
@click.option("-u", "owner", default="*", metavar="USER", help="User whose reservations to show; '*' for all.")
@click.option("-ar", "numbers", type=_NumbersType(), help="Numbers of reservations to show in full: 2 or 2,3.")
@user_option
@state_option
def fake_qrstat(
    machine: str, as_xml: bool, owner: str, numbers: tuple[int, ...] | None, user: str | None, state: StateFolder
) -> None:
    """Print a machine's reservations as Grid Engine's `qrstat` would, so that programs made for that can read them.

    Times are UTC. JSON of the same is `ramp qstat MACHINE --json`.
    """
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
