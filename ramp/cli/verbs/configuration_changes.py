"""`ramp restart` and `ramp reload`: changes of a running market, and their log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import click

from ramp.cli.completing import complete_agents
from ramp.cli.options import example, json_option, state_option
from ramp.cli.views.output import moment_text, print_json, print_line, print_rows, say, waiting
from ramp.client.connecting import MarketOperator, operate
from ramp.control.market_changes import MarketChanged
from ramp.model.instant import Instant
from ramp.runtime.state_folder import StateFolder

CHANGE_EXITS = "0 done; 1 refused (something is open), failed, or no market is running; 2 bad input"


def change(
    state: StateFolder, doing: str, make: Callable[[MarketOperator], MarketChanged], *, as_json: bool
) -> MarketChanged:
    """Change the running market and print the changes that were made, or would be; a terminal shows what is done."""
    with waiting(doing):
        changed = make(operate(state.path))
    if as_json:
        print_json({"done": changed.done, "changes": [asdict(line) for line in changed.lines]})
    for line in () if as_json else changed.lines:
        print_line(line.text)
    return changed


@click.command(epilog=example("ramp restart curie1", exits=CHANGE_EXITS))
@click.argument("name", shell_complete=complete_agents())
@state_option
@json_option
def restart(name: str, state: StateFolder, as_json: bool) -> None:
    """Restart one agent; it continues from its journal.

    If its process does not answer, it is killed and restarted with all its agents. As at every restart, a user's
    running auctions end without a purchase; decided ones are completed.
    """
    change(state, f"restarting {name}", lambda market: market.restart(name), as_json=as_json)


@click.command(epilog=example("ramp reload --dry-run", "ramp reload", exits=CHANGE_EXITS))
@click.option("--dry-run", is_flag=True, help="Only preview the changes.")
@click.option("--force", is_flag=True, help="Also remove parties with debts or reservations.")
@state_option
@json_option
def reload(dry_run: bool, force: bool, state: StateFolder, as_json: bool) -> None:
    """Apply changes of users, resources and machines from the configuration file.

    New users and resources are added, missing ones removed. A resource takes new prices at once, and restarts for a new
    machine, plug-in or price strategy. Changes by commands (`ramp resource set`, ...) override the file unless it was
    edited since. Other changes ([server], [timing], ...) are listed and wait for the next `ramp up`. --json: `done`,
    and `changes` with `kind` (`add`, `remove`, `update`, `rebuild`, `later`, `stands`), `name` and `text`.
    """
    changed = change(
        state, "reading the file", lambda market: market.reload(dry_run=dry_run, force=force), as_json=as_json
    )
    if not changed.lines and not as_json:
        click.echo("The market matches its configuration file")
    if dry_run:
        say("nothing was changed; apply the changes with `ramp reload`")


def print_changes(state: StateFolder, since: Instant | None, *, as_json: bool) -> None:
    """Print the log of changes to a market, running or not."""
    from ramp.runtime.configuration_changes.audit_log import lines_of

    found = list(lines_of(state, since or 0))
    if as_json:
        print_json([asdict(line) for line in found])
    elif found:
        rows = [(moment_text(line.at), line.who, line.verb, line.what) for line in found]
        print_rows(("Time", "Who", "Verb", "What"), rows, wrap=("What",))
    else:
        click.echo("No changes")
