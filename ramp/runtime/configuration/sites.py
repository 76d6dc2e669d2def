"""The configuration of other sites: tables `[site]`, `[federation]` and `[enrolment]`."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ramp.runtime.configuration.reader import Reader

CLIENT_PORT: Final = 5222
SERVER_PORT: Final = 5269
"""Ports of XMPP's clients and servers (RFC 6120, section 14.7)."""


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """The market that this site has joined; the site has no bank, directory or keeper of its own.

    Attributes:
        market: domain of the market.
        enrolment: local name of its enrolment office, which hands out revocation lists.
        bank: local name of its Banking Agent.
        directory: local name of its directory.
        directories: how many directories it has.
        keeper: local name of its keeper.
        revocations_s: how often each agent asks for the revocation list, in seconds.
    """

    market: str
    enrolment: str = "enrolment"
    bank: str = "bank"
    directory: str = "directory"
    directories: int = 1
    keeper: str = "keeper"
    revocations_s: int = 60


@dataclass(frozen=True, slots=True)
class FederationConfig:
    """How the Prosody that is started with the market speaks with the servers of other sites.

    Attributes:
        listen: address that it listens on, for clients and servers.
        client_port: TCP port for clients.
        server_port: TCP port for other servers.
        peers: address and port of other sites' servers by their domains; the others are looked up in the DNS (SRV).
    """

    listen: str = "127.0.0.1"
    client_port: int = CLIENT_PORT
    server_port: int = SERVER_PORT
    peers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnrolmentConfig:
    """The enrolment office: answers requests for certificates of those who were invited, and tells what is revoked.

    Attributes:
        name: local name of its agent.
        attempts_per_minute: requests for certificates that it looks at in a minute, of all senders together.
        attempts_per_sender_per_minute: the same of one sender.
        revocations_days: how long a revocation list holds, in days; a new one is signed when half of that is over.
    """

    name: str = "enrolment"
    attempts_per_minute: int = 120
    attempts_per_sender_per_minute: int = 10
    revocations_days: int = 7


@dataclass(frozen=True, slots=True)
class JoiningConfig:
    """Settings for other sites; the default is a market with one site.

    Attributes:
        site: the market that this site has joined.
        federation: connection of the own server to others.
        enrolment: the market's enrolment office.
    """

    site: SiteConfig | None = None
    federation: FederationConfig | None = None
    enrolment: EnrolmentConfig | None = None

    @property
    def crosses_sites(self) -> bool:
        return self != JoiningConfig()


JOINING_TABLES: Final = frozenset({"site", "federation", "enrolment"})


def read_joining(reader: Reader, data: Mapping[str, Any], kind: str) -> JoiningConfig:
    """Read the tables about other sites; `kind` is the kind of the XMPP server."""
    site, federation = reader.table(data, "site"), reader.table(data, "federation")
    read_site, read_federation = _read_site(reader, site), _read_federation(reader, federation)
    read_enrolment = _read_enrolment(reader, reader.table(data, "enrolment"))
    found = JoiningConfig(
        read_site if "site" in data else None,
        read_federation if "federation" in data else None,
        read_enrolment if "enrolment" in data else None,
    )
    if found.site is not None and not found.site.market:
        reader.wrong(
            "site.market", found.site.market, 'the domain of the market that was joined, such as "west.example"'
        )
    if found.site is not None and found.enrolment is not None:
        reader.findings.append("enrolment: a site that joined a market has no enrolment office; remove the table")
    if found.federation is not None and kind != "prosody":
        reader.wrong("server.kind", kind, '"prosody" where there is a table [federation]')
    if found.site is not None and kind == "embedded":
        reader.wrong("server.kind", kind, '"prosody" or "external": the embedded server reaches no other site')
    return found


def market_agents(reader: Reader, market: Mapping[str, Any], joining: JoiningConfig) -> dict[str, str]:
    """Return local names of the market's own agents: those of the joined market, or of this one."""
    own = {key: reader.text("market.", market, key, key) for key in ("bank", "directory", "keeper")}
    site = joining.site
    if site is None:
        return own
    for key, name in own.items():
        if key in market:
            reader.wrong(f"market.{key}", name, f"no value: a site has none of its own; site.{key} is the market's")
    return {"bank": site.bank, "directory": site.directory, "keeper": site.keeper}


def _read_site(reader: Reader, table: Mapping[str, Any]) -> SiteConfig:
    reader.unknown("site.", table, {each.name for each in fields(SiteConfig)})
    names = {key: reader.text("site.", table, key, key) for key in ("enrolment", "bank", "directory", "keeper")}
    return SiteConfig(
        reader.text("site.", table, "market", ""),
        **names,
        directories=reader.whole("site.", table, "directories", 1),
        revocations_s=reader.whole("site.", table, "revocations_s", SiteConfig("").revocations_s),
    )


def _read_federation(reader: Reader, table: Mapping[str, Any]) -> FederationConfig:
    reader.unknown("federation.", table, {each.name for each in fields(FederationConfig)})
    standard = FederationConfig()
    listen = reader.text("federation.", table, "listen", standard.listen)
    try:
        ipaddress.ip_address(listen)
    except ValueError:
        reader.wrong("federation.listen", listen, "an address such as 192.0.2.7")
    ports = {key: reader.whole("federation.", table, key, getattr(standard, key)) for key in _PORTS}
    for key, port in ports.items():
        if port > 65_535:
            reader.wrong(f"federation.{key}", port, "a port from 1 to 65535")
    peers = {}
    for domain, address in reader.table(table, "peers").items():
        if address_and_port(address) is None:
            reader.wrong(f"federation.peers.{domain}", address, 'an address and a port such as "192.0.2.7:5269"')
        else:
            peers[domain] = address
    return FederationConfig(listen, ports["client_port"], ports["server_port"], peers)


_PORTS: Final = ("client_port", "server_port")


def _read_enrolment(reader: Reader, table: Mapping[str, Any]) -> EnrolmentConfig:
    reader.unknown("enrolment.", table, {each.name for each in fields(EnrolmentConfig)})
    standard = EnrolmentConfig()
    numbers = ("attempts_per_minute", "attempts_per_sender_per_minute", "revocations_days")
    return EnrolmentConfig(
        reader.text("enrolment.", table, "name", standard.name),
        **{key: reader.whole("enrolment.", table, key, getattr(standard, key)) for key in numbers},
    )


def address_and_port(text: object) -> tuple[str, int] | None:
    """Return address and port of a text such as `192.0.2.7:5269` or `[2001:db8::7]:5269`; None for any other text."""
    host, separator, port = str(text).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return None
    if not separator or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65_536:
        return None
    return host, int(port)
