"""The tables `[server]` and `[bank]`: XMPP servers, and how many directories and Banking Agents a market has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND, Duration
from ramp.options import Wanted, Written, written_seconds
from ramp.runtime.configuration.sites import Name

EMBEDDED: Final = "embedded"
PROSODY: Final = "prosody"
EXTERNAL: Final = "external"

DIRECTORIES_MAX: Final = 9
"""More would not help, because every resource sends each of them a heartbeat every few seconds."""

LEASE_MIN_S: Final = 2
"""Minimum lease; a shorter one would pass to the other bank whenever a busy computer delays a process."""


def _read_address(text: Any) -> tuple[str, int]:
    host, separator, port = str(text).rpartition(":")
    if separator and host and port.isdecimal() and 0 < int(port) < 65_536:
        return host, int(port)
    raise ValueError("no address and port")


def _read_path(text: Any) -> Path:
    if not isinstance(text, str) or not text:
        raise ValueError("no path")
    return Path(text)


Address = Annotated[tuple[str, int], Written('an address such as "xmpp.example.org:5222"', _read_address)]
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
