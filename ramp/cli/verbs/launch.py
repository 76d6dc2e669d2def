"""`ramp up`, `ramp down` and `ramp ps`: launching, stopping and looking at a market."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from ramp.cli.options import example, json_option, state_option
from ramp.cli.views.output import console, count_text, moment_text, print_json, print_rows, say, waiting
from ramp.client.access import running
from ramp.client.launching import REGISTRATION_LIMIT_S, launch_detached, wait_registered
from ramp.client.swarm import WAITING, OnEvent, check_none_is_up, status, stop
from ramp.control.status import AgentStatus, SwarmStatus, status_object
from ramp.errors import RampError
from ramp.model.instant import from_iso
from ramp.runtime.shipped_swarms import DEFAULT_SWARM, find_config
from ramp.runtime.state_folder import StateFolder

if TYPE_CHECKING:
    from ramp.runtime.config import SwarmConfig

STOP_PAUSE_S: Final = 0.05
"""Pause between two tries to stop a market that is just coming up, in seconds."""

BEGUN_LIMIT_S: Final = 10.0
"""How long a market that is just coming up may take until it can be stopped, in seconds."""

ILL: Final = ("failed", "degraded", "broken")
"""States of an agent that is not well; its detail says why."""


@click.command(
    epilog=example(
        "ramp up                       # stay; Ctrl-C stops everything",
        "ramp up table2 --detach       # in the background; `ramp down` stops it",
    )
)
@click.argument("name", default=DEFAULT_SWARM, metavar="[CONFIG]")
@click.option("--detach", is_flag=True, help="Return when all agents are ready; the market goes on in the background.")
@state_option
@json_option
@click.pass_context
def up(ctx: click.Context, name: str, detach: bool, state: StateFolder, as_json: bool) -> None:
    """Launch a market: XMPP server, bank, directory, resources and users.

    CONFIG is a TOML file, or the name of one that comes with RAMP: quickstart (the twenty machines of the paper's
    Table 2 and four live torus machines; the default), table2 (the twenty alone), torus (live torus machines alone).

    Keys, journals and the ledger are kept in the state folder, so the next `ramp up` there carries on with the same
    accounts and reservations.
    Without --detach it stays until Ctrl-C. --json prints, with --detach, what is up.
    """
    from ramp.runtime.changes.overlay import load_market

    config = load_market(find_config(name), state)
    check_none_is_up(state)
    if detach:
        found = launch_in_background(config, state)
        if as_json:
            print_json(status_object(found))
        else:
            click.echo(up_text(found))
            click.echo("`ramp ps` shows the agents, `ramp down` stops them")
        warn_of_ill(found)
        return
    if as_json:
        raise click.UsageError("--json prints what is up once it is up, so it needs --detach")
    ctx.exit(_stay(config, state))


def launch_in_background(config: SwarmConfig, state: StateFolder) -> SwarmStatus:
    """Launch a market in the background and wait until every resource can be found; Ctrl-C meanwhile undoes it.

    Returns:
        Its status.

    Raises:
        RampError: if it does not come up.
    """
    was_up = status(state) is not None
    try:
        with launching(config) as on_event:
            missing = launch_detached(config, state, on_event)
        tell_missing(missing)
    except KeyboardInterrupt:
        if not was_up:
            _stop_what_was_begun(state)
        raise
    return running(state)


def tell_missing(missing: Sequence[str]) -> None:
    """Say which resources cannot be found."""
    if missing:
        say(f"ramp: not registered after {REGISTRATION_LIMIT_S:g} s: {', '.join(missing)}")


def _stop_what_was_begun(state: StateFolder) -> None:
    """Stop a market that was interrupted while it came up: it can be found only once its server runs."""
    with waiting("stopping what was begun"):
        end = time.monotonic() + BEGUN_LIMIT_S
        while not stop(state) and time.monotonic() < end:
            time.sleep(STOP_PAUSE_S)


def _stay(config: SwarmConfig, state: StateFolder) -> int:
    from ramp.agents import supervise

    def told(event: dict[str, str]) -> None:
        if event["event"] != "stopped":  # all of them do, at the end
            detail = f": {event['detail']}" if event["detail"] else ""
            say(f"{event['agent']}: {event['event']}{detail}")

    with launching(config) as launched:
        listeners: list[OnEvent] = [launched]

        def announce() -> None:
            with contextlib.suppress(RampError, OSError):  # stopped meanwhile: then there is nothing to announce
                tell_missing(wait_registered(config, state))
                found = status(state)
                listeners[:] = [told]
                launched({"event": "up"})
                if found is not None:
                    click.echo(up_text(found))
                    click.echo("Ctrl-C stops it")
                    warn_of_ill(found)

        def ready() -> None:
            threading.Thread(target=announce, daemon=True).start()  # the supervisor's loop must not wait for it

        def on_event(event: dict[str, str]) -> None:
            listeners[0](event)

        exit_code = supervise.run(config, state, ready=ready, on_event=on_event)
    say("stopped")
    return exit_code


@contextmanager
def launching(config: SwarmConfig) -> Iterator[OnEvent]:
    """Show how a launch gets on: yields what is to be told the supervisor's events; `up` ends the show.

    On a terminal a bar grows with every agent that is ready; elsewhere only failures, and what is waited for.
    """
    total = len(config.roles())
    agents = count_text(total, "agent")
    if not sys.stderr.isatty():

        def tell(event: dict[str, str]) -> None:
            if event["event"] == WAITING:
                say(event["detail"])
            elif event["event"] in ILL:
                say(f"{event['agent']}: {event['event']}: {event['detail']}")

        say(f"launching {agents}")
        yield tell
        return

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(error=True), transient=True) as bar:
        task = bar.add_task(f"launching {agents}", total=total)
        up_now: set[str] = set()

        def draw(event: dict[str, str]) -> None:
            if event["event"] == "up":
                bar.stop()
            elif event["event"] == WAITING:
                bar.console.print(event["detail"], markup=False)
            elif event["event"] == "ready":
                up_now.add(event["agent"])
                bar.update(task, completed=len(up_now))
            elif event["event"] in ILL:
                bar.console.print(f"{event['agent']}: {event['event']}: {event['detail']}", markup=False)

        yield draw


def up_text(found: SwarmStatus) -> str:
    """A market, in one line: whether all of it is up, what it is, and where its server is."""
    server = found.server
    up = sum(agent.is_up for agent in found.agents)
    whole = up == len(found.agents)
    return (
        f"The market is {'up' if whole else f'not whole, {up} of {len(found.agents)} agents are up'}: "
        f"{count_text(len(found.names('resource')), 'resource')}, "
        f"{count_text(len(found.names('user')), 'user')}, a bank and a directory "
        f"on the {server.kind} XMPP server at {server.host}:{server.port} "
        f"(process {found.pid})"
    )


def warn_of_ill(found: SwarmStatus) -> None:
    """Say which agents of a market that is up are not."""
    for agent in found.agents:
        if agent.state in ILL:
            what = "is up, but" if agent.is_up else "is not up, the rest is;"
            say(f"ramp: warning: {agent.name} ({agent.role}) {what} {state_text(agent)}")


def state_text(agent: AgentStatus) -> str:
    """An agent's state, with the reason where it is not well."""
    return f"{agent.state}: {agent.detail}" if agent.state in ILL else agent.state


@click.command(epilog=example("ramp down"))
@state_option
@json_option
def down(state: StateFolder, as_json: bool) -> None:
    """Stop the market in good order; its state stays. That none is running is no error."""
    with waiting("stopping the market"):
        stopped = stop(state)
    if as_json:
        print_json({"stopped": stopped, "state_dir": str(state.path)})
    else:
        say("the market is stopped" if stopped else f"no market is running with the state folder {state.path}")


@click.command(epilog=example("ramp ps --json"))
@state_option
@json_option
@click.pass_context
def ps(ctx: click.Context, state: StateFolder, as_json: bool) -> None:
    """Show the running agents: role, process, state, restarts. Exit code 1 when no market is running.

    A `degraded` agent cannot write what it must remember (the disk is full), so it promises nothing and tries again; a
    `broken` one cannot read it, and stays down until the file that it names is put right. A resource is `degraded` as
    well while its plug-in or price strategy fails: it is up, refuses what it cannot have answered, and asks again soon.
    Clock: by how much the clock of a user or resource is ahead of the bank's; over a second is warned of.
    """
    found = status(state)
    if as_json:
        shown = {"agents": []} if found is None else status_object(found)
        print_json({"running": found is not None, "state_dir": str(state.path), **shown})
        ctx.exit(0 if found is not None else 1)
    if found is None:
        say(f"ramp: no market is running with the state folder {state.path}; `ramp up` launches one")
        ctx.exit(1)
    click.echo(up_text(found))
    if found.note:
        say(f"ramp: {found.note}")
    columns = ("Agent", "Role", "State", "Process", "Restarts", "Clock (ms)", "Since", "Detail")
    print_rows(
        columns,
        [
            (
                agent.name,
                agent.role,
                state_text(agent),
                agent.pid,
                agent.restarts,
                "" if agent.clock_offset_ms is None else f"{agent.clock_offset_ms:+.0f}",
                moment_text(from_iso(agent.since)) if agent.since else "",
                "" if agent.state in ILL else agent.detail,
            )
            for agent in found.agents
        ],
        right=("Process", "Restarts", "Clock (ms)"),
        wrap=("State", "Detail"),
    )
    for agent in found.agents:
        if agent.clock_warning:
            say(f"ramp: warning: {agent.name}: {agent.clock_warning}")
    click.echo(f"Configuration {found.config}, state folder {state.path}")
