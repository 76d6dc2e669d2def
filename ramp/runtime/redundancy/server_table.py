"""Reads the table `[server]`: which XMPP server, or which servers of one cluster or federation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ramp.runtime.config import EMBEDDED, PROSODY, ServerConfig

if TYPE_CHECKING:
    from ramp.runtime.configuration.reader import Reader

EXTERNAL: Final = "external"


def read_server(reader: Reader, table: Mapping[str, Any]) -> ServerConfig:
    """Read the table.

    Args:
        reader: checks every value.
        table: as TOML has it.
    """
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
