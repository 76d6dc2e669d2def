"""Configuration of servers, banks and other sites: `[server]`, `[bank]`, `[site]`, `[federation]`, `[enrolment]`."""

from __future__ import annotations

import ipaddress
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND, Duration
from ramp.options import Bounds, Wanted, Written, written_seconds

CLIENT_PORT: Final = 5222
SERVER_PORT: Final = 5269
"""Ports of XMPP's clients and servers (RFC 6120, section 14.7)."""


def read_address(text: object) -> tuple[str, int]:
    """Read host and port such as `xmpp.example.org:5222` or `[2001:db8::7]:5269`; `ValueError` for any other text."""
    host, _, port = str(text).rpartition(":")
    if host and port.isascii() and port.isdecimal() and 0 < int(port) < 65_536:
        return host.removeprefix("[").removesuffix("]"), int(port)
    raise ValueError("no address and port")


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _is_peer(text: str) -> bool:
    try:
        return _is_address(read_address(text)[0])
    except ValueError:
        return False


def _is_name(text: str) -> bool:
    # NFKC and case folding keep a name with only one spelling; the check of the XMPP server is stricter
    plain = unicodedata.normalize("NFKC", text).casefold()
    return text == plain and text.replace("-", "").replace("_", "").replace(".", "").isalnum()


Name = Annotated[str, Wanted("lower-case letters, digits, dots, hyphens and underscores", _is_name)]
"""Local name of an agent."""

Text = Annotated[str, Wanted("a text that is not empty", bool)]
Whole = Annotated[int, Bounds(1)]
Port = Annotated[int, Bounds(1, 65_535)]
_ListenAddress = Annotated[str, Wanted("an address such as 192.0.2.7", _is_address)]
_PeerAddress = Annotated[str, Wanted('an address and a port such as "192.0.2.7:5269"', _is_peer)]


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

    market: Text
    enrolment: Text = "enrolment"
    bank: Text = "bank"
    directory: Text = "directory"
    directories: Whole = 1
    keeper: Text = "keeper"
    revocations_s: Whole = 60


@dataclass(frozen=True, slots=True)
class FederationConfig:
    """How the Prosody that is started with the market speaks with the servers of other sites.

    Attributes:
        listen: address that it listens on, for clients and servers.
        client_port: TCP port for clients.
        server_port: TCP port for other servers.
        peers: address and port of other sites' servers by their domains; the others are looked up in the DNS (SRV).
    """

    listen: _ListenAddress = "127.0.0.1"
    client_port: Port = CLIENT_PORT
    server_port: Port = SERVER_PORT
    peers: Mapping[str, _PeerAddress] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnrolmentConfig:
    """The enrolment office: answers requests for certificates of those who were invited, and tells what is revoked.

    Attributes:
        name: local name of its agent.
        attempts_per_minute: requests for certificates that it looks at in a minute, of all senders together.
        attempts_per_sender_per_minute: the same of one sender.
        revocations_days: how long a revocation list holds, in days; a new one is signed when half of that is over.
    """

    name: Name = "enrolment"
    attempts_per_minute: Whole = 120
    attempts_per_sender_per_minute: Whole = 10
    revocations_days: Whole = 7


# XMPP servers, and the Banking Agents

EMBEDDED: Final = "embedded"
PROSODY: Final = "prosody"
EXTERNAL: Final = "external"

DIRECTORIES_MAX: Final = 9
"""More would not help, because every resource sends each of them a heartbeat every few seconds."""

LEASE_MIN_S: Final = 2
"""Minimum lease; a shorter one would pass to the other bank whenever a busy computer delays a process."""


def _read_path(text: Any) -> Path:
    if not isinstance(text, str) or not text:
        raise ValueError("no path")
    return Path(text)


Address = Annotated[tuple[str, int], Written('an address such as "xmpp.example.org:5222"', read_address)]
FilePath = Annotated[Path, Written("a path, from the file's folder", _read_path)]
ServerKind = Annotated[
    str, Wanted(f'"{EMBEDDED}", "{PROSODY}" or "{EXTERNAL}"', (EMBEDDED, PROSODY, EXTERNAL).__contains__)
]


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The XMPP server.

    Attributes:
        kind: `embedded`, `prosody` (both started with the swarm) or `external`; with addresses `external`.
        addresses: host and port of an external one; several are tried in turn.
        spread: whether agents begin with different ones of several; only where these are one cluster.
        ca_file: authorities that sign its certificate; without it the system's.
        register: whether agents make their accounts themselves, on an external server that lets them (XEP-0077).
        federation: whether agents of other domains take part.
        passwords: JSON file `{"name": "password"}` for accounts that exist already.
        accounts: local names of further accounts that a server started with the swarm has, for agents that are not.
    """

    kind: ServerKind = EMBEDDED
    addresses: tuple[Address, ...] = ()
    spread: bool = False
    ca_file: FilePath | None = None
    register: bool = False
    federation: bool = False
    passwords: FilePath | None = None
    accounts: tuple[Name, ...] = ()

    def __post_init__(self) -> None:
        if self.kind == EXTERNAL and not self.addresses:
            raise ConfigurationError('an external server needs addresses = ["host:port"]', key="addresses")
        if self.spread and len(self.addresses) < 2:
            right = "false, or addresses of several servers of one cluster"
            raise ConfigurationError(f"got true, expected {right}", key="spread")
        if self.register and self.kind != EXTERNAL:
            why = f"the accounts of the {self.kind} server are made by the supervisor"
            raise ConfigurationError(f"got true, expected false: {why}", key="register")
        if self.accounts and self.kind == EXTERNAL:
            why = "an external server's accounts are made by its owner"
            raise ConfigurationError(f"expected no value: {why}", key="accounts")


@dataclass(frozen=True, slots=True)
class BankConfig:
    """The Banking Agents.

    Attributes:
        standby: whether a second bank takes over when the first is silent; needs PostgreSQL.
        lease: time after the last renewal in the database when a bank counts as lost.
    """

    standby: bool = False
    lease: Annotated[Duration, written_seconds(LEASE_MIN_S)] = 10 * SECOND
