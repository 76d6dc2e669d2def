"""The certificates that a party trusts: the market's CAs, the keys on file, and revocations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ramp.errors import SignerUnknown
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.rfql.signing import certificates
from ramp.rfql.signing.certificates import PublicKey

CERTIFICATES_CHECKED_MAX: Final = 4096
"""Certificates remembered as issued by the CA; a market's parties are far fewer."""


def no_pin(_name: str) -> x509.Certificate | None:
    """Return no pin, for parties that trust the CA alone."""
    return None


def none_revoked(_certificate: x509.Certificate) -> bool:
    """Return false: the empty revocation list."""
    return False


@dataclass(frozen=True, slots=True)
class CertifiedParty:
    """Name, role, public key and certificate of a party, with the issuing CA's certificate."""

    name: str
    role: Role
    key: PublicKey
    certificate: x509.Certificate
    issuer: x509.Certificate


@dataclass(slots=True)
class Trust:
    """The certificates that a party trusts.

    A certificate is parsed, and its chain and form checked, once. Only certificates that pass are remembered, so junk
    neither fills the memory nor evicts others. Time, revocation and pin are checked every time.

    Attributes:
        ca_certificates: the market's CAs.
        pins: certificate on file for a party's name, or None without one; its key must be the signer's.
        revoked: whether a certificate has been revoked.
    """

    ca_certificates: Sequence[x509.Certificate]
    pins: Callable[[str], x509.Certificate | None] = no_pin
    revoked: Callable[[x509.Certificate], bool] = none_revoked
    _known: dict[bytes, CertifiedParty] = field(default_factory=dict)

    def standing(self) -> str:
        """Describe the result of `check` for a certificate that has passed, for reports."""
        revocation = "revocation not checked" if self.revoked is none_revoked else "not revoked"
        return f"of this market, valid, {revocation}"

    def check(self, certificate: x509.Certificate, now: Instant) -> CertifiedParty:
        """Check a signer's certificate; see `check_bytes`."""
        return self.check_bytes(certificate.public_bytes(Encoding.DER), now)

    def check_bytes(self, der: bytes, now: Instant) -> CertifiedParty:
        """Check a signer's certificate and return the party it is for.

        Args:
            der: the certificate, in DER.
            now: the time for which it must hold.

        Raises:
            SignerUnknown: not of this market, without a role, revoked, not the key on file, or out of its time.
            SignatureInvalid: no certificate at all, or too weak a key.
        """
        party = self._known.get(der)
        if party is None:
            party = self._certified(certificates.load(der))
            if len(self._known) < CERTIFICATES_CHECKED_MAX:
                self._known[der] = party
        certificate = party.certificate
        certificates.check_validity(party.issuer, now)
        certificates.check_validity(certificate, now)
        if self.revoked(certificate):
            raise SignerUnknown(f"certificate {certificates.serial_text(certificate)} has been revoked")
        pinned = self.pins(party.name)
        if pinned is not None and not certificates.same_key(pinned, certificate):
            raise SignerUnknown(
                f"{party.name} signs with key {certificates.key_fingerprint(certificate)}, "
                f"but {certificates.key_fingerprint(pinned)} is on file"
            )
        return party

    def _certified(self, certificate: x509.Certificate) -> CertifiedParty:
        issuer = certificates.check_issuer(certificate, self.ca_certificates)
        return CertifiedParty(
            name=certificates.identity_of(certificate),
            role=certificates.role_of(certificate),
            key=certificates.key_of(certificate),
            certificate=certificate,
            issuer=issuer,
        )
