"""A line of a key store's inventory: one certificate and how it stands."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography import x509

from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.rfql.signing import certificates


@dataclass(frozen=True, slots=True)
class CertificateEntry:
    """One certificate of the inventory.

    Attributes:
        name: the party it is for.
        role: what it certifies the party to be.
        serial: serial number in hexadecimal.
        key_kind: `P-256`, `RSA-3072` or `Ed25519`.
        fingerprint: SHA-256 of the certificate, in hexadecimal pairs.
        valid_from: first instant.
        valid_until: last instant.
        state: `valid`, `expired`, `not yet valid` or `revoked`.
        current: whether the party signs with it now.
    """

    name: str
    role: Role
    serial: str
    key_kind: str
    fingerprint: str
    valid_from: Instant
    valid_until: Instant
    state: str
    current: bool


def state_of(certificate: x509.Certificate, now: Instant, *, revoked: bool) -> str:
    """How a certificate stands at a time: `valid`, `expired`, `not yet valid` or `revoked`."""
    if revoked:
        return "revoked"
    if now > certificates.valid_until(certificate):
        return "expired"
    return "not yet valid" if now < certificates.valid_from(certificate) else "valid"
