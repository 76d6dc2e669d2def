"""Keys and certificates of a market on disk: its CA, the parties' identities, the inventory and the revocation list.

Layout under the store's folder (all folders 0700, everything with a private key 0600):

    ca/identity.pem            the CA's private key and certificate; only where certificates are issued
    ca.pem                     the CA's certificate, which every party needs
    agents/NAME/identity.pem   a party's private key and certificate, one file so that both are replaced at once
    pins/NAME.pem              a party's present certificate: what verifiers pin its key to (no private key needed)
    issued/SERIAL.pem          every certificate ever issued
    revoked.json               serial number, party, time and reason of what was revoked, where certificates are issued
    revocations.pem            the same as a list signed by the CA, which travels to other sites

Files appear whole or not at all (written aside, then renamed), and a lock lets one process at a time create keys.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ramp.errors import ConfigurationError, SignatureInvalid
from ramp.file_versions import CachedFile
from ramp.model.instant import DAY, Duration, Instant, iso
from ramp.model.seal import Role
from ramp.rfql.signing import certificates
from ramp.rfql.signing.certificates import PrivateKey, Trust
from ramp.runtime.atomic_writes import locked, write_whole
from ramp.runtime.keys import issuing
from ramp.runtime.keys.issuing import (
    Revocation,
    SignedList,
    read_list,
    read_revocations,
    sign_list,
    write_revocations,
)
from ramp.text import IDENTIFIER

if TYPE_CHECKING:
    from ramp.rfql.signing.notary import XmlNotary


@dataclass(frozen=True, slots=True)
class CertificateEntry:
    """One certificate of the inventory.

    Attributes:
        serial: serial number in hexadecimal.
        fingerprint: SHA-256 of the certificate in hexadecimal pairs.
        state: `valid`, `expired`, `not yet valid` or `revoked`.
        current: whether the party signs with it now.
    """

    name: str
    role: Role
    serial: str
    fingerprint: str
    valid_from: Instant
    valid_until: Instant
    state: str
    current: bool


def state_of(certificate: x509.Certificate, now: Instant, *, revoked: bool) -> str:
    """Return the state of a certificate: `valid`, `expired`, `not yet valid` or `revoked`."""
    if revoked:
        return "revoked"
    if now > certificates.valid_until(certificate):
        return "expired"
    return "not yet valid" if now < certificates.valid_from(certificate) else "valid"


CA_LIFETIME: Final[Duration] = 10 * 365 * DAY
"""Ten years, as usual for private CAs."""

CERTIFICATE_LIFETIME: Final[Duration] = 365 * DAY
"""A year, after which an unnoticed loss of a key does no more harm."""


class KeyStore:
    """The keys of a market, or of one party, in a folder created at the first write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._revocations = CachedFile(folder / "revoked.json", read_revocations)
        self._signed_list = CachedFile(folder / "revocations.pem", self._read_signed_list)
        self._pins: dict[str, CachedFile[x509.Certificate]] = {}

    # The CA

    def create_ca(self, now: Instant, *, market: str = "RAMP market") -> x509.Certificate:
        """Return the certificate of the market's CA; create the CA if it does not exist.

        Raises:
            ConfigurationError: the certificate is not valid yet: the clock is wrong.
        """
        path = self.folder / "ca" / "identity.pem"
        with self._changing():
            if not path.exists():
                if (self.folder / "ca.pem").exists():  # its key is elsewhere and must not be replaced
                    return self.ca_certificates()[0]
                write_whole(path, issuing.identity_pem(*issuing.make_ca(market, now, CA_LIFETIME)), private=True)
        certificate = self._read_identity(path)[1]
        _check_begun("the market's authority", certificate, now, path)
        if not (self.folder / "ca.pem").exists():
            write_whole(self.folder / "ca.pem", certificate.public_bytes(serialization.Encoding.PEM), private=False)
        return certificate

    def ca_certificates(self) -> tuple[x509.Certificate, ...]:
        """Return certificates of the trusted CAs (several while one is replaced); `ConfigurationError` without any."""
        return load_ca_certificates(self.folder / "ca.pem")

    # Parties

    def issue(
        self,
        name: str,
        role: Role,
        now: Instant,
        *,
        lifetime: Duration = CERTIFICATE_LIFETIME,
    ) -> x509.Certificate:
        """Return a valid certificate for a party (bare JID): its current one, or one with a new key.

        Raises:
            ConfigurationError: name or role is wrong, this store has no CA key, or the certificate is not valid
                yet: the clock is wrong.
        """
        path = self._identity_path(name)
        with self._changing():
            if path.exists():
                certificate = self._read_identity(path)[1]
                if self._holds(certificate, now):
                    self._check_role(name, role, certificate)
                    _check_begun(name, certificate, now, path)
                    self._pin(name, certificate)  # in case a crash came between identity and pin
                    return certificate
            return self._certify(name, issuing.new_key(), now, lifetime, role)

    def renew(
        self,
        name: str,
        now: Instant,
        *,
        role: Role | None = None,
        new_key: bool = False,
        lifetime: Duration = CERTIFICATE_LIFETIME,
    ) -> x509.Certificate:
        """Return a new certificate for a party that has one, by default in the role of that one.

        It is for the same key, so that pins stay valid; a new key is necessary after a revocation.

        Raises:
            ConfigurationError: the party has no identity here, its key was revoked, this store has no CA key, or the
                role differs from that of a valid certificate.
        """
        with self._changing():
            key, old = self.identity(name)
            if role is not None and self._holds(old, now):
                self._check_role(name, role, old)
            if new_key:
                key = issuing.new_key()
            elif self.is_revoked(old):
                raise ConfigurationError(f"the key of {name} was revoked; make a new key", path=self.folder)
            return self._certify(name, key, now, lifetime, role or certificates.role_of(old))

    def _changing(self) -> contextlib.AbstractContextManager[None]:
        """Let one process at a time create and replace keys."""
        return locked(self.folder / "lock")

    def _holds(self, certificate: x509.Certificate, now: Instant) -> bool:
        return certificates.valid_until(certificate) > now and not self.is_revoked(certificate)

    def _check_role(self, name: str, role: Role, certificate: x509.Certificate) -> None:
        stated = certificates.role_of(certificate)
        if role is not stated:
            raise ConfigurationError(
                f"{name} is certified as {stated}, not as {role}; choose another name, or run `ramp keys revoke "
                f"{name}` first: two certificates would let one key speak in two roles",
                path=self.folder,
            )

    def _certify(self, name: str, key: PrivateKey, now: Instant, lifetime: Duration, role: Role) -> x509.Certificate:
        certificate = issuing.certify(name, key.public_key(), self.issuer(), now, lifetime, role)
        self.keep_certificate(name, certificate, key)
        return certificate

    def identity(self, name: str) -> tuple[PrivateKey, x509.Certificate]:
        """Return a party's private key and certificate.

        Raises:
            ConfigurationError: the party has no identity here, or others could read the file.
        """
        path = self._identity_path(name)
        if not path.exists():
            raise ConfigurationError(f"no key of {name}; run `ramp keys issue {name} --role ...` first", path=path)
        return self._read_identity(path)

    def certificate_on_file(self, name: str) -> x509.Certificate | None:
        """Return the certificate to which a notary pins a party, or None.

        Raises:
            ConfigurationError: the file is damaged; it must not count as missing.
        """
        if IDENTIFIER.fullmatch(name) is None:
            return None
        path = self.folder / "pins" / f"{name}.pem"
        pinned = self._pins.get(name) or CachedFile(path, lambda path: _load_pem_certificates(path)[0])
        found = pinned.content()
        if found is not None:
            self._pins[name] = pinned
        return found

    def notary(self, name: str) -> XmlNotary:
        """Return a party's notary with pins and revocation list; `ConfigurationError` without party or CA."""
        from ramp.rfql.signing.notary import XmlNotary  # with lxml, which a supervisor does not need

        key, certificate = self.identity(name)
        return XmlNotary(name, key, certificate, trust_of(self))

    # Inventory and revocation

    def inventory(self, now: Instant) -> tuple[CertificateEntry, ...]:
        """Return every certificate issued here, by party and age."""
        revoked = {line.serial for line in self.revocations()}
        entries = []
        for certificate in self._issued():
            name = certificates.identity_of(certificate)
            serial = certificates.serial_text(certificate)
            on_file = self.certificate_on_file(name)
            entries.append(
                CertificateEntry(
                    name=name,
                    role=certificates.role_of(certificate),
                    serial=serial,
                    fingerprint=certificates.fingerprint(certificate),
                    valid_from=certificates.valid_from(certificate),
                    valid_until=certificates.valid_until(certificate),
                    state=state_of(certificate, now, revoked=serial in revoked),
                    current=on_file is not None and on_file.serial_number == certificate.serial_number,
                )
            )
        return tuple(sorted(entries, key=lambda entry: (entry.name, entry.valid_from, entry.serial)))

    def revoke(self, name: str, now: Instant, reason: str = "") -> tuple[Revocation, ...]:
        """Revoke every valid certificate of a party and return the newly revoked ones.

        Raises:
            ConfigurationError: no certificate was issued here for that party.
        """
        mine = [certificate for certificate in self._issued() if certificates.identity_of(certificate) == name]
        if not mine:
            raise ConfigurationError(f"no certificate was issued for {name!r}", path=self.folder / "issued")
        with self._changing():
            lines = self.revocations()
            known = {line.serial for line in lines}
            added = tuple(
                Revocation(serial, name, now, reason)
                for certificate in mine
                if (serial := certificates.serial_text(certificate)) not in known
                and certificates.valid_until(certificate) >= now
            )
            if added:
                write_revocations(self._revocations.path, (*lines, *added))
        return added

    def revocations(self) -> tuple[Revocation, ...]:
        """Return the revocations in order; `ConfigurationError` if the file is damaged."""
        return tuple((self._revocations.content() or {}).values())

    def is_revoked(self, certificate: x509.Certificate) -> bool:
        """Return whether a certificate is on a revocation list; files are read again only after a change."""
        serial = certificates.serial_text(certificate)
        signed = self.signed_list()
        return serial in (self._revocations.content() or {}) or (signed is not None and serial in signed.revoked_at)

    def signed_list(self) -> SignedList | None:
        """Return the newest signed revocation list here, or None; `ConfigurationError` if the file is damaged."""
        return self._signed_list.content() if (self.folder / "ca.pem").exists() else None

    def keep_signed_list(self, pem: str) -> SignedList:
        """Keep a list from the authority, unless a newer one is here, and return the newest.

        Raises:
            SignatureInvalid: no authority of the market has signed the list.
        """
        offered, known = read_list(pem, self.ca_certificates()), self.signed_list()
        if known is not None and known.number >= offered.number:
            return known
        write_whole(self._signed_list.path, pem.encode("ascii"), private=False)
        return offered

    def sign_revocations(self, now: Instant, lifetime: Duration) -> SignedList:
        """Return the signed list of all revocations: the current one for half of its lifetime, else a new one.

        Raises:
            ConfigurationError: this store has no CA key.
        """
        current, lines = self.signed_list(), self.revocations()
        told = set() if current is None else current.revoked_at.keys()
        if current is not None and {line.serial for line in lines} <= told and now < current.expires_at - lifetime // 2:
            return current
        number = 1 if current is None else current.number + 1
        return self.keep_signed_list(sign_list(lines, number, self.issuer(), now, lifetime))

    # Helpers

    def _read_signed_list(self, path: Path) -> SignedList:
        try:
            return read_list(path.read_text("ascii"), self.ca_certificates())
        except (OSError, UnicodeDecodeError, SignatureInvalid) as error:
            raise ConfigurationError(f"revocation list cannot be read: {error}", path=path) from error

    def _identity_path(self, name: str) -> Path:
        if IDENTIFIER.fullmatch(name) is None:
            raise ConfigurationError(f"invalid party name: got {name!r}, expected a name such as user1@localhost")
        return self.folder / "agents" / name / "identity.pem"

    def issuer(self) -> tuple[PrivateKey, x509.Certificate]:
        """Return the CA's private key and certificate; `ConfigurationError` if this store has none."""
        path = self.folder / "ca" / "identity.pem"
        if not path.exists():
            raise ConfigurationError("this store has no CA key; run `ramp keys init` first", path=path)
        return self._read_identity(path)

    def keep_certificate(self, name: str, certificate: x509.Certificate, key: PrivateKey | None = None) -> None:
        """Enter a certificate in the inventory, keep it with its key unless that is elsewhere, and pin it."""
        identity = self._identity_path(name)
        issued = self.folder / "issued" / f"{certificates.serial_text(certificate)}.pem"
        write_whole(issued, certificate.public_bytes(serialization.Encoding.PEM), private=False)
        if key is not None:
            write_whole(identity, issuing.identity_pem(key, certificate), private=True)
        self._pin(name, certificate)

    def keep_identity(self, name: str, key: PrivateKey, certificate: x509.Certificate, ca: x509.Certificate) -> None:
        """Keep a party's key with a certificate of another store's CA, and trust that CA."""
        write_whole(self.folder / "ca.pem", ca.public_bytes(serialization.Encoding.PEM), private=False)
        self.keep_certificate(name, certificate, key)

    def _pin(self, name: str, certificate: x509.Certificate) -> None:
        if self.certificate_on_file(name) != certificate:
            path = self.folder / "pins" / f"{name}.pem"
            write_whole(path, certificate.public_bytes(serialization.Encoding.PEM), private=False)

    def _issued(self) -> Iterator[x509.Certificate]:
        for path in sorted((self.folder / "issued").glob("*.pem")):
            yield _load_pem_certificates(path)[0]

    def _read_identity(self, path: Path) -> tuple[PrivateKey, x509.Certificate]:
        if path.stat().st_mode & 0o077:
            raise ConfigurationError("others can read this private key; run chmod 600", path=path)
        return issuing.read_key(path), _load_pem_certificates(path)[0]


def trust_of(store: KeyStore) -> Trust:
    """Return the certificates that the parties of a key store trust."""
    return Trust(store.ca_certificates(), store.certificate_on_file, store.is_revoked)


def load_ca_certificates(path: Path) -> tuple[x509.Certificate, ...]:
    """Read the CA certificates of a market from one PEM file; `ConfigurationError` without any."""
    if not path.exists():
        raise ConfigurationError("no CA certificate; run `ramp keys init`, or use the market's ca.pem", path=path)
    return _load_pem_certificates(path)


def _load_pem_certificates(path: Path) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"not a certificate in PEM: {error}", path=path) from error


def _check_begun(name: str, certificate: x509.Certificate, now: Instant, path: Path) -> None:
    """Refuse a certificate that is not valid yet, because peers reject its signatures: the clock was set back."""
    begins = certificates.valid_from(certificate)
    if now < begins:
        raise ConfigurationError(
            f"the clock here shows {iso(now)}, but the certificate of {name} holds only from "
            f"{iso(begins)} on, and nothing that is signed before is believed; set the clock right",
            path=path,
        )
