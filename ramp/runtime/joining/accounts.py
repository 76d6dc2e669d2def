"""Which XMPP accounts a party that joins needs, where they are, and how it comes by them."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.errors import ConfigurationError
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.joining.account_tokens import AccountInvitation
from ramp.runtime.joining.invitations import Invitation
from ramp.runtime.state_folder import StateFolder


@dataclass(frozen=True, slots=True)
class AccountPlace:
    """An account, and how its server is reached.

    Attributes:
        name: local name.
        domain: of the server.
        servers: (host, port) of the server's addresses.
        server_ca: PEM of the authority of its certificate; empty where the system's are trusted.
    """

    name: str
    domain: str
    servers: tuple[tuple[str, int], ...]
    server_ca: str


def market_account(invitation: Invitation) -> AccountPlace:
    """The account at the market's server with which a party enrols; who has no server of his own goes on with it."""
    places = [each.rpartition(":") for each in invitation.servers]
    servers = tuple((host.removeprefix("[").removesuffix("]"), int(port)) for host, _, port in places)
    return AccountPlace(invitation.account, invitation.market, servers, invitation.server_ca)


def invited_account(given: AccountInvitation, invitation: Invitation, config: SwarmConfig | None) -> AccountPlace:
    """The account that the owner of a server invites to: at the market's server, or at an external one of the site.

    Args:
        given: the owner's word.
        invitation: of the party.
        config: the site's own, if it has one.

    Raises:
        ConfigurationError: if it is for no account that the party needs.
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
    """The password of an account that is made here; drawn at the first call, and on disk before it is told anybody."""
    return state.passwords([place.name])[place.name]
