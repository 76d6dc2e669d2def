"""Preparations of a supervisor: groups of agents, server, passwords, and the lock of the state folder."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError
from ramp.model.seal import Role
from ramp.runtime.configuration.sites import EMBEDDED, PROSODY
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.state_folder import StateFolder
from ramp.servers.embedded import EmbeddedServer
from ramp.servers.process import ServerProcess
from ramp.servers.prosody import FederatedProsody, ProsodyServer

USERS_PER_PROCESS: Final = 50
"""Maximum number of User Agents in one process, which can use only one processor."""


def grouped(config: SwarmConfig) -> dict[str, list[str]]:
    """Return the names of the agents of each process.

    Bank, directory and keeper share a process, and so do several users or several resources. With one resource per
    process, no agents share one. Redundant directories and banks always have their own processes.
    """
    users = [user.name for user in config.users]
    names = [resource.name for resource in config.resources]
    size = config.resources_per_process
    offices = [name for name, role in config.own_agents.items() if role is Role.ENROLMENT]
    if size == 1:
        own = (*config.directory_names, *config.bank_names, config.keeper) if config.own_agents else ()
        own = (*own, *offices)
        return {name: [name] for name in (*own, *users, *names)}
    groups = {
        "users" if first == 0 else f"users-{first // USERS_PER_PROCESS + 1}": users[first : first + USERS_PER_PROCESS]
        for first in range(0, len(users), USERS_PER_PROCESS)
    }
    if config.own_agents:
        groups = {"market": [config.directory, config.bank, config.keeper], **groups}
        groups |= {name: [name] for name in (*config.directory_names[1:], *config.bank_names[1:], *offices)}
    for number, first in enumerate(range(0, len(names), size), 1):
        groups[f"resources-{number}"] = names[first : first + size]
    return groups


def new_server(config: SwarmConfig, state: StateFolder) -> ServerProcess | None:
    """Return the market's XMPP server, not started; None for an external one."""
    if config.server.kind == EMBEDDED:
        return EmbeddedServer(state.server, domain=config.domain)
    if config.server.kind == PROSODY:
        federation = config.joining.federation
        if federation is None:
            return ProsodyServer(state.server, domain=config.domain)
        return FederatedProsody(state.server, config.domain, federation, state.keys / "ca.pem")
    return None


def read_passwords(path: Path) -> dict[str, str]:
    """Read the passwords of existing accounts; `ConfigurationError` if the file is missing or invalid."""
    try:
        passwords = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read the file: {error}", path=path, key="server.passwords") from error
    if not isinstance(passwords, dict) or not all(isinstance(value, str) for value in passwords.values()):
        raise ConfigurationError('invalid passwords: expected a JSON object {"agent": "password"}', path=path)
    return passwords


@contextlib.contextmanager
def only_one(state: StateFolder) -> Iterator[None]:
    """Hold the state folder's lock; `ConfigurationError` if another supervisor holds it."""
    with (state.run / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigurationError(
                "a market is already up with this state folder; `ramp down` stops it", path=state.path
            ) from None
        yield
