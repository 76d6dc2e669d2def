"""Check certificates of this market: party, role, issuer, validity and key; and whom a party trusts.

A party's identity is the URI `xmpp:name@domain` among the certificate's alternative names (RFC 5280 section 4.2.1.6,
RFC 5122). Its role is the one organizational unit of the subject, `OU=bank`, as in Hyperledger Fabric's NodeOUs: every
tool shows a subject, CAs can write it, and no private extension must be registered. The market has one CA, or several
while one is being replaced; there are no intermediate CAs.

Certificates come from strangers. Every fault raises a `DocumentError`, and fields that only an issued certificate can
hold are read after the issuer's signature has been checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from ramp.errors import CertificateExpired, SignatureInvalid, SignerUnknown
from ramp.model import instant
from ramp.model.instant import Instant
from ramp.model.seal import Role

IDENTITY_SCHEME: Final = "xmpp:"
"""Scheme of the URI that names a party."""

CERTIFICATE_BYTES_MAX: Final = 8_192
"""Longest certificate accepted; one of this program has about 600."""

PrivateKey = ec.EllipticCurvePrivateKey
"""The keys that RAMP makes, of P-256."""

PublicKey = ec.EllipticCurvePublicKey

UNREADABLE: Final = (
    ValueError,
    TypeError,
    OverflowError,
    UnsupportedAlgorithm,
    x509.AttributeNotFound,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""Errors of cryptography, at once or at the first access to a field, for certificates it cannot represent."""

Extension = TypeVar("Extension", bound=x509.ExtensionType)


def load(der: bytes) -> x509.Certificate:
    """Read a certificate from its bytes.

    Raises:
        SignatureInvalid: if the bytes are no certificate, or too long for a party's.
    """
    if len(der) > CERTIFICATE_BYTES_MAX:
        raise SignatureInvalid(f"certificate too large: got {len(der)} bytes, expected at most {CERTIFICATE_BYTES_MAX}")
    try:
        return x509.load_der_x509_certificate(der)
    except UNREADABLE as error:
        raise SignatureInvalid(f"it is no certificate: {error}") from error


def identity_of(certificate: x509.Certificate) -> str:
    """Return the name of the party that a certificate is for; `SignerUnknown` unless it names exactly one."""
    names = _extension(certificate, x509.SubjectAlternativeName)
    uris = [] if names is None else names.get_values_for_type(x509.UniformResourceIdentifier)
    found = [uri for uri in uris if uri.startswith(IDENTITY_SCHEME)]
    if len(found) != 1:
        raise SignerUnknown(
            f"certificate {serial_text(certificate)} names {len(found)} parties, expected one xmpp: URI"
        )
    return found[0].removeprefix(IDENTITY_SCHEME)


def role_of(certificate: x509.Certificate) -> Role:
    """Return the role of a certificate: the one organizational unit of its subject.

    Raises:
        SignerUnknown: unless it states exactly one role of the market.
    """
    try:
        units = [
            str(attribute.value)
            for attribute in certificate.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATIONAL_UNIT_NAME)
        ]
    except UNREADABLE as error:
        raise SignerUnknown(f"certificate {serial_text(certificate)} has an unreadable subject: {error}") from error
    if len(units) != 1 or units[0] not in set(Role):
        stated = ", ".join(repr(unit[:64]) for unit in units[:4]) or "no role"
        raise SignerUnknown(
            f"certificate {serial_text(certificate)} has a wrong organizational unit (OU): got {stated}, "
            f"expected one of {', '.join(Role)}"
        )
    return Role(units[0])


def _extension(certificate: x509.Certificate, kind: type[Extension]) -> Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
    except UNREADABLE as error:
        raise SignerUnknown(f"certificate {serial_text(certificate)} has unreadable extensions: {error}") from error


def serial_text(certificate: x509.Certificate) -> str:
    """Return the serial number in hexadecimal."""
    return f"{certificate.serial_number:x}"


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 fingerprint of the certificate, in hexadecimal pairs."""
    return certificate.fingerprint(hashes.SHA256()).hex(":")


def key_fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 fingerprint of the public key; pins compare it, so that a renewed certificate fits."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(public_key_bytes(certificate.public_key()))
    return digest.finalize().hex(":")


def same_key(one: x509.Certificate, other: x509.Certificate) -> bool:
    """Whether two certificates are for the same public key."""
    return one == other or one.public_key() == other.public_key()


def public_key_bytes(key: CertificatePublicKeyTypes) -> bytes:
    """Return a public key in the form of certificates (SubjectPublicKeyInfo, DER)."""
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def valid_from(certificate: x509.Certificate) -> Instant:
    """Return the first instant of validity."""
    return instant.from_datetime(certificate.not_valid_before_utc)


def valid_until(certificate: x509.Certificate) -> Instant:
    """Return the last instant of validity."""
    return instant.from_datetime(certificate.not_valid_after_utc)


def check_issuer(certificate: x509.Certificate, ca_certificates: Sequence[x509.Certificate]) -> x509.Certificate:
    """Check that a CA of the market issued a certificate, for signing and not for issuing; return that CA's own.

    Raises:
        SignerUnknown: if not.
    """
    for ca in ca_certificates:
        try:
            if ca.subject != certificate.issuer:
                continue
            certificate.verify_directly_issued_by(ca)
        except (InvalidSignature, *UNREADABLE):
            continue
        _check_purpose(certificate)
        return ca
    raise SignerUnknown(
        f"certificate {serial_text(certificate)} of {_subject(certificate)} was not issued by a CA of this market"
    )


def _check_purpose(certificate: x509.Certificate) -> None:
    constraints = _extension(certificate, x509.BasicConstraints)
    if constraints is not None and constraints.ca:
        raise SignerUnknown(f"certificate {serial_text(certificate)} belongs to a CA; parties sign with their own")
    usage = _extension(certificate, x509.KeyUsage)
    if usage is None or not usage.digital_signature:
        raise SignerUnknown(
            f"certificate {serial_text(certificate)} is not for signing (no key usage digitalSignature)"
        )


def _subject(certificate: x509.Certificate) -> str:
    try:
        return certificate.subject.rfc4514_string()
    except UNREADABLE:
        return "an unreadable subject"


def check_validity(certificate: x509.Certificate, now: Instant) -> None:
    """Check that a certificate is valid at an instant; `CertificateExpired` if it has expired, or is not valid yet."""
    if now > valid_until(certificate):
        raise CertificateExpired(
            f"certificate {serial_text(certificate)} of {_subject(certificate)} expired at "
            f"{instant.iso(valid_until(certificate))} (checked for {instant.iso(now)})"
        )
    if now < valid_from(certificate):
        raise CertificateExpired(
            f"certificate {serial_text(certificate)} of {_subject(certificate)} holds only from "
            f"{instant.iso(valid_from(certificate))} (checked for {instant.iso(now)})"
        )


def key_of(certificate: x509.Certificate) -> PublicKey:
    """Return the public key, of P-256; `SignatureInvalid` if it is of another kind, or unreadable."""
    try:
        key = certificate.public_key()
    except UNREADABLE as error:
        raise SignatureInvalid(f"certificate {serial_text(certificate)} has an unreadable key: {error}") from error
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    kind = key.curve.name if isinstance(key, ec.EllipticCurvePublicKey) else type(key).__name__
    raise SignatureInvalid(f"unsupported key: got {kind}, expected P-256")


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

    def check(self, der: bytes, now: Instant) -> CertifiedParty:
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
            certificate = load(der)
            issuer = check_issuer(certificate, self.ca_certificates)
            party = CertifiedParty(
                identity_of(certificate), role_of(certificate), key_of(certificate), certificate, issuer
            )
            if len(self._known) < CERTIFICATES_CHECKED_MAX:
                self._known[der] = party
        certificate = party.certificate
        check_validity(party.issuer, now)
        check_validity(certificate, now)
        if self.revoked(certificate):
            raise SignerUnknown(f"certificate {serial_text(certificate)} has been revoked")
        pinned = self.pins(party.name)
        if pinned is not None and not same_key(pinned, certificate):
            raise SignerUnknown(
                f"{party.name} signs with key {key_fingerprint(certificate)}, but {key_fingerprint(pinned)} is on file"
            )
        return party
