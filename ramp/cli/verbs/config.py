"""`ramp config`: a market's configuration, checked and shown."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ramp.cli.options import example, json_option, state_option
from ramp.cli.views.output import amount_json, count_text, print_json, print_pairs, print_rows, say
from ramp.errors import ConfigurationError
from ramp.model.instant import seconds
from ramp.model.money import credits_text
from ramp.runtime.shipped_swarms import DEFAULT_SWARM, find_config
from ramp.runtime.state_folder import StateFolder

if TYPE_CHECKING:
    from ramp.runtime.configuration.values import ResourceConfig, SwarmConfig


@click.command(epilog=example("ramp config", "ramp config table2 --json", "ramp config --check my-market.toml"))
@click.argument("names", nargs=-1, metavar="[CONFIG]...")
@click.option("--check", is_flag=True, help="Only check the configurations. Exit code 2: at least one is invalid.")
@state_option
@json_option
@click.pass_context
def config(ctx: click.Context, names: tuple[str, ...], check: bool, state: StateFolder, as_json: bool) -> None:
    """Show a market's configuration with all its defaults, or check configurations and print all findings.

    CONFIG is a TOML file, or the name of one that comes with RAMP; by default it is that of the running market, else
    quickstart.
    """
    if check:
        if not names:
            raise click.UsageError("--check needs a CONFIG")
        ctx.exit(_check(names, as_json=as_json))
    for name in names or (None,):
        _show(name, state, as_json=as_json)


def _check(names: tuple[str, ...], *, as_json: bool) -> int:
    results = [_checked(name) for name in names]
    if as_json:
        print_json([result.as_json() for result in results])
    for result in [] if as_json else results:
        if result.loaded is not None:
            click.echo(
                f"{result.path}: valid, {count_text(len(result.loaded.resources), 'resource')}, "
                f"{count_text(len(result.loaded.users), 'user')}, {result.loaded.server.kind} server"
            )
            for machine in result.unused:
                say(f"ramp: {result.path}: warning: no resource has the machine {machine!r}")
        else:
            say(f"ramp: {result.findings}")
    return 0 if all(result.loaded is not None for result in results) else 2


@dataclass(frozen=True, slots=True)
class _Checked:
    """A configuration, or its errors."""

    path: str
    loaded: SwarmConfig | None
    findings: str = ""
    unused: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        found: dict[str, object] = {"path": self.path, "valid": self.loaded is not None, "findings": self.findings}
        if self.loaded is None:
            return found
        counts = {"resources": len(self.loaded.resources), "users": len(self.loaded.users)}
        return found | counts | {"server": self.loaded.server.kind, "unused_machines": list(self.unused)}


def _checked(name: str) -> _Checked:
    from ramp.runtime.configuration.file import load_config

    try:
        loaded = load_config(find_config(name))
    except ConfigurationError as error:
        return _Checked(name, None, str(error))
    data = tomllib.loads(loaded.path.read_text("utf-8"))
    used = {resource["machine"] for resource in data["resources"]}
    return _Checked(str(loaded.path), loaded, unused=tuple(sorted(set(data.get("machines", {})) - used)))


def _show(name: str | None, state: StateFolder, *, as_json: bool) -> None:
    from ramp.runtime.configuration.file import load_config

    loaded = load_config(_present(state) if name is None else find_config(name))
    if as_json:
        print_json(_object(loaded))
        return
    print_pairs(
        (
            ("File", loaded.path),
            ("Domain", loaded.domain),
            ("Server", _server_text(loaded)),
            ("Ledger", loaded.ledger_url or "SQLite in the state folder"),
            ("Bank, directories", ", ".join((loaded.bank, *loaded.directory_names))),
            ("Quotas", _quotas_text(loaded)),
            ("Guests", _guests_text(loaded)),
            ("Timing", ", ".join(f"{key} {value:g}" for key, value in _timing(loaded).items())),
        )
    )
    print_rows(
        ("User", "Opening deposit (credits)", "Overdraft (credits)"),
        [(user.name, credits_text(user.deposit), credits_text(user.overdraft)) for user in loaded.users],
        right=("Opening deposit (credits)", "Overdraft (credits)"),
    )
    columns = ("Resource", "Cores", "Start price", "Minimum price", "Rounds expected", "Pricing", "Plug-in", "Options")
    print_rows(columns, [_resource_row(resource) for resource in loaded.resources], right=columns[1:5])
    click.echo("Prices are credits per core-hour")


def _present(state: StateFolder) -> Path:
    from ramp.client.swarm import status

    found = status(state)
    return find_config(DEFAULT_SWARM) if found is None else Path(found.config)


def _server_text(loaded: SwarmConfig) -> str:
    addresses = ", ".join(f"{host}:{port}" for host, port in loaded.server.addresses)
    return f"{loaded.server.kind} {addresses}".strip()


def _quotas_text(loaded: SwarmConfig) -> str:
    quotas = loaded.quotas
    return f"{quotas.messages_per_sender_per_second} messages a sender and second, {quotas.burst} at once"


def _guests_text(loaded: SwarmConfig) -> str:
    return ", ".join(f"{key} {value:g}" for key, value in _guest_limits(loaded).items())


def _guest_limits(loaded: SwarmConfig) -> dict[str, float]:
    limits = ("quote", "price", "change", "snapshot", "open")
    return {f"{name}_s": seconds(getattr(loaded.guests, name)) for name in limits}


def _timing(loaded: SwarmConfig) -> dict[str, float]:
    from dataclasses import fields

    return {f"{entry.name}_s": seconds(getattr(loaded.timing, entry.name)) for entry in fields(loaded.timing)}


def _resource_row(resource: ResourceConfig) -> tuple[object, ...]:
    return (
        resource.name,
        resource.terms.cores,
        resource.prices.start_price,
        resource.prices.minimum_price,
        resource.prices.rounds_expected,
        resource.pricing,
        resource.plugin,
        ", ".join(f"{key} {value}" for key, value in resource.options.items()),
    )


def _object(loaded: SwarmConfig) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "path": str(loaded.path),
        "domain": loaded.domain,
        "server": {
            "kind": loaded.server.kind,
            "addresses": [f"{host}:{port}" for host, port in loaded.server.addresses],
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
        "ledger": loaded.ledger_url,
        "bank": loaded.bank,
        "directory": loaded.directory,
        "directories": list(loaded.directory_names),
        "resources_per_process": loaded.resources_per_process,
        "timing": _timing(loaded),
        "users": [
            {
                "name": user.name,
                "deposit": amount_json(user.deposit),
                "overdraft": amount_json(user.overdraft),
            }
            for user in loaded.users
        ],
        "resources": [
            {
                "name": resource.name,
                "plugin": resource.plugin,
                "options": dict(resource.options),
                "pricing": resource.pricing,
                "isolation": resource.isolation.value,
                "start_price": resource.prices.start_price,
                "minimum_price": resource.prices.minimum_price,
                "rounds_expected": resource.prices.rounds_expected,
                "terms": asdict(resource.terms),
            }
            for resource in loaded.resources
        ],
    }
