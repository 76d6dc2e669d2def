"""The market's authority for invited parties: invites, and issues certificates on request, once for each invitation.

Certificates are on disk before they are sent. A repeated request gets the same certificate, so a lost answer does no
harm; a request with another key is refused, even if its sender has the invitation. `Authority` answers questions of
`ramp.protocol.enrolment` at once, as a guest of a host, at the market and at its sites.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ramp.errors import ConfigurationError, DocumentError, EnrolmentRefused
from ramp.model.contents import EnrolmentGranted, EnrolmentRequest, RequestRefused
from ramp.model.instant import DAY, Duration, Instant, iso
from ramp.model.seal import Role
from ramp.protocol.enrolment.authority import (
    AskAuthority,
    AuthorityAnswer,
    JudgeRequest,
    KeepRevocations,
    ReadRevocations,
    RequestJudged,
    RevocationsKept,
    RevocationsRead,
)
from ramp.rfql.signing import certificates
from ramp.rfql.signing.certificates import PublicKey
from ramp.runtime.configuration.sites import EXTERNAL, EnrolmentConfig
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.configuration_changes.audit_log import add_line, own_name
from ramp.runtime.configuration_changes.overlay import running_config
from ramp.runtime.joining.account_tokens import draw_token, token_digest
from ramp.runtime.joining.invitations import (
    SECRET_BYTES,
    Entry,
    Grant,
    Invitation,
    Register,
    revoked,
    sign_invitation,
)
from ramp.runtime.joining.requests import check_request
from ramp.runtime.keys import issuing
from ramp.runtime.keys.store import CERTIFICATE_LIFETIME, KeyStore
from ramp.runtime.state_folder import StateFolder
from ramp.text import IDENTIFIER

RENEW_BEFORE: Final[Duration] = 60 * DAY
"""A repeated request gets a new certificate for the same key if the current one expires within this time."""

DAYS_DEFAULT: Final = 7
"""Validity of an invitation and of a revocation list in days."""

_log = logging.getLogger(__name__)


class Authority:
    """Issues certificates to invited parties and revokes them.

    Args:
        state: the market's state folder; only one with the CA's key issues certificates.
        lifetime: validity of a revocation list.
    """

    def __init__(self, state: StateFolder, lifetime: Duration = DAYS_DEFAULT * DAY) -> None:
        self._keys = KeyStore(state.keys)
        self._lifetime = lifetime
        self.register = Register(state.invitations)

    def invite(self, invitation: Invitation, now: Instant, *, deposit: int = 0, credit_limit: int = 0) -> Invitation:
        """Sign an invitation, draw what is secret in it, and enter it in the register.

        A user's bank account opens with a deposit and an overdraft, both in minor units.

        Raises:
            ConfigurationError: the name is invalid or was invited before, a resource has money, or there is no CA key.
        """
        key, ca = self._keys.issuer()
        if IDENTIFIER.fullmatch(invitation.name) is None:  # certificates have no other names
            raise ConfigurationError(f"invalid name {invitation.name!r}: expected agent@site.example in ASCII")
        if invitation.role is Role.RESOURCE and (deposit or credit_limit):
            raise ConfigurationError("a resource has no deposit and no overdraft; leave out --deposit and --overdraft")
        with self.register.changing() as entries:
            for entry in entries.values():
                if entry.invitation.name == invitation.name and entry.state(now) in ("open", "enrolled"):
                    raise ConfigurationError(
                        f"{invitation.name} has been invited already ({entry.state(now)}); choose another "
                        f"name, or run `ramp invite revoke {invitation.name}` first"
                    )
            invitation_id, token = f"invitation-{secrets.token_hex(8)}", invitation.account_token
            drawn = replace(
                invitation,
                invitation_id=invitation_id,
                secret=secrets.token_hex(SECRET_BYTES),
                ca=ca.public_bytes(Encoding.PEM).decode(),
                account=invitation.account or invitation_id,
                account_token_digest=token_digest(token) if token else "",
            )
            signed = sign_invitation(drawn, key)
            entries[invitation_id] = Entry(signed.without_token(), now, deposit, credit_limit)
        return signed

    def issue(self, asked: EnrolmentRequest, now: Instant) -> EnrolmentGranted:
        """Issue the certificates of a request.

        Raises:
            EnrolmentRefused: with the code `unknown_invitation`, `forged`, `bad_request`, `other_name`, `no_server`,
                `revoked`, `expired`, `other_key`, or `offline` if the CA's key is not here.
            ConfigurationError: the register or the keys are damaged.
        """
        with self.register.changing() as entries:
            entry = entries.get(asked.invitation_id)
            if entry is None:
                raise EnrolmentRefused("unknown_invitation", "the market knows no such invitation")
            keys = check_request(entry.invitation, asked)
            self._check_standing(entry, keys, now)
            grant = entry.grant
            if grant is None or certificates.valid_until(_certificate(grant.certificate)) - now < RENEW_BEFORE:
                grant = self._granted(entry.invitation, keys, now)
                entries[asked.invitation_id] = replace(entry, grant=grant)
        signed = self._keys.sign_revocations(now, self._lifetime)
        return EnrolmentGranted(asked.invitation_id, grant.certificate, grant.server_certificate, signed.pem)

    def revoke(self, named: str, now: Instant, reason: str) -> list[Entry]:
        """Revoke invitations by id or party name, and their certificates, for a published reason.

        Returns:
            The newly revoked entries.

        Raises:
            ConfigurationError: the invitation is unknown.
        """
        changed = []
        with self.register.changing() as entries:
            found = [key for key, entry in entries.items() if named in (key, entry.invitation.name)]
            if not found:
                raise ConfigurationError(f"unknown invitation {named!r}; `ramp invite list` shows all")
            for key in found:
                entry = entries[key]
                if entry.grant is not None:  # first, so that no certificate reported as revoked is still valid
                    self._keys.revoke(entry.invitation.name, now, reason)
                if entry.revoked_at is None:
                    entries[key] = revoked(entry, now, reason)
                    changed.append(entries[key])
        return changed

    def _check_standing(self, entry: Entry, keys: tuple[PublicKey, ...], now: Instant) -> None:
        state = entry.state(now)
        if state == "revoked":
            assert entry.revoked_at is not None, "it is revoked"
            why = f": {entry.reason}" if entry.reason else ""
            raise EnrolmentRefused("revoked", f"the invitation was revoked at {iso(entry.revoked_at)}{why}")
        if state == "expired":
            raise EnrolmentRefused("expired", f"the invitation ended at {iso(entry.invitation.ends_at)}")
        grant = entry.grant
        if grant is None:
            return
        issued = grant.certificate, grant.server_certificate
        if tuple(_certificate(pem).public_key() for pem in issued if pem) != keys:
            raise EnrolmentRefused(
                "other_key", f"the invitation was used at {iso(grant.granted_at)}, with another key than this one"
            )
        if self._keys.is_revoked(_certificate(grant.certificate)):
            raise EnrolmentRefused("revoked", f"the certificate of {entry.invitation.name} has been revoked")

    def _granted(self, invitation: Invitation, keys: tuple[PublicKey, ...], now: Instant) -> Grant:
        try:
            issuer = self._keys.issuer()
        except ConfigurationError as error:
            detail = "the authority's key is not here; send the request as a file (`ramp join --request`)"
            raise EnrolmentRefused("offline", detail) from error
        name, role = invitation.name, invitation.role
        certificate = issuing.certify(name, keys[0], issuer, now, CERTIFICATE_LIFETIME, role)
        servers = [
            issuing.certify_server(invitation.domain, key, issuer, now, CERTIFICATE_LIFETIME) for key in keys[1:]
        ]
        self._keys.keep_certificate(name, certificate)
        return Grant(now, _pem(certificate), "".join(map(_pem, servers)))

    # -- questions of the enrolment office -----------------------------------------------------------------------

    def ask(self, question: AskAuthority, now: Instant) -> AuthorityAnswer:
        """Answer; refuse a request with a problem, and answer a question for a missing list with none.

        A site keeps a list if the market's authority has signed it and it is newer than the current one.
        """
        match question:
            case JudgeRequest(message, request):
                try:
                    return RequestJudged(message, self.issue(request, now))
                except EnrolmentRefused as error:
                    return RequestJudged(message, RequestRefused(request.invitation_id, error.code, error.detail))
                except ConfigurationError as error:
                    _log.error("%s", error)
                    denied = RequestRefused(
                        request.invitation_id, "not_now", "the enrolment office cannot issue certificates now"
                    )
                    return RequestJudged(message, denied)
            case ReadRevocations():
                return self._read(now)
            case KeepRevocations(revocations):
                try:
                    kept = self._keys.keep_signed_list(revocations)
                except (DocumentError, ConfigurationError) as error:
                    return RevocationsKept(0, 0, str(error))
                return RevocationsKept(kept.number, kept.expires_at)

    def _read(self, now: Instant) -> RevocationsRead:
        try:
            members = tuple(entry.invitation.name for entry in self.register.members())
            signed = self._keys.sign_revocations(now, self._lifetime)
            lines = self._keys.revocations()
        except ConfigurationError as error:
            _log.error("%s", error)
            return RevocationsRead(0, "")
        current = {name: self._keys.certificate_on_file(name) for name in members}
        revoked = {name for name, found in current.items() if found is not None and self._keys.is_revoked(found)}
        reasons = {
            line.name: f"revoked at {iso(line.revoked_at)}{f': {line.reason}' if line.reason else ''}"
            for line in lines
            if line.name in revoked
        }
        return RevocationsRead(signed.number, signed.pem, members, reasons)


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
        deposit: see `Authority.invite`.
        overdraft: how far below 0 the balance may go, in minor units.
        server: whether the site's XMPP server is certified too; by default for the first party of a domain.

    Raises:
        ConfigurationError: if the name is taken, or the market cannot invite that party.
    """
    config = running_config(config_file, state)
    authority = Authority(state)
    local, _, domain = name.rpartition("@")
    _check(config, local, domain)
    at_home = domain == config.domain
    if server and at_home:
        raise ConfigurationError(f"{config.domain} uses the market's own server; leave out --server")
    promised = authority.register.promised(now)
    is_certified = any(each.domain == domain and each.certifies_server for each in promised)
    external = config.server.kind == EXTERNAL
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
        enrolment=(config.enrolment or EnrolmentConfig()).name,
        bank=config.bank,
        directory=config.directory,
        directories=len(config.directory_names),
        keeper=config.keeper,
        account=local if at_home else "",
        certifies_server=not at_home and not is_certified if server is None else server,
        signed_offers=config.signed_offers,
        secret="",
        account_token="" if external else draw_token(),
    )
    made = authority.invite(drafted, now, deposit=deposit, credit_limit=overdraft)
    add_line(state, now, own_name(), "invite", name, f"{name} is invited as {role} until {iso(made.ends_at)}")
    return made


def _check(config: SwarmConfig, local: str, domain: str) -> None:
    if config.site is not None:
        market = config.site.market
        raise ConfigurationError(f"this site has joined {market}; only that market's keeper can invite")
    if domain != config.domain and config.federation is None and not config.server.federation:
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
    if config.server.kind != EXTERNAL:
        path = state.keys / "ca.pem" if config.federation is not None else state.server / "tls" / "ca.pem"
    return "" if path is None else path.read_text("ascii")


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _certificate(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())
