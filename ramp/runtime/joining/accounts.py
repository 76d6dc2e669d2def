"""XMPP accounts of a joining party: their names, servers and passwords."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.errors import ConfigurationError
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.joining.account_tokens import AccountInvitation
from ramp.runtime.joining.invitations import Invitation
from ramp.runtime.state_folder import StateFolder


@dataclass(frozen=True, slots=True)
class AccountPlace:
    """An account and its server.

    Attributes:
        name: local name.
        domain: domain of the server.
        servers: (host, port) of the server's addresses.
        server_ca: PEM of the authority of its certificate; empty to trust those of the system.
    """

    name: str
    domain: str
    servers: tuple[tuple[str, int], ...]
    server_ca: str


def market_account(invitation: Invitation) -> AccountPlace:
    """Return the account at the market's server for the enrolment; a party without a server of its own keeps it."""
    places = [each.rpartition(":") for each in invitation.servers]
    servers = tuple((host.removeprefix("[").removesuffix("]"), int(port)) for host, _, port in places)
    return AccountPlace(invitation.account, invitation.market, servers, invitation.server_ca)


def invited_account(given: AccountInvitation, invitation: Invitation, config: SwarmConfig | None) -> AccountPlace:
    """Return the account of a server owner's invitation: at the market's server, or at an external one of the site.

    Args:
        given: the invitation of the server's owner.
        invitation: the market's invitation of the party.
        config: configuration of the site, if it has one.

    Raises:
        ConfigurationError: the party needs no account with this name or at this server.
    """
    if given.domain == invitation.market:
        place = market_account(invitation)
    elif given.domain == invitation.domain and config is not None and config.server.kind == "external":
        ca_file = config.server.ca_file
        pem = "" if ca_file is None else ca_file.read_text("ascii")
        place = AccountPlace(invitation.local_name, invitation.domain, config.server.addresses, pem)
    else:
        right = f"{invitation.market}, or the domain of the site's own external server"
        raise ConfigurationError(f"wrong domain of the account invitation: got {given.domain}, expected {right}")
    if given.name not in ("", place.name):
        raise ConfigurationError(
            f"wrong account: got {given.name}@{given.domain}, expected {place.name}@{place.domain}"
        )
    return place


def own_password(state: StateFolder, place: AccountPlace) -> str:
    """Return the password of an account made here, drawn and stored at the first call."""
    return state.passwords([place.name])[place.name]
