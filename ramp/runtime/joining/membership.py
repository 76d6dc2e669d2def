"""A site's part of joining: it makes and keeps its keys and XMPP accounts, and stores the certificates issued to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ramp.errors import ConfigurationError, DocumentError
from ramp.model.contents import EnrolmentGranted, EnrolmentRequest
from ramp.model.instant import Instant, iso
from ramp.rfql.signing import certificates
from ramp.rfql.signing.certificates import PrivateKey
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.configuration.sites import read_address
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.joining.account_tokens import AccountInvitation
from ramp.runtime.joining.invitations import Invitation, read_invitation
from ramp.runtime.joining.requests import make_request
from ramp.runtime.keys.issuing import new_key, private_pem, read_key
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder

_NAMES: Final = ("market", "enrolment", "bank", "directory", "keeper")
"""Names that an invitation and a table `[site]` have in common."""


def request_of(state: StateFolder, invitation: Invitation, now: Instant) -> EnrolmentRequest:
    """Return the request for the certificates of an invitation, with keys created and kept at the first call.

    Raises:
        ConfigurationError: the invitation has ended, or the folder belongs to another market.
    """
    if now > invitation.ends_at and not _invitation_file(state, invitation.name).exists():
        raise ConfigurationError(f"the invitation ended at {iso(invitation.ends_at)}; ask the keeper for another one")
    _check_market(state, invitation)
    key = kept_key(_party_key(state, invitation.name))
    server_key = kept_key(server_key_file(state, invitation.domain)) if invitation.certifies_server else None
    return make_request(invitation, key, server_key)


def install(state: StateFolder, invitation: Invitation, issued: EnrolmentGranted, now: Instant) -> x509.Certificate:
    """Check the issued certificates of an invitation, and store them with their keys.

    Raises:
        ConfigurationError: they do not fit the request, or are of another authority than the invitation's.
    """
    _check_market(state, invitation)
    if issued.invitation_id != invitation.invitation_id:
        raise ConfigurationError(f"issued for {issued.invitation_id!r}, not for {invitation.invitation_id!r}")
    ca = invitation.ca_certificate
    certificate = _loaded(issued.certificate, "certificate")
    key = kept_key(_party_key(state, invitation.name))
    try:
        certificates.check_issuer(certificate, (ca,))
        certificates.check_validity(certificate, now)
        named, role = certificates.identity_of(certificate), certificates.role_of(certificate)
    except DocumentError as error:
        raise ConfigurationError(f"the issued certificate is not from the market's authority: {error}") from error
    if (named, role) != (invitation.name, invitation.role):
        raise ConfigurationError(f"issued for {named} as {role}; the invitation is for {invitation.name}")
    if key.public_key() != certificate.public_key():
        raise ConfigurationError("the issued certificate is for another key than this site's")
    server = _checked_server(state, invitation, issued) if invitation.certifies_server else None
    keys = KeyStore(state.keys)
    keys.keep_identity(invitation.name, key, certificate, ca)
    if issued.revocations:
        try:
            keys.keep_signed_list(issued.revocations)
        except DocumentError as error:
            raise ConfigurationError(f"invalid revocation list beside the certificate: {error}") from error
    if server is not None:
        pem = server.public_bytes(serialization.Encoding.PEM)
        write_whole(server_certificate_file(state, invitation.domain), pem, private=False)
    if invitation.server_ca:
        write_whole(_server_ca_file(state), invitation.server_ca.encode(), private=False)
    write_whole(_invitation_file(state, invitation.name), invitation.without_token().text().encode(), private=True)
    return certificate


def joined(state: StateFolder) -> dict[str, Invitation]:
    """Return the invitations of parties of this site by name; `ConfigurationError` if a file is damaged."""
    found = [read_invitation(path.read_text("utf-8"), str(path)) for path in sorted(state.joined.glob("*.json"))]
    return {each.name: each for each in found}


def check_configuration(config: SwarmConfig, invitation: Invitation) -> None:
    """Check that a site's configuration fits an invitation; `ConfigurationError` lists every wrong key."""
    site = config.site
    if site is None:
        lines = f'[site]\nmarket = "{invitation.market}"'
        raise ConfigurationError(f"not the configuration of a joined site; it needs\n{lines}", path=config.path)
    stated = {
        "market.domain": (config.domain, invitation.domain),
        "market.signed_offers": (config.signed_offers, invitation.signed_offers),
        **{f"site.{key}": (getattr(site, key), getattr(invitation, key)) for key in (*_NAMES, "directories")},
    }
    findings = [f"{key}: got {found!r}, expected {right!r}" for key, (found, right) in stated.items() if found != right]
    roles = {config.address(name): role for name, role in config.roles().items()}
    if roles.get(invitation.name) is not invitation.role:
        findings.append(f"{invitation.role}s: {invitation.local_name!r}, named in the invitation, is missing")
    if findings:
        raise ConfigurationError("\n  ".join(("does not fit the invitation", *findings)), path=config.path)


def not_enrolled(config: SwarmConfig, state: StateFolder) -> list[str]:
    """Return full names of a site's parties without a certificate."""
    known = joined(state)
    return [address for name in config.roles() if (address := config.address(name)) not in known]


def site_text(invitations: list[Invitation], state: StateFolder) -> str:
    """Return the configuration of a site with users only, whose accounts are at the market's server."""
    first = invitations[0]
    lines = [
        "# written by `ramp join`",
        "[market]",
        f'domain = "{first.market}"',
        f"signed_offers = {str(first.signed_offers).lower()}",
        "",
        "[site]",
        *(f'{key} = "{getattr(first, key)}"' for key in _NAMES),
        f"directories = {first.directories}",
        "",
        "[server]",
        f"addresses = {json.dumps(first.servers)}",
        *([f'ca_file = "{_server_ca_file(state)}"'] if first.server_ca else []),
        "federation = true",
    ]
    for each in invitations:
        lines += ["", "[[users]]", f'name = "{each.local_name}"']
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class AccountPlace:
    """An account and its server, whose authority is a PEM; empty to trust those of the system."""

    name: str
    domain: str
    servers: tuple[tuple[str, int], ...]
    server_ca: str


def market_account(invitation: Invitation) -> AccountPlace:
    """Return the account at the market's server for the enrolment; a party without a server of its own keeps it."""
    servers = tuple(map(read_address, invitation.servers))
    return AccountPlace(invitation.account, invitation.market, servers, invitation.server_ca)


def invited_account(given: AccountInvitation, invitation: Invitation, config: SwarmConfig | None) -> AccountPlace:
    """Return the account of a server owner's invitation: at the market's server, or at an external one of the site.

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


def server_key_file(state: StateFolder, domain: str) -> Path:
    """Return the path of the private key of the site's own XMPP server."""
    return state.server / "tls" / f"{domain}_key.pem"


def server_certificate_file(state: StateFolder, domain: str) -> Path:
    """Return the path of the certificate of the site's own XMPP server."""
    return state.server / "tls" / f"{domain}_cert.pem"


def _invitation_file(state: StateFolder, name: str) -> Path:
    return state.joined / f"{name}.json"


def _server_ca_file(state: StateFolder) -> Path:
    return state.joined / "market-server-ca.pem"


def _party_key(state: StateFolder, name: str) -> Path:
    return state.keys / "requested" / f"{name}.pem"


def _check_market(state: StateFolder, invitation: Invitation) -> None:
    keys = KeyStore(state.keys)
    if (keys.folder / "ca").is_dir():
        raise ConfigurationError(
            "this folder belongs to a market of its own; choose another --state-dir", path=state.path
        )
    if (keys.folder / "ca.pem").exists() and invitation.ca_certificate not in keys.ca_certificates():
        raise ConfigurationError(
            f"this folder belongs to another market than {invitation.market}; choose another --state-dir",
            path=state.path,
        )


def kept_key(path: Path) -> PrivateKey:
    """Return the private key of a file, created at the first call; `ConfigurationError` if the file is invalid."""
    if path.exists():
        return read_key(path)
    key = new_key()
    write_whole(path, private_pem(key), private=True)
    return key


def _checked_server(state: StateFolder, invitation: Invitation, issued: EnrolmentGranted) -> x509.Certificate:
    certificate = _loaded(issued.server_certificate, "server's certificate")
    key = kept_key(server_key_file(state, invitation.domain))
    try:
        certificates.check_issuer(certificate, (invitation.ca_certificate,))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (DocumentError, x509.ExtensionNotFound, ValueError) as error:
        raise ConfigurationError(f"the server's certificate is not from the market's authority: {error}") from error
    if list(names) != [x509.DNSName(invitation.domain)]:
        raise ConfigurationError(f"the server's certificate is not for {invitation.domain}")
    if key.public_key() != certificate.public_key():
        raise ConfigurationError("the server's certificate is for another key than that of this site's server")
    return certificate


def _loaded(pem: str, what: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem.encode())
    except ValueError as error:
        raise ConfigurationError(f"invalid {what}: {error}") from error
