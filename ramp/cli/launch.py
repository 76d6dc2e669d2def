"""`ramp up`, `ramp down` and `ramp ps`: launching, stopping and looking at a market."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from ramp.cli.connection import open_market
from ramp.cli.machines import ask_resources
from ramp.cli.options import example, json_option, state_option
from ramp.cli.output import console, count_text, moment_text, print_json, print_rows, say, waiting
from ramp.cli.shipped import DEFAULT_SWARM, find_config
from ramp.errors import RampError
from ramp.model.instant import from_iso
from ramp.runtime.state_folder import StateFolder

if TYPE_CHECKING:
    from ramp.runtime.config import SwarmConfig

REGISTRATION_LIMIT_S: Final = 15.0
"""How long resources may take to register once their agents are ready, in seconds; they repeat it every few."""

REGISTRATION_PAUSE_S: Final = 0.05
"""Pause between two looks, in seconds."""

BEGUN_LIMIT_S: Final = 10.0
"""How long a market that is just coming up may take until it can be stopped, in seconds."""

ILL: Final = ("failed", "degraded", "broken")
"""States of an agent that is not well; its detail says why."""

OnEvent = Callable[[dict[str, str]], None]


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
    from ramp.runtime.config_file import load_config

    config = load_config(find_config(name))
    if detach:
        status = launch_detached(config, state)
        if as_json:
            print_json(status)
        else:
            click.echo(up_text(status))
            click.echo("`ramp ps` shows the agents, `ramp down` stops them")
        warn_of_ill(status)
        return
    if as_json:
        raise click.UsageError("--json prints what is up once it is up, so it needs --detach")
    ctx.exit(_stay(config, state))


def launch_detached(config: SwarmConfig, state: StateFolder) -> dict[str, Any]:
    """Launch a market in the background and wait until every resource can be found; Ctrl-C meanwhile undoes it.

    Returns:
        Its status.

    Raises:
        RampError: if it does not come up.
    """
    from ramp.agents import supervise

    was_up = supervise.status(state) is not None
    try:
        with launching(config) as on_event:
            status = supervise.start_detached(config.path.absolute(), state, on_event)
            wait_registered(config, state)
    except KeyboardInterrupt:
        if not was_up:
            _stop_what_was_begun(state)
        raise
    return status


def wait_registered(config: SwarmConfig, state: StateFolder) -> None:
    """Wait until the directory lists every resource of the configuration that is up; tell which do not appear."""
    from ramp.agents import supervise

    found = supervise.status(state) or {"agents": []}
    up = {agent["name"] for agent in found["agents"] if agent["state"] == "ready"}
    asking = next((user.name for user in config.users if user.name in up), None)
    if asking is None:
        return
    market = open_market(state, asking)
    wanted = {config.address(resource.name) for resource in config.resources if resource.name in up}
    end = time.monotonic() + REGISTRATION_LIMIT_S
    while missing := wanted.difference(ask_resources(market)):
        if time.monotonic() > end:
            say(f"ramp: not registered after {REGISTRATION_LIMIT_S:g} s: {', '.join(sorted(missing))}")
            return
        time.sleep(REGISTRATION_PAUSE_S)


def _stop_what_was_begun(state: StateFolder) -> None:
    """Stop a market that was interrupted while it came up: it can be found only once its server runs."""
    from ramp.agents import supervise

    with waiting("stopping what was begun"):
        end = time.monotonic() + BEGUN_LIMIT_S
        while not supervise.stop(state) and time.monotonic() < end:
            time.sleep(REGISTRATION_PAUSE_S)


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
                wait_registered(config, state)
                found = supervise.status(state)
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

        status = supervise.run(config, state, ready=ready, on_event=on_event)
    say("stopped")
    return status


@contextmanager
def launching(config: SwarmConfig) -> Iterator[OnEvent]:
    """Show how a launch gets on: yields what is to be told the supervisor's events; `up` ends the show.

    On a terminal a bar grows with every agent that is ready; elsewhere only failures are told.
    """
    total = len(config.resources) + len(config.users) + 2
    agents = count_text(total, "agent")
    if not sys.stderr.isatty():

        def tell(event: dict[str, str]) -> None:
            if event["event"] in ILL:
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
            elif event["event"] == "ready":
                up_now.add(event["agent"])
                bar.update(task, completed=len(up_now))
            elif event["event"] in ILL:
                bar.console.print(f"{event['agent']}: {event['event']}: {event['detail']}", markup=False)

        yield draw


def up_text(status: Mapping[str, Any]) -> str:
    """A market that is up, in one line."""
    roles = [agent["role"] for agent in status["agents"]]
    server = status["server"]
    return (
        f"The market is up: {count_text(roles.count('resource'), 'resource')}, "
        f"{count_text(roles.count('user'), 'user')}, a bank and a directory "
        f"on the {server['kind']} XMPP server at {server['host']}:{server['port']} "
        f"(process {status['pid']})"
    )


def warn_of_ill(status: Mapping[str, Any]) -> None:
    """Say which agents of a market that is up are not."""
    for agent in status["agents"]:
        if agent["state"] in ILL:
            say(f"ramp: warning: {agent['name']} ({agent['role']}) is not up, the rest is; {state_text(agent)}")


def state_text(agent: Mapping[str, Any]) -> str:
    """An agent's state, with the reason where it is not well."""
    return f"{agent['state']}: {agent['detail']}" if agent["state"] in ILL else str(agent["state"])


@click.command(epilog=example("ramp down"))
@state_option
@json_option
def down(state: StateFolder, as_json: bool) -> None:
    """Stop the market in good order; its state stays. That none is running is no error."""
    from ramp.agents import supervise

    with waiting("stopping the market"):
        stopped = supervise.stop(state)
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
    `broken` one cannot read it, and stays down until the file that it names is put right.
    """
    from ramp.agents import supervise

    status = supervise.status(state)
    if as_json:
        print_json({"running": status is not None, "state_dir": str(state.path), **(status or {"agents": []})})
        ctx.exit(0 if status is not None else 1)
    if status is None:
        say(f"ramp: no market is running with the state folder {state.path}; `ramp up` launches one")
        ctx.exit(1)
    click.echo(up_text(status))
    if status.get("note"):
        say(f"ramp: {status['note']}")
    columns = ("Agent", "Role", "State", "Process", "Restarts", "Since", "Detail")
    print_rows(
        columns,
        [
            (
                agent["name"],
                agent["role"],
                state_text(agent),
                agent["pid"],
                agent["restarts"],
                moment_text(from_iso(agent["since"])) if agent["since"] else "",
                "" if agent["state"] in ILL else agent["detail"],
            )
            for agent in status["agents"]
        ],
        right=("Process", "Restarts"),
    )
    click.echo(f"Configuration {status['config']}, state folder {state.path}")
