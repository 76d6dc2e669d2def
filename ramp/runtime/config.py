"""The swarm's configuration: one TOML file says who is on the market (examples in `agents_config/swarms`).

Everything is checked when the file is read, and all findings are reported at once, each with its key, its value and
what would be right.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND
from ramp.model.money import parse_credits
from ramp.model.slot import StaticTerms
from ramp.plugins.interface import PluginSettings, ResourcePlugin
from ramp.protocol.pricing import PricingStrategy
from ramp.protocol.seller import PriceRange
from ramp.protocol.timing import Timing

PLUGIN_GROUP: Final = "ramp.resource_plugins"
PRICING_GROUP: Final = "ramp.pricing"
EMBEDDED: Final = "embedded"
PROSODY: Final = "prosody"

DEFAULT_RESOURCE_CREDIT: Final = 100_000_000_000
"""Overdraft of resources in minor units: a resource must always be able to refund what it has sold."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The XMPP server.

    Attributes:
        kind: `embedded`, `prosody` (both started with the swarm) or `external`.
        addresses: (host, port) of an external one, tried in turn.
        ca_file: authorities that sign its certificate; None for the system's.
        register: whether accounts may be made by the agents themselves.
        federation: whether agents of other domains take part.
        passwords: file with `name = "password"` lines for accounts that exist already, or None.
    """

    kind: str = EMBEDDED
    addresses: tuple[tuple[str, int], ...] = ()
    ca_file: Path | None = None
    register: bool = True
    federation: bool = False
    passwords: Path | None = None


@dataclass(frozen=True, slots=True)
class UserConfig:
    """A user of the market: name, opening deposit and overdraft in minor units."""

    name: str
    deposit: int = 0
    credit_limit: int = 0


@dataclass(frozen=True, slots=True)
class ResourceConfig:
    """A resource of the market.

    Attributes:
        name: the agent's local name.
        plugin: name of its plug-in.
        options: the plug-in's own options.
        terms: the machine's static terms.
        prices: start and minimum price and the rounds expected.
        pricing: name of the strategy.
        credit_limit: overdraft in minor units.
    """

    name: str
    plugin: str
    options: Mapping[str, Any]
    terms: StaticTerms
    prices: PriceRange
    pricing: str = "ramp"
    credit_limit: int = DEFAULT_RESOURCE_CREDIT


@dataclass(frozen=True, slots=True)
class SwarmConfig:
    """A whole swarm.

    Attributes:
        path: the file it was read from.
        domain: XMPP domain of the agents.
        server: the XMPP server.
        users: the buyers.
        resources: the sellers.
        timing: the protocol's limits.
        ledger_url: SQLAlchemy URL of the ledger, or empty for SQLite under the state folder.
        resources_per_process: how many Resource Agents share one process.
        bank: local name of the Banking Agent.
        directory: local name of the directory agent.
    """

    path: Path
    domain: str
    server: ServerConfig
    users: tuple[UserConfig, ...]
    resources: tuple[ResourceConfig, ...]
    timing: Timing = field(default_factory=Timing)
    ledger_url: str = ""
    resources_per_process: int = 10
    bank: str = "bank"
    directory: str = "directory"

    def address(self, local_name: str) -> str:
        """Full name of an agent: `name@domain`."""
        return f"{local_name}@{self.domain}"

    def resource(self, local_name: str) -> ResourceConfig:
        """The resource of that name.

        Raises:
            ConfigurationError: if there is none.
        """
        for resource in self.resources:
            if resource.name == local_name:
                return resource
        names = [resource.name for resource in self.resources]
        raise ConfigurationError(f"no resource is called {local_name!r}{_nearest(local_name, names)}", path=self.path)

    def user(self, local_name: str) -> UserConfig:
        """The user of that name.

        Raises:
            ConfigurationError: if there is none.
        """
        for user in self.users:
            if user.name == local_name:
                return user
        names = [user.name for user in self.users]
        raise ConfigurationError(f"no user is called {local_name!r}{_nearest(local_name, names)}", path=self.path)


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(known)}" if known else ""


class _Reader:
    """Reads tables with checks; collects findings instead of stopping at the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.findings: list[str] = []

    def wrong(self, key: str, value: object, right: str) -> None:
        self.findings.append(f"{key}: {value!r} is wrong; right would be {right}")

    def unknown(self, where: str, table: Mapping[str, Any], known: set[str]) -> None:
        for key in table:
            if key not in known:
                self.findings.append(f"{where}{key}: no such key{_nearest(key, sorted(known))}")

    def table(self, parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = parent.get(key, {})
        if isinstance(value, Mapping):
            return value
        self.wrong(key, value, f"a table [{key}]")
        return {}

    def tables(self, parent: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        value = parent.get(key, [])
        if isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value):
            return value
        self.wrong(key, value, f"a list of tables [[{key}]]")
        return []

    def text(self, where: str, table: Mapping[str, Any], key: str, default: str | None = None) -> str:
        value = table.get(key, default)
        if isinstance(value, str) and (value or default == ""):
            return value
        self.wrong(f"{where}{key}", value, "a text in quotes")
        return default or "?"

    def whole(self, where: str, table: Mapping[str, Any], key: str, default: int | None, least: int = 1) -> int:
        value = table.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        self.wrong(f"{where}{key}", value, f"a whole number from {least}")
        return least

    def truth(self, where: str, table: Mapping[str, Any], key: str, default: bool) -> bool:
        value = table.get(key, default)
        if isinstance(value, bool):
            return value
        self.wrong(f"{where}{key}", value, "true or false")
        return default

    def money(self, where: str, table: Mapping[str, Any], key: str, default: int) -> int:
        value = table.get(key)
        if value is None:
            return default
        if isinstance(value, int | str) and not isinstance(value, bool):
            try:
                amount = parse_credits(str(value))
            except ValueError:
                amount = -1
            if amount >= 0:
                return amount
        self.wrong(f"{where}{key}", value, 'an amount of credits, for example 1000 or "99.50"')
        return default


def load_config(path: Path) -> SwarmConfig:
    """Read and check a swarm's configuration.

    Raises:
        ConfigurationError: with every finding; the file is named.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}", path=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"is no TOML: {error}", path=path) from error
    reader = _Reader(path)
    config = _read_swarm(reader, data)
    if reader.findings:
        raise ConfigurationError("\n  ".join(("the configuration is wrong", *reader.findings)), path=path)
    return config


def _read_swarm(reader: _Reader, data: Mapping[str, Any]) -> SwarmConfig:
    reader.unknown("", data, {"market", "server", "timing", "users", "machines", "resources"})
    market = reader.table(data, "market")
    reader.unknown("market.", market, {"domain", "ledger", "resources_per_process", "bank", "directory"})
    machines = reader.table(data, "machines")
    users = tuple(_read_user(reader, index, table) for index, table in enumerate(reader.tables(data, "users"), 1))
    resources = tuple(
        _read_resource(reader, index, table, machines)
        for index, table in enumerate(reader.tables(data, "resources"), 1)
    )
    config = SwarmConfig(
        path=reader.path,
        domain=reader.text("market.", market, "domain", "localhost"),
        server=_read_server(reader, reader.table(data, "server")),
        users=users,
        resources=resources,
        timing=_read_timing(reader, reader.table(data, "timing")),
        ledger_url=reader.text("market.", market, "ledger", ""),
        resources_per_process=reader.whole("market.", market, "resources_per_process", 10),
        bank=reader.text("market.", market, "bank", "bank"),
        directory=reader.text("market.", market, "directory", "directory"),
    )
    _check_names(reader, config)
    return config


def _check_names(reader: _Reader, config: SwarmConfig) -> None:
    names = [config.bank, config.directory]
    names += [user.name for user in config.users] + [resource.name for resource in config.resources]
    for name in names:
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name != name.lower():
            reader.wrong("name", name, "lower-case letters, digits, dots, hyphens and underscores")
    for name in sorted({name for name in names if names.count(name) > 1}):
        reader.findings.append(f"name: {name!r} is used {names.count(name)} times; every agent needs its own")
    if not config.resources:
        reader.findings.append("resources: there is none; a market needs at least one [[resources]]")
    if not config.users:
        reader.findings.append("users: there is none; a market needs at least one [[users]]")


def _read_server(reader: _Reader, table: Mapping[str, Any]) -> ServerConfig:
    reader.unknown("server.", table, {"kind", "addresses", "ca_file", "register", "federation", "passwords"})
    addresses: list[tuple[str, int]] = []
    listed = table.get("addresses", [])
    for address in listed if isinstance(listed, list) else [listed]:
        host, separator, port = str(address).rpartition(":")
        if separator and host and port.isdecimal() and 0 < int(port) < 65_536:
            addresses.append((host, int(port)))
        else:
            reader.wrong("server.addresses", address, 'a list such as ["xmpp.example.org:5222"]')
    kind = reader.text("server.", table, "kind", "external" if addresses else EMBEDDED)
    if kind not in (EMBEDDED, PROSODY, "external"):
        reader.wrong("server.kind", kind, f'"{EMBEDDED}", "{PROSODY}" or "external"')
    if kind == "external" and not addresses:
        reader.findings.append('server.addresses: an external server needs addresses = ["host:port"]')
    return ServerConfig(
        kind=kind,
        addresses=tuple(addresses),
        ca_file=_read_path(reader, table, "ca_file"),
        register=reader.truth("server.", table, "register", True),
        federation=reader.truth("server.", table, "federation", False),
        passwords=_read_path(reader, table, "passwords"),
    )


def _read_path(reader: _Reader, table: Mapping[str, Any], key: str) -> Path | None:
    if key not in table:
        return None
    return (reader.path.parent / reader.text("server.", table, key)).resolve()


def _read_timing(reader: _Reader, table: Mapping[str, Any]) -> Timing:
    known = {f"{entry.name}_s": entry.name for entry in fields(Timing)}
    reader.unknown("timing.", table, set(known))
    timing = Timing()
    for key, value in table.items():
        if key in known:
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                reader.wrong(f"timing.{key}", value, "a number of seconds above 0")
            else:
                timing = replace(timing, **{known[key]: round(value * SECOND)})
    return timing


def _read_user(reader: _Reader, index: int, table: Mapping[str, Any]) -> UserConfig:
    where = f"users[{index}]."
    reader.unknown(where, table, {"name", "deposit", "credit_limit"})
    return UserConfig(
        name=reader.text(where, table, "name"),
        deposit=reader.money(where, table, "deposit", 0),
        credit_limit=reader.money(where, table, "credit_limit", 0),
    )


_MACHINE_KEYS: Final = {entry.name for entry in fields(StaticTerms)}
_RESOURCE_KEYS: Final = {
    "name",
    "machine",
    "plugin",
    "options",
    "start_price",
    "minimum_price",
    "rounds_expected",
    "pricing",
    "credit_limit",
}


def _read_resource(
    reader: _Reader, index: int, table: Mapping[str, Any], machines: Mapping[str, Any]
) -> ResourceConfig:
    where = f"resources[{index}]."
    reader.unknown(where, table, _RESOURCE_KEYS)
    machine_name = reader.text(where, table, "machine")
    machine = machines.get(machine_name, {})
    if machine_name not in machines or not isinstance(machine, Mapping):
        reader.findings.append(f"{where}machine: no [machines.{machine_name}]{_nearest(machine_name, list(machines))}")
        machine = {"cores": 1}
    start = reader.whole(where, table, "start_price", None)
    minimum = reader.whole(where, table, "minimum_price", None)
    if minimum > start:
        reader.wrong(f"{where}minimum_price", minimum, f"at most the start price {start}")
    plugin = reader.text(where, table, "plugin", str(machine.get("plugin", "fake_qstat")))
    pricing = reader.text(where, table, "pricing", "ramp")
    for group, name, key in ((PLUGIN_GROUP, plugin, "plugin"), (PRICING_GROUP, pricing, "pricing")):
        known = sorted({entry.name for entry in metadata.entry_points(group=group)})
        if name not in known:
            reader.findings.append(f"{where}{key}: no {key} is called {name!r}{_nearest(name, known)}")
    return ResourceConfig(
        name=reader.text(where, table, "name"),
        plugin=plugin,
        options={**reader.table(machine, "options"), **reader.table(table, "options")},
        terms=_read_terms(reader, f"machines.{machine_name}.", machine),
        prices=PriceRange(start, minimum, reader.whole(where, table, "rounds_expected", 4)),
        pricing=pricing,
        credit_limit=reader.money(where, table, "credit_limit", DEFAULT_RESOURCE_CREDIT),
    )


def _read_terms(reader: _Reader, where: str, table: Mapping[str, Any]) -> StaticTerms:
    reader.unknown(where, table, _MACHINE_KEYS | {"plugin", "options"})
    given: dict[str, Any] = {"cores": reader.whole(where, table, "cores", None)}
    for key in (entry.name for entry in fields(StaticTerms) if entry.name in table and entry.name != "cores"):
        if key in ("operating_system", "os_version", "architecture"):
            given[key] = reader.text(where, table, key)
        elif key == "torus":
            given[key] = reader.truth(where, table, key, False)
        else:
            given[key] = reader.whole(where, table, key, None)
    return StaticTerms(**given)


def _load(group: str, name: str) -> Any:
    found = next(iter(metadata.entry_points(group=group, name=name)), None)
    if found is None:
        known = sorted({entry.name for entry in metadata.entry_points(group=group)})
        raise ConfigurationError(f"nothing is called {name!r} in the entry point group {group}{_nearest(name, known)}")
    return found.load()


def open_plugin(resource: ResourceConfig, started_at: int, state_dir: Path | None, seed: int = 0) -> ResourcePlugin:
    """Open a resource's plug-in by its entry point.

    Args:
        resource: the resource.
        started_at: when the machine's clock began.
        state_dir: where the plug-in keeps its reservations, or None for memory only.
        seed: of what the plug-in draws.

    Raises:
        ConfigurationError: if there is no such plug-in or it does not accept its options.
    """
    settings = PluginSettings(
        resource=resource.name,
        cores=resource.terms.cores,
        cores_per_node=resource.terms.cores_per_node,
        started_at=started_at,
        options=resource.options,
        state_dir=state_dir,
        seed=seed,
    )
    plugin: ResourcePlugin = _load(PLUGIN_GROUP, resource.plugin)(settings)
    return plugin


def pricing_strategy(name: str) -> PricingStrategy:
    """A pricing strategy by its entry point.

    Raises:
        ConfigurationError: if there is none of that name.
    """
    strategy: PricingStrategy = _load(PRICING_GROUP, name)
    return strategy
