"""What makes a certificate of this market acceptable: whose it is, who issued it, when it holds, how strong its key is.

A party's identity is the URI `xmpp:name@domain` among the certificate's alternative names (RFC 5280 section 4.2.1.6,
RFC 5122). The market has one CA, or several while one is being replaced; there are no intermediate CAs.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ramp.errors import CertificateExpired, SignatureInvalid, SignerUnknown
from ramp.model import instant
from ramp.model.instant import Instant

IDENTITY_SCHEME = "xmpp:"
"""Scheme of the URI that names a party."""

RSA_BITS_MIN = 2048
"""Shortest RSA key accepted (NIST SP 800-131A)."""

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def identity_of(certificate: x509.Certificate) -> str:
    """Name of the party that a certificate is for.

    Raises:
        SignerUnknown: if it names none, or several.
    """
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError) as error:
        raise SignerUnknown(f"certificate {serial_text(certificate)} names no party: {error}") from error
    uris = [uri for uri in names.get_values_for_type(x509.UniformResourceIdentifier) if uri.startswith(IDENTITY_SCHEME)]
    if len(uris) != 1:
        raise SignerUnknown(
            f"certificate {serial_text(certificate)} names {len(uris)} parties; right would be one xmpp: URI"
        )
    return uris[0].removeprefix(IDENTITY_SCHEME)


def serial_text(certificate: x509.Certificate) -> str:
    """The serial number in hexadecimal."""
    return f"{certificate.serial_number:x}"


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 fingerprint of the certificate, in hexadecimal pairs."""
    return certificate.fingerprint(hashes.SHA256()).hex(":")


def key_fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 fingerprint of the public key: what a pin compares, so that a renewed certificate still fits."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(_public_key_bytes(certificate))
    return digest.finalize().hex(":")


def same_key(one: x509.Certificate, other: x509.Certificate) -> bool:
    """Whether two certificates are for the same public key."""
    return _public_key_bytes(one) == _public_key_bytes(other)


def _public_key_bytes(certificate: x509.Certificate) -> bytes:
    return certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def valid_from(certificate: x509.Certificate) -> Instant:
    """First instant of validity."""
    return instant.from_datetime(certificate.not_valid_before_utc)


def valid_until(certificate: x509.Certificate) -> Instant:
    """Last instant of validity."""
    return instant.from_datetime(certificate.not_valid_after_utc)


def check_issuer(certificate: x509.Certificate, ca_certificates: Sequence[x509.Certificate]) -> x509.Certificate:
    """Check that a CA of the market issued a certificate, for signing and not for issuing; return that CA's own.

    Raises:
        SignerUnknown: if not.
    """
    for ca in ca_certificates:
        if ca.subject != certificate.issuer:
            continue
        try:
            certificate.verify_directly_issued_by(ca)
        except (InvalidSignature, ValueError, TypeError):
            continue
        _check_purpose(certificate)
        return ca
    raise SignerUnknown(
        f"certificate {serial_text(certificate)} of {_subject(certificate)} was not issued by a CA of this market"
    )


def _check_purpose(certificate: x509.Certificate) -> None:
    extensions = certificate.extensions
    try:
        if extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            raise SignerUnknown(f"certificate {serial_text(certificate)} is a CA's own; parties sign with theirs")
    except x509.ExtensionNotFound:
        pass
    try:
        signs = extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature
    except x509.ExtensionNotFound:
        signs = False
    if not signs:
        raise SignerUnknown(
            f"certificate {serial_text(certificate)} is not for signing (no key usage digitalSignature)"
        )


def _subject(certificate: x509.Certificate) -> str:
    try:
        return certificate.subject.rfc4514_string()
    except ValueError:
        return "an unreadable subject"


def check_validity(certificate: x509.Certificate, now: Instant) -> None:
    """Check that a certificate holds at an instant.

    Raises:
        CertificateExpired: if it has expired, or does not hold yet.
    """
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


def check_key(certificate: x509.Certificate) -> None:
    """Check that the public key is strong: P-256, or RSA of at least 2048 bits.

    Raises:
        SignatureInvalid: if it is weaker or of another kind.
    """
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < RSA_BITS_MIN:
            raise SignatureInvalid(f"RSA key of {key.key_size} bits; right would be at least {RSA_BITS_MIN}")
    elif not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        kind = key.curve.name if isinstance(key, ec.EllipticCurvePublicKey) else type(key).__name__
        raise SignatureInvalid(f"key of kind {kind}; right would be P-256 or RSA")
