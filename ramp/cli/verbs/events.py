"""`ramp events`: the log of the market's events."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from ramp.cli.options import WholeNumber, complete_agents, example, moment_type, state_options
from ramp.cli.views.output import moment_text, print_line, print_rows, printed_as_json, wants_json
from ramp.model.instant import Instant
from ramp.runtime.logs import MarketEvent, follow_events, read_events
from ramp.runtime.state_folder import StateFolder

SHOWN: int = 50
"""Events shown where nothing else is said."""


@click.command(
    epilog=example(
        "ramp events", "ramp events curie1 --follow", "ramp events --since -1h --json", "ramp events --changes"
    )
)
@click.argument("name", default="", required=False, shell_complete=complete_agents())
@click.option("--follow", "-f", is_flag=True, help="Also print new events until Ctrl-C.")
@click.option(
    "--since", type=moment_type, metavar="TIME", help=f"Start of the period (default: the last {SHOWN} events)."
)
@click.option("--last", type=WholeNumber(min=0), metavar="N", help="Number of events to show, the latest.")
@click.option("--changes", is_flag=True, help="Show the log of changes to the market instead, with who made them.")
@state_options
def events(name: str, follow: bool, since: Instant | None, last: int | None, changes: bool, state: StateFolder) -> None:
    """Show sales, refusals, ended requests, deposits, changes and agent restarts, one line each.

    NAME is an agent's local name, `server` or `supervisor`. Refusals by one resource of one buyer for one reason are
    counted and shown at most once a minute. The lines come from `logs/events` of the state folder, which remain
    after the market stops until they are rotated (`[logs]`). With --follow, --json prints one object a line.

    The log of --changes is kept for ever, in `audit.log` of the state folder.
    """
    if changes:
        if name or follow or last is not None:
            raise click.UsageError("--changes excludes NAME, --follow and --last")
        _print_changes(state, since)
        return
    found = read_events(state.events, name, since or 0)
    most = last if last is not None else None if since is not None else SHOWN
    found = found if most is None else found[len(found) - min(most, len(found)) :]
    if not follow and printed_as_json([asdict(event) for event in found]):
        return
    for event in found:
        _print(event)
    if not found and not follow:
        click.echo("No events")
    for new in follow_events(state.events, name) if follow else ():
        if new is not None:
            _print(new)


def _print(event: MarketEvent) -> None:
    if wants_json():
        click.echo(json.dumps(asdict(event), ensure_ascii=False))
    else:
        print_line(f"{moment_text(event.at)}  {event.agent}  {event.event}  {event.text}")
    sys.stdout.flush()


def _print_changes(state: StateFolder, since: Instant | None) -> None:
    """Print the log of changes to a market, running or not."""
    from ramp.runtime.configuration_changes.audit_log import lines_of

    found = list(lines_of(state, since or 0))
    if printed_as_json([asdict(line) for line in found]):
        return
    if found:
        rows = [(moment_text(line.at), line.who, line.verb, line.what) for line in found]
        print_rows(("Time", "Who", "Verb", "What"), rows, wrap=("What",))
    else:
        click.echo("No changes")
