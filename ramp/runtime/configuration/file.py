"""Reads a swarm's configuration from a TOML file (examples in `agents_config/swarms`).

It reports all problems at once, each with its key, its value and what is expected.
"""

from __future__ import annotations

import math
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from ramp.entry_points import entry_points
from ramp.errors import ConfigurationError, check_version
from ramp.launching.acting import Acting
from ramp.launching.configuration import acting_by, launch_terms, read_accounts, read_launching
from ramp.model.agreement import ORDER_VALIDITY_MAX
from ramp.model.instant import SECOND, Duration
from ramp.model.slot import StaticTerms
from ramp.options import nearest_name
from ramp.plugins.found_terms import with_found_terms
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.quotas import Quotas
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.retention import least_retention
from ramp.protocol.rules.auction_rule import PAPER_RULE
from ramp.protocol.timing import Timing
from ramp.runtime.auction_rules import RULES
from ramp.runtime.configuration.reader import Reader
from ramp.runtime.configuration.servers import REDUNDANCY_KEYS, read_redundancy, read_server
from ramp.runtime.configuration.sites import JOINING_TABLES, market_agents, read_joining
from ramp.runtime.configuration.values import (
    MEMORY_MB_MIN,
    PLUGIN_GROUP,
    PRICING_GROUP,
    QUEUE_BOUND,
    GuestLimits,
    Isolation,
    LogConfig,
    LogFormat,
    QuotaConfig,
    ResourceConfig,
    SwarmConfig,
    UserConfig,
)

CONFIG_VERSION: Final = 1
"""Version of the file's format, and the default of a file without one."""


def load_config(path: Path) -> SwarmConfig:
    """Read and check a swarm's configuration.

    Raises:
        WrongVersion: the file has another format version.
        ConfigurationError: lists every problem and names the file.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"invalid TOML: {error}", path=path) from error
    return read_tables(tables_of(text, path), path)


def tables_of(text: str, path: Path) -> dict[str, Any]:
    """Parse the text of a configuration; `ConfigurationError` if it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"invalid TOML: {error}", path=path) from error


def read_tables(data: Mapping[str, Any], path: Path) -> SwarmConfig:
    """Check the tables of a configuration from the file `path`.

    Raises:
        WrongVersion: the tables have another format version.
        ConfigurationError: lists every problem.
    """
    reader = Reader(path)
    data = with_found_terms(data)
    version = reader.whole("", data, "version", CONFIG_VERSION)
    check_version(path, "configuration", version, CONFIG_VERSION, "use the version of RAMP that wrote it")
    config = read_swarm(reader, data)
    if reader.findings:
        raise ConfigurationError("\n  ".join(("invalid configuration", *reader.findings)), path=path)
    return config


_MARKET_KEYS: Final = {
    "domain",
    "ledger",
    "resources_per_process",
    "bank",
    "directory",
    "keeper",
    "signed_offers",
    "auction_rule",
}


def read_swarm(reader: Reader, data: Mapping[str, Any]) -> SwarmConfig:
    """Read a swarm from a file's tables and note problems in the reader's findings (`load_config` raises them)."""
    known = {"version", "market", "server", "timing", "quotas", "guests", "logs", "launching", "accounts"}
    known |= {"bank", "users", "machines", "resources", *JOINING_TABLES}
    reader.unknown("", data, known)
    market = reader.table(data, "market")
    reader.unknown("market.", market, _MARKET_KEYS | REDUNDANCY_KEYS)
    machines = reader.table(data, "machines")
    domain = reader.text("market.", market, "domain", "localhost")
    table = reader.table(data, "launching")
    seconds = {"grace_s": "grace", "delivery_limit_s": "delivery_limit"}
    launching = read_launching(reader, table, _read_durations(reader, "launching.", table, seconds))
    reader.unknown("accounts.", {}, {"NAME"})
    accounts = read_accounts(reader, "accounts.", reader.table(data, "accounts"), domain)

    def launched(where: str, resource: Mapping[str, Any], plugin: str) -> tuple[LaunchTerms | None, Acting | None]:
        reserves = plugin != QUEUE_BOUND
        terms = launch_terms(reader, where, resource, launching, accounts, domain, reserves=reserves)
        return terms, None if terms is None or terms.keeps_jobs else acting_by(launching)

    users = tuple(_read_user(reader, index, table) for index, table in enumerate(reader.tables(data, "users"), 1))
    resources = tuple(
        _read_resource(reader, index, table, machines, launched)
        for index, table in enumerate(reader.tables(data, "resources"), 1)
    )
    server = read_server(reader, reader.table(data, "server"))
    joining = read_joining(reader, data, server.kind)
    config = SwarmConfig(
        path=reader.path,
        domain=domain,
        server=server,
        users=users,
        resources=resources,
        timing=_read_timing(reader, reader.table(data, "timing")),
        ledger_url=reader.text("market.", market, "ledger", ""),
        resources_per_process=reader.whole("market.", market, "resources_per_process", 10),
        **market_agents(reader, market, joining),
        signed_offers=reader.truth("market.", market, "signed_offers", joining.crosses_sites),
        quotas=_read_quotas(reader, reader.table(data, "quotas")),
        holds=_read_holds(reader, reader.table(data, "quotas")),
        guests=_read_guests(reader, reader.table(data, "guests")),
        auction_rule=_read_rule(reader, market),
        logs=_read_logs(reader, reader.table(data, "logs")),
        launching=launching,
        joining=joining,
        redundancy=read_redundancy(reader, data, market),
    )
    _check_names(reader, config)
    return config


def _read_rule(reader: Reader, market: Mapping[str, Any]) -> str:
    name = reader.text("market.", market, "auction_rule", PAPER_RULE)
    try:
        RULES.find(name)
    except ConfigurationError as error:
        reader.findings.append(f"market.auction_rule: {error.reason}")
    return name


def _check_names(reader: Reader, config: SwarmConfig) -> None:
    names = [*config.bank_names, *config.directory_names, config.keeper] if config.own_agents else []
    names += [] if config.joining.enrolment is None else [config.joining.enrolment.name]
    names += [user.name for user in config.users]
    names += [*(resource.name for resource in config.resources), *config.server.accounts]
    for name in names:
        # NFKC and case folding keep a name with only one spelling; the check of the XMPP server is stricter
        plain = unicodedata.normalize("NFKC", name).casefold()
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name != plain:
            reader.wrong("name", name, "lower-case letters, digits, dots, hyphens and underscores")
    for name in sorted({name for name in names if names.count(name) > 1}):
        reader.findings.append(
            f"name: {name!r} is used {names.count(name)} times, expected a different name for each agent"
        )
    site = config.joining.site is not None
    if not config.resources and not (site and config.users):
        reader.findings.append("resources: none given, expected at least one [[resources]]")
    if not config.users and not site:
        reader.findings.append("users: none given, expected at least one [[users]]")


def _read_timing(reader: Reader, table: Mapping[str, Any]) -> Timing:
    known = {f"{entry.name}_s": entry.name for entry in fields(Timing)}
    reader.unknown("timing.", table, set(known))
    timing = replace(Timing(), **_read_durations(reader, "timing.", table, known))
    if timing.agreement_validity > ORDER_VALIDITY_MAX:
        given, most = timing.agreement_validity / SECOND, ORDER_VALIDITY_MAX / SECOND
        reader.wrong("timing.agreement_validity_s", given, f"{most:g} or less: banks refuse longer orders")
    least = least_retention(timing)
    if timing.retention < least:
        given = timing.retention / SECOND
        reader.wrong(
            "timing.retention_s",
            given,
            f"{least / SECOND:g} or more, for peers may still send messages about finished business",
        )
    return timing


def _read_quotas(reader: Reader, table: Mapping[str, Any]) -> QuotaConfig:
    known = [entry.name for entry in fields(QuotaConfig)]
    reader.unknown("quotas.", table, {*known, *(entry.name for entry in fields(Quotas))})
    standard = QuotaConfig()
    return QuotaConfig(**{key: reader.whole("quotas.", table, key, getattr(standard, key)) for key in known})


def _read_logs(reader: Reader, table: Mapping[str, Any]) -> LogConfig:
    standard = LogConfig()
    reader.unknown("logs.", table, {entry.name for entry in fields(LogConfig)})
    form = reader.text("logs.", table, "format", standard.format.value)
    if form not in [each.value for each in LogFormat]:
        reader.wrong("logs.format", form, " or ".join(f'"{each.value}"' for each in LogFormat))
        form = standard.format.value
    sizes = {key: reader.whole("logs.", table, key, getattr(standard, key)) for key in ("rotate_mb", "keep")}
    return LogConfig(LogFormat(form), **sizes)


def _read_holds(reader: Reader, table: Mapping[str, Any]) -> Quotas:
    default = Quotas()
    share = table.get("cores_share_max", default.cores_share_max)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        reader.wrong("quotas.cores_share_max", share, "a part from 0 to 1")
        share = default.cores_share_max
    return Quotas(reader.whole("quotas.", table, "holds_max", default.holds_max), float(share))


def _read_guests(reader: Reader, table: Mapping[str, Any]) -> GuestLimits:
    durations = {f"{name}_s": name for name in ("quote", "price", "change", "snapshot", "open")}
    reader.unknown("guests.", table, {*durations, "waiting_max", "memory_mb", "environment"})
    environment = table.get("environment", [])
    if not isinstance(environment, list) or not all(isinstance(name, str) for name in environment):
        reader.wrong("guests.environment", environment, 'a list of names such as ["SGE_ROOT"]')
        environment = []
    standard = GuestLimits()
    return replace(
        standard,
        **_read_durations(reader, "guests.", table, durations),
        waiting_max=reader.whole("guests.", table, "waiting_max", standard.waiting_max),
        memory_mb=reader.whole("guests.", table, "memory_mb", standard.memory_mb, least=MEMORY_MB_MIN),
        environment=tuple(environment),
    )


def _read_durations(
    reader: Reader, where: str, table: Mapping[str, Any], known: Mapping[str, str]
) -> dict[str, Duration]:
    """Return the keys of a table that are numbers of seconds, by the names of their fields."""
    found = {}
    for key, value in table.items():
        if key not in known:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            reader.wrong(f"{where}{key}", value, "a number of seconds above 0")
        else:
            found[known[key]] = round(value * SECOND)
    return found


def _read_user(reader: Reader, index: int, table: Mapping[str, Any]) -> UserConfig:
    where = f"users[{index}]."
    reader.unknown(where, table, {"name", "deposit", "overdraft"})
    return UserConfig(
        name=reader.text(where, table, "name"),
        deposit=reader.money(where, table, "deposit", 0),
        overdraft=reader.money(where, table, "overdraft", 0),
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
    "isolation",
    "executor",
    "accounts",
}


def _read_resource(
    reader: Reader,
    index: int,
    table: Mapping[str, Any],
    machines: Mapping[str, Any],
    launched: Callable[[str, Mapping[str, Any], str], tuple[LaunchTerms | None, Acting | None]],
) -> ResourceConfig:
    where = f"resources[{index}]."
    reader.unknown(where, table, _RESOURCE_KEYS)
    machine_name = reader.text(where, table, "machine")
    machine = machines.get(machine_name, {})
    if machine_name not in machines or not isinstance(machine, Mapping):
        reader.findings.append(
            f"{where}machine: no [machines.{machine_name}]{nearest_name(machine_name, list(machines))}"
        )
        machine = {"cores": 1}
    start = reader.whole(where, table, "start_price", None)
    minimum = reader.whole(where, table, "minimum_price", None)
    if minimum > start:
        reader.wrong(f"{where}minimum_price", minimum, f"at most the start price {start}")
    plugin = reader.text(where, table, "plugin", str(machine.get("plugin", "fake_qstat")))
    pricing = reader.text(where, table, "pricing", "ramp")
    for group, name, key in ((PLUGIN_GROUP, plugin, "plugin"), (PRICING_GROUP, pricing, "pricing")):
        known = sorted({entry.name for entry in entry_points(group)})
        if name not in known:
            reader.findings.append(f"{where}{key}: unknown {key} {name!r}{nearest_name(name, known)}")
    terms, acting = launched(where, table, plugin)
    return ResourceConfig(
        name=reader.text(where, table, "name"),
        plugin=plugin,
        options={**reader.table(machine, "options"), **reader.table(table, "options")},
        terms=_read_terms(reader, f"machines.{machine_name}.", machine),
        prices=PriceRange(start, minimum, reader.whole(where, table, "rounds_expected", 4)),
        pricing=pricing,
        isolation=_read_isolation(reader, where, table),
        launching=terms,
        acting=acting,
    )


def _read_isolation(reader: Reader, where: str, table: Mapping[str, Any]) -> Isolation:
    name = table.get("isolation", Isolation.AUTO.value)
    if name in [each.value for each in Isolation]:
        return Isolation(name)
    reader.wrong(f"{where}isolation", name, ", ".join(f'"{each.value}"' for each in Isolation))
    return Isolation.AUTO


def _read_terms(reader: Reader, where: str, table: Mapping[str, Any]) -> StaticTerms:
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
