"""`ramp up`, `down`, `ps` and `doctor`: launching and stopping a market, looking at it, and its diagnosis."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from ramp.cli.options import example, state_options
from ramp.cli.views.fields import MOMENT, NUMBER, PROSE, Field, Fields
from ramp.cli.views.output import (
    count_text,
    print_json,
    print_line,
    print_rows,
    printed_as_json,
    say,
    waiting,
    wants_json,
)
from ramp.client.access import running, status
from ramp.client.connecting import REGISTRATION_LIMIT_S, launch_detached, wait_registered
from ramp.client.swarm import WAITING, OnEvent, check_none_is_up, stop
from ramp.control.status import ILL, AgentStatus, SwarmStatus, headline, state_text
from ramp.errors import RampError
from ramp.model.instant import from_iso
from ramp.runtime.state_folder import StateFolder
from ramp.shipped_files import DEFAULT_SWARM, find_config

if TYPE_CHECKING:
    from ramp.batch.inspecting import Remark
    from ramp.runtime.configuration.values import SwarmConfig


@click.command(
    epilog=example(
        "ramp up                       # stay; Ctrl-C stops everything",
        "ramp up table2 --detach       # in the background; `ramp down` stops it",
    )
)
@click.argument("name", default=DEFAULT_SWARM, metavar="[CONFIG]")
@click.option("--detach", is_flag=True, help="Return when all agents are ready; run the market in the background.")
@state_options
def up(name: str, detach: bool, state: StateFolder) -> int:
    """Launch a market: XMPP server, bank, directory, resources and users.

    CONFIG is a TOML file or a market that comes with RAMP: quickstart (the twenty machines of the paper's Table 2 and
    four live torus machines; the default), table2 (only the twenty), torus (only live torus machines), real (your own
    Slurm cluster).

    The state folder keeps keys, journals and the ledger. The next `ramp up` there continues with the same accounts and
    reservations. Without --detach the command runs until Ctrl-C. With --detach, --json prints the running agents.
    """
    from ramp.runtime.configuration_changes.overlay import load_market

    config = load_market(find_config(name), state)
    check_none_is_up(state)
    if detach:
        found = launch_in_background(config, state)
        if not printed_as_json(asdict(found)):
            print_line(up_text(found))
            click.echo("`ramp ps` shows the agents, `ramp down` stops them")
        warn_of_ill(found)
        return 0
    if wants_json():
        raise click.UsageError("--json needs --detach")
    return _stay(config, state)


def launch_in_background(config: SwarmConfig, state: StateFolder, *, parent: int | None = None) -> SwarmStatus:
    """Launch a market that ends with process `parent`, if any, and wait for it; Ctrl-C meanwhile undoes it."""
    was_up = status(state) is not None
    try:
        with launching(config) as on_event:
            missing = launch_detached(config, state, on_event, parent=parent)
        tell_missing(missing)
    except KeyboardInterrupt:
        if not was_up:
            with waiting("stopping the agents already started"):
                stop(state)
        raise
    return running(state)


def tell_missing(missing: Sequence[str]) -> None:
    """Warn of resources that are not registered."""
    if missing:
        say(f"ramp: not registered after {REGISTRATION_LIMIT_S:g} s: {', '.join(missing)}")


def _stay(config: SwarmConfig, state: StateFolder) -> int:
    from ramp.agents import supervise

    is_up = threading.Event()
    with contextlib.ExitStack() as display:
        launched = display.enter_context(launching(config))

        def on_event(event: dict[str, str]) -> None:
            if not is_up.is_set():
                launched(event)
            elif event["event"] != "stopped":  # all of them do, at the end
                detail = f": {event['detail']}" if event["detail"] else ""
                say(f"{event['agent']}: {event['event']}{detail}")

        def announce() -> None:
            with contextlib.suppress(RampError, OSError):  # stopped meanwhile: then there is nothing to announce
                tell_missing(wait_registered(config, state))
                found = status(state)
                is_up.set()
                display.close()
                if found is not None:
                    print_line(up_text(found))
                    click.echo("Ctrl-C stops it")
                    warn_of_ill(found)

        announcing = threading.Thread(target=announce, daemon=True)  # the supervisor's loop must not wait for it
        exit_code = supervise.run(config, state, ready=announcing.start, on_event=on_event)
    say("stopped")
    return exit_code


@contextmanager
def launching(config: SwarmConfig) -> Iterator[OnEvent]:
    """Show the progress of a launch: yields a function to call with the supervisor's events."""
    begun = f"launching {count_text(len(config.roles()), 'agent')}"
    ready: set[str] = set()
    if not sys.stderr.isatty():
        say(begun)
    with waiting(begun) as show:

        def tell(event: dict[str, str]) -> None:
            if event["event"] == WAITING:
                say(event["detail"])
            elif event["event"] == "ready":
                ready.add(event["agent"])
                show(f"{begun}: {len(ready)} ready")
            elif event["event"] in ILL:
                say(f"{event['agent']}: {event['event']}: {event['detail']}")

        yield tell


def up_text(found: SwarmStatus) -> str:
    """Describe a market in one line: health, agents and server."""
    told = headline(found)
    return (
        f"{told.sentence}{'; ' if told.why else ': '}{count_text(len(found.names('resource')), 'resource')}, "
        f"{count_text(len(found.names('user')), 'user')}, a bank and a directory "
        f"on the {found.server.text} (process {found.pid})"
    )


def warn_of_ill(found: SwarmStatus) -> None:
    """Warn of agents that are not well."""
    for agent in found.agents:
        if agent.state in ILL:
            what = "is up but" if agent.is_up else "is not up:"
            say(f"ramp: warning: {agent.name} ({agent.role}) {what} {state_text(agent)}")


@click.command(epilog=example("ramp down"))
@state_options
def down(state: StateFolder) -> None:
    """Stop the market; its state stays. It is no error if no market is running."""
    with waiting("stopping the market"):
        stopped = stop(state)
    if not printed_as_json({"stopped": stopped, "state_dir": str(state.path)}):
        say("the market is stopped" if stopped else f"no market is running with the state folder {state.path}")


AGENTS: Final[Fields[AgentStatus]] = Fields(
    Field("", "Agent", lambda agent: agent.name),
    Field("", "Role", lambda agent: agent.role),
    Field("", "State", state_text, PROSE),
    Field("", "Process", lambda agent: agent.pid, NUMBER),
    Field("", "Restarts", lambda agent: agent.restarts, NUMBER),
    Field("", "Clock (ms)", lambda agent: f"{agent.clock_offset_ms:+.0f}" if agent.clock_offset_ms else "", NUMBER),
    Field("", "Since", lambda agent: from_iso(agent.since) if agent.since else None, MOMENT),
    Field("", "Detail", lambda agent: "" if agent.state in ILL else agent.detail, PROSE),
)


@click.command(epilog=example("ramp ps", "ramp ps --json"))
@state_options
def ps(state: StateFolder) -> int:
    """Show the market's health in one line, and its agents: role, process, state, restarts.

    The first line says `up`, `degraded` with the agents and reasons, `starting`, or `no server` if the XMPP server is
    unreachable (known within 5 s). A `degraded` agent cannot write its journal (the disk is full): it makes no promises
    and retries. A `broken` agent cannot read it, and stays down until the file that it names is repaired. A resource is
    also `degraded` while its plug-in or price strategy fails: it refuses requests that need it, and retries. Clock: how
    far the clock of a user or resource is ahead of the bank's, with a warning above one second. Exit code 1 if no
    market is running. --json adds `headline` (`state`, `why`). `ramp watch --only agents` shows changes.
    """
    if wants_json():
        found = status(state)
        shown: dict[str, object] = {"agents": []}
        if found is not None:
            told = headline(found)
            shown = {"headline": {"state": told.health.value, "why": told.why}, **asdict(found)}
        print_json({"running": found is not None, "state_dir": str(state.path), **shown})
        return 0 if found is not None else 1
    found = running(state)
    print_line(up_text(found))
    AGENTS.print_table(found.agents)
    for agent in found.agents:
        if agent.clock_warning:
            say(f"ramp: warning: {agent.name}: {agent.clock_warning}")
    print_line(f"Configuration {found.config}, state folder {state.path}")
    return 0


DOCTOR_EXITS: Final = "0 no problems; 1 problems found; 2 bad input; 130 interrupted"


@click.command(epilog=example("ramp doctor", "ramp doctor market.toml --all", "ramp doctor --json", exits=DOCTOR_EXITS))
@click.argument("name", required=False, metavar="[CONFIG]")
@click.option("--all", "show_all", is_flag=True, help="Also show passed checks.")
@state_options
def doctor(name: str | None, show_all: bool, state: StateFolder) -> int:
    """Diagnose a market's problems and suggest fixes; nothing is changed.

    The checks cover agents, servers, expiring certificates, clocks, disk space and versions. For a resource on Slurm or
    Grid Engine they also compare its reservations with the agreements, look at the age of its queue data, and check the
    helper program that changes reservations. A running market is asked; for a stopped one, the state folder and the
    batch systems are read.

    CONFIG is the configuration of a stopped market (default: the one that ran last with the state folder).
    """
    from ramp.doctor.examination import examine

    with waiting("looking"):
        report = examine(state, None if name is None else find_config(name))
    found = {
        "running": report.is_up,
        "state_dir": str(state.path),
        "findings": [_object(each) for each in report.findings],
        "well": [_object(each) for each in report.remarks if not each.is_finding],
    }
    if not printed_as_json(found):
        if not report.is_up:
            say(f"ramp: no market is running; reading the state folder {state.path}")
        shown = report.remarks if show_all else report.findings
        rows = [(each.check, each.subject, each.says, each.do or "(well)") for each in shown]
        print_rows(("Looked at", "Of", "Found", "Suggested fix"), rows, wrap=("Found", "Suggested fix"))
        if not report.findings:
            click.echo(f"No problems found: {count_text(len(report.remarks), 'check')} made")
    return 1 if report.findings else 0


def _object(each: Remark) -> dict[str, str]:
    return {key: text for key, text in asdict(each).items() if key != "do" or each.is_finding}
