"""Preparations of a supervisor: groups of agents, server, passwords, and the lock of the state folder."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, Duration, Instant
from ramp.model.seal import Role
from ramp.rfql.signing import certificates
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.configuration.sites import EMBEDDED, PROSODY
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.joining.membership import kept_key, not_enrolled, server_certificate_file, server_key_file
from ramp.runtime.keys import issuing
from ramp.runtime.keys.store import CERTIFICATE_LIFETIME, KeyStore
from ramp.runtime.state_folder import StateFolder, write_private
from ramp.servers.embedded import EmbeddedServer
from ramp.servers.process import ServerProcess, check_accounts
from ramp.servers.prosody import FederatedProsody, ProsodyServer

RENEW_BEFORE: Final[Duration] = 30 * DAY
"""A server's certificate with less validity left is replaced when the market starts."""


def prepare_keys(config: SwarmConfig, state: StateFolder, now: Instant) -> None:
    """Create the missing keys of a market, or check that a site has all its keys.

    Raises:
        ConfigurationError: a key or certificate is unusable, or a party of a site is not enrolled.
    """
    keys = KeyStore(state.keys)
    if config.site is not None:
        _check_enrolled(config, state, keys)
        return
    keys.create_ca(now)
    for name, role in config.roles().items():
        keys.issue(config.address(name), role, now)
    if config.federation is not None:
        _certify_server(config.domain, state, keys, now)


def _check_enrolled(config: SwarmConfig, state: StateFolder, keys: KeyStore) -> None:
    missing = not_enrolled(config, state)
    if missing:
        raise ConfigurationError(
            f"not enrolled: {', '.join(missing)}; run `ramp join INVITATION` for each",
            path=config.path,
        )
    for name in config.roles():
        keys.identity(config.address(name))
    if config.federation is None:
        return
    for path in (server_key_file(state, config.domain), server_certificate_file(state, config.domain)):
        if not path.exists():
            raise ConfigurationError(
                f"the server of {config.domain} has no certificate; join with an invitation that was made with "
                "`ramp invite --server`",
                path=path,
            )


def _certify_server(domain: str, state: StateFolder, keys: KeyStore, now: Instant) -> None:
    key = kept_key(server_key_file(state, domain))
    path = server_certificate_file(state, domain)
    if path.exists():
        found = x509.load_pem_x509_certificate(path.read_bytes())
        if (
            found.public_key() == key.public_key()
            and certificates.valid_until(found) - now > RENEW_BEFORE
            and found.issuer in {ca.subject for ca in keys.ca_certificates()}
        ):
            return
    made = issuing.certify_server(domain, key.public_key(), keys.issuer(), now, CERTIFICATE_LIFETIME)
    write_whole(path, made.public_bytes(serialization.Encoding.PEM), private=False)


USERS_PER_PROCESS: Final = 50
"""Maximum number of User Agents in one process, which can use only one processor."""

USERS_BESIDE_BANK: Final = 4
"""Maximum number of User Agents in the process of the bank; a process of their own would take about 50 MB."""


def grouped(config: SwarmConfig) -> dict[str, list[str]]:
    """Return the names of the agents of each process.

    Bank, directory, keeper and a few users share a process; more users have processes of their own, and so do resources
    and redundant directories and banks. With one resource per process, no agents share one.
    """
    users = [user.name for user in config.users]
    names = [resource.name for resource in config.resources]
    size = config.resources_per_process
    offices = [name for name, role in config.own_agents.items() if role is Role.ENROLMENT]
    if size == 1:
        return {name: [name] for name in config.agents()}
    groups = {
        "users" if first == 0 else f"users-{first // USERS_PER_PROCESS + 1}": users[first : first + USERS_PER_PROCESS]
        for first in range(0, len(users), USERS_PER_PROCESS)
    }
    if config.own_agents:
        market = [config.directory, config.bank, config.keeper]
        if len(users) <= USERS_BESIDE_BANK and len(config.bank_names) == 1:  # else users survive their bank
            market += groups.pop("users", [])
        groups = {"market": market, **groups}
        groups |= {name: [name] for name in (*config.directory_names[1:], *config.bank_names[1:], *offices)}
    for number, first in enumerate(range(0, len(names), size), 1):
        groups[f"resources-{number}"] = names[first : first + size]
    return groups


def new_server(config: SwarmConfig, state: StateFolder) -> ServerProcess | None:
    """Return the market's XMPP server, not started; None for an external one."""
    if config.server.kind == EMBEDDED:
        return EmbeddedServer(state.server, domain=config.domain)
    if config.server.kind == PROSODY:
        federation = config.federation
        if federation is None:
            return ProsodyServer(state.server, domain=config.domain)
        return FederatedProsody(state.server, config.domain, federation, state.keys / "ca.pem")
    return None


def accounts_of(config: SwarmConfig, state: StateFolder) -> dict[str, str]:
    """Return the passwords of all accounts of a market's own agents and programs, by local name.

    Raises:
        ConfigurationError: the file of existing passwords is missing or invalid, or a name cannot be an account's.
    """
    names = [*config.roles(), *config.server.accounts]
    passwords = state.passwords(names)
    if config.server.passwords is not None:
        passwords |= _read_passwords(config.server.passwords)
        write_private(state.path / "passwords.json", json.dumps(passwords, indent=1, sort_keys=True))
    accounts = {name: passwords[name] for name in names}
    check_accounts(accounts, config.domain, config.path)
    return accounts


def _read_passwords(path: Path) -> dict[str, str]:
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
