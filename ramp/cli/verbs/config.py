"""`ramp config`: a market's configuration, checked and shown."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ramp.cli.options import example, state_options
from ramp.cli.views.fields import AMOUNT, NUMBER, Field, Fields, Kind
from ramp.cli.views.output import count_text, print_pairs, printed_as_json, say
from ramp.errors import ConfigurationError
from ramp.model.instant import seconds
from ramp.runtime.state_folder import StateFolder
from ramp.shipped_files import DEFAULT_SWARM, find_config

if TYPE_CHECKING:
    from ramp.runtime.configuration.values import ResourceConfig, SwarmConfig, UserConfig


@click.command(epilog=example("ramp config", "ramp config table2 --json", "ramp config --check my-market.toml"))
@click.argument("names", nargs=-1, metavar="[CONFIG]...")
@click.option("--check", is_flag=True, help="Only check the configurations. Exit code 2: at least one is invalid.")
@state_options
def config(names: tuple[str, ...], check: bool, state: StateFolder) -> int:
    """Show a market's configuration with all its defaults, or check configurations and print all findings.

    CONFIG is a TOML file, or the name of one that comes with RAMP; by default it is that of the running market, else
    quickstart.
    """
    if check:
        if not names:
            raise click.UsageError("--check needs a CONFIG")
        return _check(names)
    for name in names or (None,):
        _show(name, state)
    return 0


def _check(names: tuple[str, ...]) -> int:
    found = [_checked(name) for name in names]
    for each in [] if printed_as_json(found) else found:
        if each["valid"]:
            resources, users = count_text(each["resources"], "resource"), count_text(each["users"], "user")
            click.echo(f"{each['path']}: valid, {resources}, {users}, {each['server']} server")
            for machine in each["unused_machines"]:
                say(f"ramp: {each['path']}: warning: no resource has the machine {machine!r}")
        else:
            say(f"ramp: {each['findings']}")
    return 0 if all(each["valid"] for each in found) else 2


def _checked(name: str) -> dict[str, Any]:
    """Check a configuration; return the object that --json prints."""
    from ramp.runtime.configuration.file import load_config

    try:
        loaded = load_config(find_config(name))
    except ConfigurationError as error:
        return {"path": name, "valid": False, "findings": str(error)}
    data = tomllib.loads(loaded.path.read_text("utf-8"))
    used = {resource["machine"] for resource in data.get("resources", ())}
    return {
        "path": str(loaded.path),
        "valid": True,
        "findings": "",
        "resources": len(loaded.resources),
        "users": len(loaded.users),
        "server": loaded.server.kind,
        "unused_machines": sorted(set(data.get("machines", {})) - used),
    }


def _show(name: str | None, state: StateFolder) -> None:
    from ramp.client.access import status
    from ramp.runtime.configuration.file import load_config

    running = status(state) if name is None else None
    loaded = load_config(find_config(name or DEFAULT_SWARM) if running is None else Path(running.config))
    if printed_as_json(_object(loaded)):
        return
    quotas = loaded.quotas
    print_pairs(
        (
            ("File", loaded.path),
            ("Domain", loaded.domain),
            ("Server", " ".join((loaded.server.kind, ", ".join(_addresses(loaded)))).strip()),
            ("Ledger", loaded.ledger or "SQLite in the state folder"),
            ("Bank, directories", ", ".join((loaded.bank, *loaded.directory_names))),
            ("Quotas", f"{quotas.messages_per_sender_per_second} messages a sender and second, {quotas.burst} at once"),
            ("Guests", _listed(_guest_limits(loaded))),
            ("Timing", _listed(_timing(loaded))),
        )
    )
    USERS.print_table(loaded.users)
    RESOURCES.print_table(loaded.resources)
    click.echo("Prices are credits per core-hour")


def _addresses(loaded: SwarmConfig) -> list[str]:
    return [f"{host}:{port}" for host, port in loaded.server.addresses]


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{key} {value:g}" for key, value in values.items())


def _guest_limits(loaded: SwarmConfig) -> dict[str, float]:
    limits = ("quote", "price", "change", "snapshot", "open")
    return {f"{name}_s": seconds(getattr(loaded.guests, name)) for name in limits}


def _timing(loaded: SwarmConfig) -> dict[str, float]:
    return {f"{entry.name}_s": seconds(getattr(loaded.timing, entry.name)) for entry in fields(loaded.timing)}


def _options_text(resource: ResourceConfig) -> str:
    return ", ".join(f"{key} {value}" for key, value in resource.options.items())


USERS: Final[Fields[UserConfig]] = Fields(
    Field("name", "User", lambda user: user.name),
    Field("deposit", "Opening deposit (credits)", lambda user: user.deposit, AMOUNT),
    Field("overdraft", "Overdraft (credits)", lambda user: user.overdraft, AMOUNT),
)
RESOURCES: Final[Fields[ResourceConfig]] = Fields(
    Field("name", "Resource", lambda resource: resource.name),
    Field("terms", "Cores", lambda resource: resource.terms, Kind(asdict, lambda terms: terms.cores, is_number=True)),
    Field("start_price", "Start price", lambda resource: resource.prices.start_price, NUMBER),
    Field("minimum_price", "Minimum price", lambda resource: resource.prices.minimum_price, NUMBER),
    Field("gpu_price", "", lambda resource: resource.prices.gpu_price),
    Field("rounds_expected", "Rounds expected", lambda resource: resource.prices.rounds_expected, NUMBER),
    Field("pricing", "Pricing", lambda resource: resource.pricing),
    Field("plugin", "Plug-in", lambda resource: resource.plugin),
    Field("options", "Options", lambda resource: dict(resource.options), text=_options_text),
    Field("isolation", "", lambda resource: resource.isolation),
)


def _object(loaded: SwarmConfig) -> dict[str, object]:
    return {
        "path": str(loaded.path),
        "domain": loaded.domain,
        "server": {
            "kind": loaded.server.kind,
            "addresses": _addresses(loaded),
            "spread": loaded.server.spread,
            "register": loaded.server.register,
            "federation": loaded.server.federation,
            "accounts": list(loaded.server.accounts),
        },
        "quotas": asdict(loaded.quotas),
        "guests": {
            **_guest_limits(loaded),
            "waiting_max": loaded.guests.waiting_max,
            "memory_mb": loaded.guests.memory_mb,
            "environment": list(loaded.guests.environment),
        },
        "ledger": loaded.ledger,
        "bank": loaded.bank,
        "directory": loaded.directory,
        "directories": list(loaded.directory_names),
        "resources_per_process": loaded.resources_per_process,
        "timing": _timing(loaded),
        "users": [USERS.plain(user) for user in loaded.users],
        "resources": [RESOURCES.plain(resource) for resource in loaded.resources],
    }
