"""Invitations of the running market's keeper, from the configuration that is in force."""

from __future__ import annotations

from pathlib import Path

from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, Instant, iso
from ramp.model.seal import Role
from ramp.runtime.configuration.sites import EnrolmentConfig
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.configuration_changes.audit_log import add_line, own_name
from ramp.runtime.configuration_changes.overlay import running_config
from ramp.runtime.joining.authority import Authority
from ramp.runtime.joining.invitations import Invitation
from ramp.runtime.joining.register import Register
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder

DAYS_DEFAULT = 7


def invite_party(
    state: StateFolder,
    config_file: Path,
    server_address: str,
    now: Instant,
    name: str,
    role: Role,
    *,
    days: int = DAYS_DEFAULT,
    deposit: int = 0,
    overdraft: int = 0,
    server: bool | None = None,
) -> Invitation:
    """Invite a party into the market, and add a line to the audit log.

    Args:
        state: of the market.
        config_file: with which it was started.
        server_address: of its XMPP server, `HOST:PORT`.
        now: the current time.
        name: full name, `agent@site.example`, in canonical form.
        role: user or resource.
        days: validity.
        deposit: opening credit in minor units; of users only.
        overdraft: how far below 0 the balance may go, in minor units; of users only.
        server: whether the site's XMPP server is certified too; by default for the first party of a domain.

    Raises:
        ConfigurationError: if the name is taken, or the market cannot invite that party.
    """
    config = running_config(config_file, state)
    register = Register(state.invitations)
    local, _, domain = name.rpartition("@")
    _check(config, local, domain)
    at_home = domain == config.domain
    if server and at_home:
        raise ConfigurationError(f"{config.domain} uses the market's own server; leave out --server")
    external = config.server.kind == "external"
    addresses = tuple(f"{host}:{port}" for host, port in config.server.addresses) if external else (server_address,)
    drafted = Invitation(
        invitation_id="",
        name=name,
        role=role,
        ends_at=now + days * DAY,
        market=config.domain,
        servers=addresses,
        server_ca=_server_ca(config, state),
        ca="",
        enrolment=(config.joining.enrolment or EnrolmentConfig()).name,
        bank=config.bank,
        directory=config.directory,
        directories=len(config.directory_names),
        keeper=config.keeper,
        account=local if at_home else "",
        certifies_server=not at_home and not _certified(register, domain, now) if server is None else server,
        signed_offers=config.signed_offers,
        secret="",
    )
    made = Authority(KeyStore(state.keys), register).invite(
        drafted,
        now,
        deposit=deposit,
        credit_limit=overdraft,
        account_token=not external,
    )
    add_line(state, now, own_name(), "invite", name, f"{name} is invited as {role} until {iso(made.ends_at)}")
    return made


def _check(config: SwarmConfig, local: str, domain: str) -> None:
    if config.joining.site is not None:
        market = config.joining.site.market
        raise ConfigurationError(f"this site has joined {market}; only that market's keeper can invite")
    if domain != config.domain and config.joining.federation is None and not config.server.federation:
        raise ConfigurationError(
            f"the market's server cannot reach a server of {domain}; add a table [federation] (for an external "
            "server: federation = true)",
            path=config.path,
        )
    if domain == config.domain and (local in config.roles() or local in config.server.accounts):
        raise ConfigurationError(f"{local} already exists in this market; choose another name")


def _server_ca(config: SwarmConfig, state: StateFolder) -> str:
    """Return the PEM of the authority of the server's certificate; "" for the system's authorities."""
    path = config.server.ca_file
    if config.server.kind != "external":
        path = state.keys / "ca.pem" if config.joining.federation is not None else state.server / "tls" / "ca.pem"
    return "" if path is None else path.read_text("ascii")


def _certified(register: Register, domain: str, now: Instant) -> bool:
    return any(
        entry.invitation.domain == domain and entry.invitation.certifies_server
        for entry in register.entries().values()
        if entry.state(now) in ("open", "enrolled")
    )
