"""`ramp user`, `resource`, `restart` and `reload`: changes of a running market."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from ramp.cli.options import WholeNumber, complete_agents, credits_type, example, file_type, state_options
from ramp.cli.views.output import print_line, printed_as_json, say, waiting, wants_json
from ramp.client.connecting import MarketOperator, operate, resource_definition
from ramp.control.events import MarketChanged
from ramp.model.money import exact_credits
from ramp.runtime.state_folder import StateFolder

PRICES: Final = ("start_price", "minimum_price", "rounds_expected")
SETTINGS: Final = (*PRICES, "pricing")
CHANGE_EXITS = "0 done; 1 refused (something is open), failed, or no market is running; 2 bad input"


def change(state: StateFolder, doing: str, make: Callable[[MarketOperator], MarketChanged]) -> MarketChanged:
    """Change the running market and print the changes that were made, or would be; a terminal shows what is done."""
    with waiting(doing):
        changed = make(operate(state.path))
    if not printed_as_json({"done": changed.done, "changes": [asdict(line) for line in changed.lines]}):
        for line in changed.lines:
            print_line(line.text)
    return changed


@click.command(epilog=example("ramp restart curie1", exits=CHANGE_EXITS))
@click.argument("name", shell_complete=complete_agents())
@state_options
def restart(name: str, state: StateFolder) -> None:
    """Restart one agent; it continues from its journal.

    If its process does not answer, it is killed and restarted with all its agents. As at every restart, a user's
    running auctions end without a purchase; decided ones are completed.
    """
    change(state, f"restarting {name}", lambda market: market.restart(name))


@click.command(epilog=example("ramp reload --dry-run", "ramp reload", exits=CHANGE_EXITS))
@click.option("--dry-run", is_flag=True, help="Only preview the changes.")
@click.option("--force", is_flag=True, help="Also remove parties with debts or reservations.")
@state_options
def reload(dry_run: bool, force: bool, state: StateFolder) -> None:
    """Apply changes of users, resources and machines from the configuration file.

    New users and resources are added, missing ones removed. A resource takes new prices at once, and restarts for a new
    machine, plug-in or price strategy. Changes by commands (`ramp resource set`, ...) override the file unless it was
    edited since. Other changes ([server], [timing], ...) are listed and wait for the next `ramp up`. --json: `done`,
    and `changes` with `kind` (`add`, `remove`, `update`, `rebuild`, `later`, `stands`, `warning`), `name` and `text`.
    """
    changed = change(state, "reading the file", lambda market: market.reload(dry_run=dry_run, force=force))
    if not changed.lines and not wants_json():
        click.echo("The market matches its configuration file")
    if dry_run:
        say("nothing was changed; apply the changes with `ramp reload`")


@click.group(epilog=example("ramp user add carol --deposit 5000", "ramp user remove carol", exits=CHANGE_EXITS))
def user() -> None:
    """Add or remove a user while the market runs; the change outlives `ramp down`."""


@user.command("add", epilog=example("ramp user add carol --deposit 5000", exits=CHANGE_EXITS))
@click.argument("name")
@click.option("--deposit", type=credits_type, metavar="CREDITS", help="Opening credit of the account.")
@click.option(
    "--overdraft", type=credits_type, metavar="CREDITS", help="Credit limit: how far below 0 the balance may go."
)
@state_options
def add_user(name: str, deposit: int | None, overdraft: int | None, state: StateFolder) -> None:
    """Add a user: key and certificate, XMPP account, bank account, agent.

    On an external server, its owner makes the XMPP account first. A bank account of that name from an earlier user
    stays, with its balance. A warning lists resources that will refuse the user because [accounts] of the configuration
    gives it no local account for jobs.
    """
    amounts = {"deposit": exact_credits(deposit or 0), "overdraft": exact_credits(overdraft or 0)}
    change(state, f"adding {name}", lambda market: market.add_user(name, **amounts))


@user.command("remove", epilog=example("ramp user remove carol", exits=CHANGE_EXITS))
@click.argument("name", shell_complete=complete_agents("user"))
@click.option("--force", is_flag=True, help="Remove even with open requests or reservations.")
@state_options
def remove_user(name: str, force: bool, state: StateFolder) -> None:
    """Remove a user: its agent ends and its certificates are revoked; journal and bank account stay.

    The command refuses, with a list, while the user has open requests, current reservations, reserved money or debts.
    --force removes it anyway; its reservations can then no longer be cancelled or proved as paid.
    """
    change(state, f"removing {name}", lambda market: market.remove_user(name, force=force))


@click.group(
    epilog=example("ramp resource drain curie1", "ramp resource set curie1 start_price=70", exits=CHANGE_EXITS)
)
def resource() -> None:
    """Add, drain, price or remove a resource while the market runs; the change outlives `ramp down`."""


@resource.command(
    "add",
    epilog=example(
        "ramp resource add curie9 --machine curie --start-price 70 --minimum-price 20",
        "ramp resource add --from new-machine.toml",
        exits=CHANGE_EXITS,
    ),
)
@click.argument("name", required=False)
@click.option("--machine", metavar="NAME", help="Machine of the market's configuration.")
@click.option("--start-price", type=WholeNumber(min=1), metavar="N", help="Start price in credits/core-hour.")
@click.option("--minimum-price", type=WholeNumber(min=1), metavar="N", help="Minimum price in credits/core-hour.")
@click.option("--pricing", metavar="NAME", help="Price strategy (default: ramp).")
@click.option("--plugin", metavar="NAME", help="Plug-in (default: the machine's).")
@click.option("--from", "file", type=file_type, metavar="FILE",
              help="File with one [[resources]], and [machines.NAME] for a new machine.")  # fmt: skip
@state_options
def add_resource(
    name: str | None,
    machine: str | None,
    start_price: int | None,
    minimum_price: int | None,
    pricing: str | None,
    plugin: str | None,
    file: Path | None,
    state: StateFolder,
) -> None:
    """Add a resource, on a machine that the configuration has, or as a piece of TOML says."""
    if file is not None:
        if name is not None or machine is not None:
            raise click.UsageError("--from excludes NAME and --machine")
        definition = click.open_file(str(file)).read()
    elif name is None or machine is None or start_price is None or minimum_price is None:
        raise click.UsageError("give NAME, --machine, --start-price and --minimum-price, or --from FILE")
    else:
        definition = resource_definition(
            name, machine, start_price=start_price, minimum_price=minimum_price, pricing=pricing, plugin=plugin
        )
    change(state, "adding the resource", lambda market: market.add_resource(definition))


@resource.command(
    "drain", epilog=example("ramp resource drain curie1", "ramp resource drain curie1 --resume", exits=CHANGE_EXITS)
)
@click.argument("name", shell_complete=complete_agents("resource"))
@click.option("--resume", is_flag=True, help="Let a resource that drains sell again.")
@state_options
def drain(name: str, resume: bool, state: StateFolder) -> None:
    """Stop new sales of a resource, or resume them; existing reservations stay.

    The resource refuses requests, and acceptances of earlier offers, with the code `draining`. `ramp resources` shows
    it as draining. Draining outlasts a restart.
    """
    make = MarketOperator.resume_resource if resume else MarketOperator.drain_resource
    change(state, f"{'resuming' if resume else 'draining'} {name}", lambda market: make(market, name))


@resource.command("remove", epilog=example("ramp resource remove curie1", exits=CHANGE_EXITS))
@click.argument("name", shell_complete=complete_agents("resource"))
@click.option("--force", is_flag=True, help="Remove even with open reservations or held slots.")
@state_options
def remove_resource(name: str, force: bool, state: StateFolder) -> None:
    """Remove a resource: its agent ends and its certificates are revoked; journal and bank account stay.

    The command refuses, with a list, while the resource has current sales, held slots or debts; drain it first. --force
    removes it anyway: no machine then serves its agreements, and the bank refunds those that are cancelled before their
    slots begin.
    """
    change(state, f"removing {name}", lambda market: market.remove_resource(name, force=force))


@resource.command(
    "set", epilog=example("ramp resource set curie1 start_price=70 minimum_price=25 pricing=ramp", exits=CHANGE_EXITS)
)
@click.argument("name", shell_complete=complete_agents("resource"))
@click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE...")
@state_options
def set_values(name: str, values: tuple[str, ...], state: StateFolder) -> None:
    """Set the prices of a resource for new offers; existing offers keep their price.

    KEY is start_price, minimum_price (credits/core-hour), rounds_expected, or pricing, the name of a price strategy;
    another strategy restarts the resource's agent.
    """
    given: dict[str, int | str] = {}
    for each in values:
        key, separator, value = each.partition("=")
        if not separator or key not in SETTINGS:
            raise click.UsageError(f"got {each!r}, expected KEY=VALUE with KEY one of {', '.join(SETTINGS)}")
        if key in PRICES and not (value.isascii() and value.isdecimal() and int(value) > 0):
            raise click.UsageError(f"got {each!r}, expected a whole number above 0")
        given[key] = int(value) if key in PRICES else value
    change(state, f"setting {name}", lambda market: market.set_resource(name, **given))  # type: ignore[arg-type]
