"""Invitations of a market's keeper to parties of other sites, as a file or as one line of text.

An invitation fixes name, role and end, says where the market is, and pins its authority. Its secret never travels: it
is the key of an HMAC (RFC 2104) over the request for a certificate. The invited party registers the XMPP account at the
market's server with the token of the invitation (`account_tokens`). The authority's signature covers all parts, the
token by its digest, so any change makes the invitation invalid. A person who reads the invitation can use it, once.

The keeper's secret register has all invitations with their later history.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hmac
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from ramp.errors import ConfigurationError, WrongVersion, check_version
from ramp.file_versions import CachedFile, Version, version_of
from ramp.ledger.entry import AccountKind
from ramp.model.instant import Instant, from_iso, iso
from ramp.model.seal import Role
from ramp.options import Bounds, Wanted, Written, read_options
from ramp.rfql.signing import certificates
from ramp.rfql.signing.certificates import UNREADABLE, PrivateKey
from ramp.runtime.atomic_writes import locked, write_whole
from ramp.runtime.joining.account_tokens import AccountToken, token_digest

VERSION: Final = 1

TOKEN_PREFIX: Final = "ramp-invitation-1."  # noqa: S105 - public
"""Prefix of an invitation in one line."""

SECRET_BYTES: Final = 32
TEXT_MAX: Final = 65_536
"""Maximum length of an invitation in characters."""

INVITED_ROLES: Final = (Role.USER, Role.RESOURCE)
"""Roles of invited parties."""

_SIGNED_LINE: Final = b"RAMP invitation 1\n"
_SECRET: Final = re.compile(rf"[0-9a-f]{{{2 * SECRET_BYTES}}}")


def _read_instant(text: Any) -> Instant:
    return from_iso(text if isinstance(text, str) else "")


_Text = Annotated[str, Wanted("a text that is not empty", bool)]


@dataclass(frozen=True, slots=True)
class Invitation:
    """One invitation.

    Attributes:
        invitation_id: names it.
        name: full name of the party that is invited, `agent@site.example`.
        role: what it is to be certified as.
        ends_at: until when it may be used.
        market: domain of the market.
        servers: `host:port` of the XMPP server of the market, for clients.
        server_ca: PEM of the authority of that server's certificate; empty where the system's are trusted.
        ca: PEM of the market's authority.
        enrolment: local name of the enrolment office.
        bank: local name of the Banking Agent.
        directory: local name of the directory.
        directories: how many directories there are.
        keeper: local name of the keeper.
        account: local name of the account at the market's server with which to enrol.
        certifies_server: whether the server of the party's own domain is certified with it.
        signed_offers: whether the market's offers are signed.
        secret: in hexadecimal; known only to the keeper and to holders of the invitation.
        signature: of the market's authority over all of the others but the token itself, in base64.
        account_token_digest: of the token that registers the account; empty for a market on an external server.
        account_token: the token; empty there too, and in what the keeper and the site keep of the invitation.
    """

    invitation_id: _Text
    name: Annotated[str, Wanted("agent@site.example", lambda text: all(text.rpartition("@")))]
    role: Annotated[Role, Wanted(" or ".join(INVITED_ROLES), INVITED_ROLES.__contains__)]
    ends_at: Annotated[Instant, Written("an instant in ISO 8601", _read_instant, iso)]
    market: _Text
    servers: tuple[str, ...]
    server_ca: str
    ca: _Text
    enrolment: _Text
    bank: _Text
    directory: _Text
    directories: Annotated[int, Bounds(1)]
    keeper: _Text
    account: _Text
    certifies_server: bool
    signed_offers: bool
    secret: str
    signature: str = ""
    account_token_digest: str = ""
    account_token: str = ""

    @property
    def domain(self) -> str:
        return self.name.rpartition("@")[2]

    @property
    def local_name(self) -> str:
        return self.name.rpartition("@")[0]

    @property
    def ca_certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.ca.encode())

    @property
    def ca_fingerprint(self) -> str:
        """SHA-256 of the authority's certificate in hexadecimal pairs, for comparison over another channel."""
        return certificates.fingerprint(self.ca_certificate)

    def without_token(self) -> Invitation:
        """Return the invitation without its token, for storage after the token was passed on or used."""
        return replace(self, account_token="")

    def text(self) -> str:
        """Return the invitation as a file: a JSON object."""
        return json.dumps({"version": VERSION, **_plain(self)}, indent=1) + "\n"

    def token(self) -> str:
        """Return the invitation as one line."""
        packed = json.dumps({"version": VERSION, **_plain(self)}, separators=(",", ":")).encode()
        return TOKEN_PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def sign_invitation(invitation: Invitation, key: PrivateKey) -> Invitation:
    """Return the invitation with a signature by the market authority's key."""
    signature = key.sign(_signed_part(invitation), ec.ECDSA(hashes.SHA256()))
    return replace(invitation, signature=base64.b64encode(signature).decode())


def read_invitation(text: str, source: str = "the invitation") -> Invitation:
    """Read an invitation, a file's text or one line, and check its form and signature; errors name the `source`.

    Raises:
        ConfigurationError: the text is not an invitation, or was changed after the signature.
    """
    try:
        plain = json.loads(_unpacked(text.strip()))
        invitation = _from_plain(plain)
        _check_signature(invitation)
    except InvalidSignature:
        raise ConfigurationError(
            "the signature of the market's authority does not fit: it is forged, or a part of it was changed; ask the "
            "keeper for another one",
            path=source,
        ) from None
    except (ConfigurationError, binascii.Error, *UNREADABLE) as error:
        raise ConfigurationError(
            f"invalid invitation: {error}; expected the text that `ramp invite` wrote", path=source
        ) from error
    return invitation


def proof(secret: str, part: bytes) -> str:
    """Return the HMAC-SHA256 of a part under the secret of an invitation, in hexadecimal."""
    return hmac.new(bytes.fromhex(secret), part, "sha256").hexdigest()


def _unpacked(text: str) -> str:
    if len(text) > TEXT_MAX:
        raise ValueError(f"got {len(text)} characters, expected at most {TEXT_MAX}")
    if not text.startswith(TOKEN_PREFIX):
        return text
    packed = text.removeprefix(TOKEN_PREFIX)
    return base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode()


def _plain(invitation: Invitation) -> dict[str, Any]:
    return asdict(invitation) | {"ends_at": iso(invitation.ends_at)}


def _signed_part(invitation: Invitation) -> bytes:
    plain = {key: value for key, value in _plain(invitation).items() if key not in ("signature", "account_token")}
    return _SIGNED_LINE + json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def _from_plain(plain: Any) -> Invitation:
    version = plain.pop("version", None) if isinstance(plain, dict) else None
    if version != VERSION:
        raise ValueError(f"not a JSON object of version {VERSION}")
    invitation = read_options(plain, Invitation)
    if not _SECRET.fullmatch(invitation.secret):  # which no error quotes
        raise ValueError(f"secret: expected {2 * SECRET_BYTES} hexadecimal digits")
    if invitation.account_token and token_digest(invitation.account_token) != invitation.account_token_digest:
        raise ValueError("account_token: it is another one than the signature is for")
    return invitation


def _check_signature(invitation: Invitation) -> None:
    """Check the signature of an invitation's authority; `InvalidSignature` or `ValueError` if it is wrong."""
    key = invitation.ca_certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError("the authority that it names has no P-256 key")  # noqa: TRY004 - what was read is wrong
    key.verify(base64.b64decode(invitation.signature), _signed_part(invitation), ec.ECDSA(hashes.SHA256()))


@dataclass(frozen=True, slots=True)
class Grant:
    """Certificates issued on an invitation, in PEM; `server_certificate` may be empty."""

    granted_at: Instant
    certificate: str
    server_certificate: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An invitation and its later history.

    Attributes:
        invitation: the invitation.
        made_at: time of its creation.
        deposit: initial credit of its bank account in minor units.
        credit_limit: overdraft of that account in minor units.
        grant: the issued certificates; None before enrolment.
        revoked_at: time of its revocation, or None.
        reason: reason of its revocation.
    """

    invitation: Invitation
    made_at: Instant
    deposit: int = 0
    credit_limit: int = 0
    grant: Grant | None = None
    revoked_at: Instant | None = None
    reason: str = ""

    @property
    def kind(self) -> AccountKind:
        """The kind of the party's bank account."""
        return AccountKind.USER if self.invitation.role is Role.USER else AccountKind.RESOURCE

    def state(self, now: Instant) -> str:
        """Return `open`, `enrolled`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        if self.grant is not None:
            return "enrolled"
        return "expired" if now > self.invitation.ends_at else "open"


class Register:
    """The register's file, created with the first invitation."""

    def __init__(self, path: Path) -> None:
        self._file = CachedFile(path, _load)

    @property
    def version(self) -> Version | None:
        """The version of the file, which every change replaces; None without a file."""
        return version_of(self._file.path)

    def entries(self) -> dict[str, Entry]:
        """Return every invitation by id, in order of creation; the file is read again only after a change.

        Raises:
            ConfigurationError: the file is damaged.
            WrongVersion: the file has another version.
        """
        return dict(self._file.content() or {})

    def account_tokens(self, now: Instant) -> dict[str, AccountToken | None]:
        """Return tokens for registering invited accounts on the market's server, by local name.

        An expired token allows no registration but keeps its account. An enrolled party keeps its account after its
        revocation, to be informed of it. None closes the account of a name revoked before enrolment, because an
        impostor may have used the token.
        """
        found: dict[str, AccountToken | None] = {}
        for entry in self.entries().values():
            invitation, state = entry.invitation, entry.state(now)
            if not invitation.account_token_digest:  # of a time with an external server
                continue
            if state == "revoked" and entry.grant is not None and entry.revoked_at is not None:
                ends_at = min(invitation.ends_at, entry.revoked_at)
                found[invitation.account] = AccountToken(invitation.account_token_digest, ends_at)
            elif state in ("open", "enrolled"):
                found[invitation.account] = AccountToken(invitation.account_token_digest, invitation.ends_at)
            else:
                found[invitation.account] = None
        return found

    def promised(self, now: Instant) -> list[Invitation]:
        """Return the invitations of parties that may still enrol, or have."""
        return [entry.invitation for entry in self.entries().values() if entry.state(now) in ("open", "enrolled")]

    def members(self) -> tuple[Entry, ...]:
        """Return the enrolled entries, also those revoked later: their accounts stay."""
        return tuple(entry for entry in self.entries().values() if entry.grant is not None)

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, Entry]]:
        """Change the register: entries put into the mapping are on disk when the block ends.

        Raises:
            ConfigurationError: the file is damaged.
        """
        path = self._file.path
        with locked(path.with_name(f"{path.name}.lock")):
            before = self.entries()
            entries = dict(before)
            yield entries
            if entries != before:
                told = [asdict(each) | {"invitation": json.loads(each.invitation.text())} for each in entries.values()]
                plain = {"version": VERSION, "invitations": told}
                write_whole(path, (json.dumps(plain, indent=1) + "\n").encode(), private=True)


def revoked(entry: Entry, now: Instant, reason: str) -> Entry:
    """Return a revoked entry; an earlier revocation stays as it was."""
    return entry if entry.revoked_at is not None else replace(entry, revoked_at=now, reason=reason)


def _load(path: Path) -> dict[str, Entry]:
    try:
        plain = json.loads(path.read_text("utf-8"))
        check_version(path, "register of invitations", plain["version"], VERSION)
        found = [
            read_options({**each, "invitation": read_invitation(json.dumps(each["invitation"]))}, Entry)
            for each in plain["invitations"]
        ]
    except WrongVersion:
        raise
    except (OSError, ValueError, KeyError, TypeError, ConfigurationError) as error:
        raise ConfigurationError(
            f"the register of invitations cannot be read: {error}; restore it from a "
            "backup: it lists all invited parties",
            path=path,
        ) from error
    return {entry.invitation.invitation_id: entry for entry in found}
