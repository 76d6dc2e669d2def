"""The tables `[server]` and `[bank]`: XMPP servers, and how many directories and Banking Agents a market has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ramp.model.instant import SECOND, Duration
from ramp.runtime.configuration.reader import Reader

EMBEDDED: Final = "embedded"
PROSODY: Final = "prosody"
EXTERNAL: Final = "external"

DIRECTORIES_MAX: Final = 9
"""More would not help, because every resource sends each of them a heartbeat every few seconds."""

LEASE_MIN_S: Final = 2
"""Minimum lease; a shorter one would pass to the other bank whenever a busy computer delays a process."""

REDUNDANCY_KEYS: Final = frozenset({"directories"})
"""Keys of the table `[market]` that `read_redundancy` reads."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The XMPP server.

    Attributes:
        kind: `embedded`, `prosody` (both started with the swarm) or `external`.
        addresses: host and port of an external one; several are tried in turn.
        spread: whether agents begin with different ones of several; only where these are one cluster.
        ca_file: authorities that sign its certificate; without it the system's.
        register: whether agents make their accounts themselves, on an external server that lets them (XEP-0077).
        federation: whether agents of other domains take part.
        passwords: JSON file `{"name": "password"}` for accounts that exist already.
        accounts: local names of further accounts that a server started with the swarm has, for agents that are not.
    """

    kind: str = EMBEDDED
    addresses: tuple[tuple[str, int], ...] = ()
    spread: bool = False
    ca_file: Path | None = None
    register: bool = False
    federation: bool = False
    passwords: Path | None = None
    accounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BankConfig:
    """The Banking Agents.

    Attributes:
        standby: whether a second bank takes over when the first is silent; needs PostgreSQL.
        lease: time after the last renewal in the database when a bank counts as lost.
    """

    standby: bool = False
    lease: Duration = 10 * SECOND


@dataclass(frozen=True, slots=True)
class RedundancyConfig:
    """Numbers of agents with the same role.

    Attributes:
        directories: number of directory agents; resources register with all, users ask any.
        banks: the Banking Agents.
    """

    directories: int = 1
    banks: BankConfig = BankConfig()


def read_redundancy(reader: Reader, data: Mapping[str, Any], market: Mapping[str, Any]) -> RedundancyConfig:
    """Read the numbers of directories and Banking Agents from all tables and `[market]`."""
    directories = reader.whole("market.", market, "directories", 1)
    if directories > DIRECTORIES_MAX:
        reader.wrong("market.directories", directories, f"a whole number from 1 to {DIRECTORIES_MAX}")
    return RedundancyConfig(directories, _read_bank(reader, reader.table(data, "bank"), market))


def _read_bank(reader: Reader, table: Mapping[str, Any], market: Mapping[str, Any]) -> BankConfig:
    reader.unknown("bank.", table, {"standby", "lease_s"})
    standby = reader.truth("bank.", table, "standby", False)
    if standby and not str(market.get("ledger", "")).startswith("postgres"):
        shared = 'false, or market.ledger = "postgresql://user@host/name", which two banks can share'
        reader.wrong("bank.standby", standby, shared)
    lease = reader.whole("bank.", table, "lease_s", BankConfig().lease // SECOND, least=LEASE_MIN_S)
    return BankConfig(standby, lease * SECOND)


def read_server(reader: Reader, table: Mapping[str, Any]) -> ServerConfig:
    """Read the table `[server]`."""
    known = {"kind", "addresses", "spread", "ca_file", "register", "federation", "passwords", "accounts"}
    reader.unknown("server.", table, known)
    addresses = _read_addresses(reader, table)
    kind = reader.text("server.", table, "kind", EXTERNAL if addresses else EMBEDDED)
    if kind not in (EMBEDDED, PROSODY, EXTERNAL):
        reader.wrong("server.kind", kind, f'"{EMBEDDED}", "{PROSODY}" or "{EXTERNAL}"')
    if kind == EXTERNAL and not addresses:
        reader.findings.append('server.addresses: an external server needs addresses = ["host:port"]')
    spread = reader.truth("server.", table, "spread", False)
    if spread and len(addresses) < 2:
        reader.wrong("server.spread", spread, "false, or addresses of several servers of one cluster")
    register = reader.truth("server.", table, "register", False)
    if register and kind != EXTERNAL:
        reader.wrong(
            "server.register", register, f"false: the accounts of the {kind} server are made by the supervisor"
        )
    accounts = table.get("accounts", [])
    if not isinstance(accounts, list) or not all(isinstance(name, str) for name in accounts):
        reader.wrong("server.accounts", accounts, 'a list of names such as ["visitor"]')
        accounts = []
    elif accounts and kind == EXTERNAL:
        reader.wrong("server.accounts", accounts, "no value: an external server's accounts are made by its owner")
    return ServerConfig(
        kind=kind,
        addresses=addresses,
        spread=spread,
        ca_file=_read_path(reader, table, "ca_file"),
        register=register,
        federation=reader.truth("server.", table, "federation", False),
        passwords=_read_path(reader, table, "passwords"),
        accounts=tuple(accounts),
    )


def _read_addresses(reader: Reader, table: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    addresses: list[tuple[str, int]] = []
    listed = table.get("addresses", [])
    for address in listed if isinstance(listed, list) else [listed]:
        host, separator, port = str(address).rpartition(":")
        if separator and host and port.isdecimal() and 0 < int(port) < 65_536:
            addresses.append((host, int(port)))
        else:
            reader.wrong("server.addresses", address, 'a list such as ["xmpp.example.org:5222"]')
    return tuple(addresses)


def _read_path(reader: Reader, table: Mapping[str, Any], key: str) -> Path | None:
    if key not in table:
        return None
    return (reader.path.parent / reader.text("server.", table, key)).resolve()
