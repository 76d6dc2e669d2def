"""Reads a swarm's configuration from a TOML file (examples in `agents_config/swarms`).

The classes of the tables say which keys there are, their types, bounds and defaults; `ramp.options` reads them and
reports all problems at once. What concerns several tables is checked after that.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, time
from pathlib import Path
from typing import Annotated, Any, Final

from ramp.entry_points import entry_points_by_name
from ramp.errors import ConfigurationError, check_version
from ramp.launching.configuration import (
    Executor,
    LaunchingConfig,
    LocalAccount,
    acting_by,
    launch_terms,
    named_accounts,
)
from ramp.model.agreement import ORDER_VALIDITY_MAX
from ramp.model.instant import SECOND
from ramp.model.slot import StaticTerms
from ramp.options import Bounds, nearest_name, options_and_findings, wrong_options
from ramp.plugins.found_terms import with_found_terms
from ramp.protocol.conversations import least_retention
from ramp.protocol.resource.jobs.launching import Application
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.timing import Timing
from ramp.runtime.auction_rules import RULES
from ramp.runtime.configuration import sites, values
from ramp.runtime.configuration.sites import Name, Text, Whole
from ramp.runtime.configuration.values import SwarmConfig

CONFIG_VERSION: Final = 1
"""Version of the file's format, and the default of a file without one."""

_OWN_AGENTS: Final = ("bank", "directory", "keeper")
_SAME: Final = ("users", "timing", "quotas", "guests", "logs", "launching", "site", "federation", "enrolment")
"""Tables that the swarm has as they are in the file."""

_Finding = tuple[tuple[str | int, ...], str]
"""Path of a key, and what is wrong there."""


@dataclass(frozen=True, slots=True)
class MachineTable(StaticTerms):
    """A kind of machine. It meets only requests for terms that it states.

    Attributes:
        plugin: plug-in of its resources, by name.
        options: options of that plug-in. The `options` of a resource override them.
    """

    plugin: Text = "fake_qstat"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, value in self._terms().items():
            if value == "":
                raise ConfigurationError("got '', expected a text that is not empty", key=key)
            if type(value) is int and value < 1:
                raise ConfigurationError(f"got {value}, expected a whole number from 1", key=key)

    def _terms(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(StaticTerms)}

    @property
    def terms(self) -> StaticTerms:
        return StaticTerms(**self._terms())


@dataclass(frozen=True, slots=True)
class ResourceTable:
    """A seller.

    Attributes:
        name: the agent's local name.
        machine: its machine: NAME of a table `[machines.NAME]`.
        start_price: start price in whole credits per core hour.
        minimum_price: lowest price in whole credits per core hour, at most the start price.
        gpu_price: price of a GPU in whole credits per GPU-hour, charged beside the cores of its node.
        rounds_expected: how many rounds the price strategy reckons with.
        plugin: name of its plug-in; by default that of the machine.
        options: options of the plug-in. They override those of the machine.
        pricing: name of the strategy.
        isolation: whether plug-in and price strategy have processes of their own: by `auto` those of another package,
            by `process` also those that come with RAMP, by `none` neither.
        applications: one table `[[resources.applications]]` for each installed application (`docs/launching.md`).
        executor: executor of jobs on its slots; by default that of `[launching]`.
        accounts: local accounts of buyers at this resource. They override `[accounts]`.
    """

    name: Name
    machine: Text
    start_price: Whole
    minimum_price: Whole
    gpu_price: Annotated[int, Bounds(0)] = 0
    rounds_expected: Whole = 4
    plugin: Text | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    pricing: Text = "ramp"
    isolation: values.Isolation = "auto"
    applications: tuple[Application, ...] = ()
    executor: Executor | None = None
    accounts: Mapping[str, LocalAccount] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.minimum_price > self.start_price:
            right = f"at most the start price {self.start_price}"
            raise ConfigurationError(f"got {self.minimum_price}, expected {right}", key="minimum_price")


@dataclass(frozen=True, slots=True)
class MarketFile:
    """A configuration file.

    Attributes:
        version: version of the file's format. Files of another version are refused.
        market: the market as a whole.
        server: the XMPP server of the agents.
        timing: time limits of the protocol.
        quotas: limits on what one party may ask of another.
        guests: limits of a plug-in or price strategy in its own process.
        logs: logs of the market's processes; applied at `ramp up`.
        launching: launching of jobs on reservations (`docs/launching.md`).
        accounts: the local account of each buyer's jobs, by the buyer's name (of this market, or a full name). `"*"`:
            all other buyers of this domain. `"*@DOMAIN"`: buyers of another domain. `@own`: the agents' own account, or
            `nobody` if they run as root; for simulated machines only. Resources that launch jobs refuse other buyers.
        bank: the Banking Agents. Two of them need a ledger on PostgreSQL (`docs/operations.md`).
        site: marks the configuration of a site that joined a market (`docs/joining.md`).
        federation: connections of the market's server with servers of other sites (`docs/joining.md`).
        enrolment: starts an enrolment office, which issues certificates to invited parties (`docs/joining.md`).
        users: one table `[[users]]` for each buyer.
        machines: one table `[machines.NAME]` for each kind of machine. It meets only requests for terms that it states.
        resources: one table `[[resources]]` for each seller.
    """

    version: Whole = CONFIG_VERSION
    market: values.MarketTable = field(default_factory=values.MarketTable)
    server: sites.ServerConfig = field(default_factory=sites.ServerConfig)
    timing: Timing = field(default_factory=Timing)
    quotas: values.QuotaConfig = field(default_factory=values.QuotaConfig)
    guests: values.GuestLimits = field(default_factory=values.GuestLimits)
    logs: values.LogConfig = field(default_factory=values.LogConfig)
    launching: LaunchingConfig = field(default_factory=LaunchingConfig)
    accounts: Mapping[str, LocalAccount] = field(default_factory=dict)
    bank: sites.BankConfig = field(default_factory=sites.BankConfig)
    site: sites.SiteConfig | None = None
    federation: sites.FederationConfig | None = None
    enrolment: sites.EnrolmentConfig | None = None
    users: tuple[values.UserConfig, ...] = ()
    machines: Mapping[str, MachineTable] = field(default_factory=dict)
    resources: tuple[ResourceTable, ...] = ()


def load_config(path: Path) -> SwarmConfig:
    """Read and check a swarm's configuration.

    Raises:
        WrongVersion: the file has another format version.
        ConfigurationError: lists every problem and names the file.
    """
    text = text_of(path)
    return read_tables(tables_of(text, path), path, text)


def text_of(path: Path) -> str:
    """Return the text of a configuration file; `ConfigurationError` if it cannot be read."""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"invalid TOML: {error}", path=path) from error


def tables_of(text: str, path: Path) -> dict[str, Any]:
    """Parse the text of a configuration; `ConfigurationError` if it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"invalid TOML: {error}", path=path) from error


def read_tables(data: Mapping[str, Any], path: Path, text: str = "") -> SwarmConfig:
    """Check the tables of a configuration from the file `path`, for errors and relative paths.

    With the file's `text` errors name its lines; it is empty if the tables are not as in the file.

    Raises:
        WrongVersion: the tables have another format version.
        ConfigurationError: lists every problem.
    """
    version = data.get("version", CONFIG_VERSION)
    if type(version) is int and version > 0:
        check_version(path, "configuration", version, CONFIG_VERSION, "use the version of RAMP that wrote it")
    data = with_found_terms(data)
    server = data.get("server")
    if isinstance(server, Mapping) and server.get("addresses"):  # an external server, unless the file says what it is
        data = {**data, "server": {"kind": sites.EXTERNAL, **server}}
    file, findings = options_and_findings(data, MarketFile)
    findings += _missing_parties(data)
    if file is not None:
        findings += [*_wrong_tables(file, data.get("market", {})), *_wrong_resources(file)]
    if not findings:
        findings += _dates(data)
    if file is not None and not findings:
        config = _config(file, path)
        findings += _repeated_names(config)
    if findings:
        raise wrong_options(findings, source=str(path), text=text)
    return config


def _config(file: MarketFile, path: Path) -> SwarmConfig:
    market, signed = file.market, file.market.signed_offers
    crosses_sites = any((file.site, file.federation, file.enrolment))
    named = file.market if file.site is None else file.site
    ca_file, passwords = (
        None if each is None else (path.parent / each).resolve()
        for each in (file.server.ca_file, file.server.passwords)
    )
    stated = {each.name: getattr(market, each.name) for each in fields(values.MarketTable)}
    own = {key: getattr(named, key) for key in _OWN_AGENTS}
    same = {key: getattr(file, key) for key in _SAME}
    return SwarmConfig(
        **stated | own | same | {"signed_offers": crosses_sites if signed is None else signed},
        path=path,
        server=replace(file.server, ca_file=ca_file, passwords=passwords),
        resources=tuple(_resource(file, each) for each in file.resources),
        banks=file.bank,
    )


def _resource(file: MarketFile, table: ResourceTable) -> values.ResourceConfig:
    machine = file.machines[table.machine]
    plugin = table.plugin or machine.plugin
    accounts = named_accounts({**file.accounts, **table.accounts}, file.market.domain)
    executor = table.executor or file.launching.executor
    launching = launch_terms(file.launching, executor, accounts, table.applications)
    return values.ResourceConfig(
        name=table.name,
        plugin=plugin,
        options={**machine.options, **table.options},
        terms=machine.terms,
        prices=PriceRange(table.start_price, table.minimum_price, table.rounds_expected, table.gpu_price),
        pricing=table.pricing,
        isolation=table.isolation,
        launching=launching,
        acting=None if launching is None or launching.keeps_jobs else acting_by(file.launching),
    )


def _wrong_tables(file: MarketFile, market: Mapping[str, Any]) -> Iterator[_Finding]:
    """Check what concerns several tables; `market` is the table as it is in the file."""
    try:
        RULES.find(file.market.auction_rule)
    except ConfigurationError as error:
        yield ("market", "auction_rule"), error.reason
    if file.bank.standby and not file.market.ledger.startswith("postgres"):
        shared = 'market.ledger = "postgresql://user@host/name", which two banks can share'
        yield ("bank", "standby"), f"got true, expected false, or {shared}"
    validity, longest = file.timing.agreement_validity / SECOND, ORDER_VALIDITY_MAX / SECOND
    if validity > longest:
        yield (
            ("timing", "agreement_validity_s"),
            f"got {validity:g}, expected {longest:g} or less: banks refuse longer orders",
        )
    least = least_retention(file.timing)
    if file.timing.retention < least:
        right = f"{least / SECOND:g} or more, for peers may still send messages about finished business"
        yield ("timing", "retention_s"), f"got {file.timing.retention / SECOND:g}, expected {right}"
    kind = file.server.kind
    if file.federation is not None and kind != sites.PROSODY:
        yield ("server", "kind"), f'got {kind!r}, expected "{sites.PROSODY}" where there is a table [federation]'
    if file.site is None:
        return
    if file.enrolment is not None:
        yield ("enrolment",), "a site that joined a market has no enrolment office; remove the table"
    if kind == sites.EMBEDDED:
        right = f'"{sites.PROSODY}" or "{sites.EXTERNAL}": the embedded server reaches no other site'
        yield ("server", "kind"), f"got {kind!r}, expected {right}"
    for key in (each for each in _OWN_AGENTS if each in market):
        right = f"no value: a site has none of its own; site.{key} is the market's"
        yield ("market", key), f"got {market[key]!r}, expected {right}"


def _dates(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[_Finding]:
    """Find dates and times of TOML; changes of the market and messages to guests are JSON, which has none."""
    if isinstance(value, date | time):
        yield path, f'got a date or time, expected a text such as "{value.isoformat()}"'
    entries = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in entries:
        yield from _dates(each, (*path, key))


def _missing_parties(data: Mapping[str, Any]) -> Iterator[_Finding]:
    if not data.get("resources") and not ("site" in data and data.get("users")):
        yield ("resources",), "none given, expected at least one [[resources]]"
    if not data.get("users") and "site" not in data:
        yield ("users",), "none given, expected at least one [[users]]"


def _wrong_resources(file: MarketFile) -> Iterator[_Finding]:
    for index, table in enumerate(file.resources):
        where = ("resources", index)
        if table.machine not in file.machines:
            near = nearest_name(table.machine, list(file.machines))
            yield (*where, "machine"), f"no [machines.{table.machine}]{near}"
            continue
        plugin = table.plugin or file.machines[table.machine].plugin
        for group, name, key in (
            (values.PLUGIN_GROUP, plugin, "plugin"),
            (values.PRICING_GROUP, table.pricing, "pricing"),
        ):
            known = sorted(entry_points_by_name(group))
            if name not in known:
                yield (*where, key), f"unknown {key} {name!r}{nearest_name(name, known)}"
        try:
            _resource(file, table)
        except ConfigurationError as error:
            yield (*where, error.key or ""), error.reason


def _repeated_names(config: SwarmConfig) -> Iterator[_Finding]:
    names = [*config.bank_names, *config.directory_names, config.keeper] if config.own_agents else []
    names += [] if config.enrolment is None else [config.enrolment.name]
    names += [user.name for user in config.users]
    names += [*(resource.name for resource in config.resources), *config.server.accounts]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield ("name",), f"{name!r} is used {names.count(name)} times, expected a different name for each agent"
