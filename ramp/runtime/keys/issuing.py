"""Creates keys and certificates (RFC 5280): the market's CA, and certificates for parties."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from ramp.errors import ConfigurationError
from ramp.model import instant
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.seal import Role
from ramp.rfql.signing import certificates
from ramp.rfql.signing.certificates import IDENTITY_SCHEME, PrivateKey, PublicKey

CLOCK_SKEW: Final[Duration] = 5 * MINUTE
"""Time from the start of validity to the issue of a certificate, because parties' clocks differ."""


def make_ca(market: str, now: Instant, lifetime: Duration) -> tuple[PrivateKey, x509.Certificate]:
    """Return key and self-signed certificate of a new CA.

    Args:
        market: the market's name; a random suffix distinguishes CAs of one market.
        now: the current time.
        lifetime: validity of the certificate.
    """
    key = new_key()
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"{market} CA {secrets.token_hex(4)}")])
    begins, usage = now - CLOCK_SKEW, key_usage(issues=True)
    return key, issued(subject, key.public_key(), (key, subject), begins, now + lifetime, usage)


def certify(
    name: str,
    key: PublicKey,
    issuer: tuple[PrivateKey, x509.Certificate],
    now: Instant,
    lifetime: Duration,
    role: Role,
) -> x509.Certificate:
    """Return a certificate for the key of a party.

    Args:
        name: name of the party.
        key: its public key.
        issuer: key and certificate of the CA.
        now: the current time.
        lifetime: validity, which ends with the CA's own at the latest.
        role: role of the party, in the subject's organizational unit (see `certificates.role_of`).
    """
    ca_key, ca = issuer
    # A common name holds 64 characters at most (RFC 5280); the identity is the URI.
    subject = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATIONAL_UNIT_NAME, role.value),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:64]),
        ]
    )
    begins, ends = now - CLOCK_SKEW, min(now + lifetime, certificates.valid_until(ca))
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"{IDENTITY_SCHEME}{name}")])
    usage = key_usage(issues=False, commits=True)
    return issued(subject, key, (ca_key, ca.subject), begins, ends, usage, names)


def certify_server(
    domain: str, key: PublicKey, issuer: tuple[PrivateKey, x509.Certificate], now: Instant, lifetime: Duration
) -> x509.Certificate:
    """Return a certificate for the XMPP server of a site, for clients and other servers.

    It names a domain and no party, so signatures with its key prove no statement of a party. The arguments are those of
    `certify`; `domain` is the site's.
    """
    ca_key, ca = issuer
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, domain[:64])])
    begins, ends = now - CLOCK_SKEW, min(now + lifetime, certificates.valid_until(ca))
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    names = x509.SubjectAlternativeName([x509.DNSName(domain)])
    usage = key_usage(issues=False)
    return issued(subject, key, (ca_key, ca.subject), begins, ends, usage, usages, names)


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key, P-256 as all keys that RAMP makes."""
    return ec.generate_private_key(ec.SECP256R1())


def issued(
    subject: x509.Name,
    key: PublicKey,
    issuer: tuple[PrivateKey, x509.Name],
    begins: Instant,
    ends: Instant,
    usage: x509.KeyUsage,
    *extensions: x509.ExtensionType,
) -> x509.Certificate:
    """Return a certificate with the parts that all our certificates have.

    Args:
        subject: owner of the key.
        key: the public key of the subject.
        issuer: key and name of the signer.
        begins: start of validity.
        ends: end of validity.
        usage: allowed uses of the key (`key_usage`); a key that signs certificates is that of a CA with no CA below it.
        extensions: further ones.
    """
    issuer_key, issuer_name = issuer
    authority = usage.key_cert_sign
    constraints = x509.BasicConstraints(ca=authority, path_length=0 if authority else None)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer_name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(instant.to_datetime(begins))
        .not_valid_after(instant.to_datetime(ends))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def key_usage(*, issues: bool, commits: bool = False) -> x509.KeyUsage:
    """Return allowed uses of a key: to sign certificates and revocation lists, or documents that commit its owner."""
    return x509.KeyUsage(
        digital_signature=not issues,
        content_commitment=commits,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=issues,
        crl_sign=issues,
        encipher_only=False,
        decipher_only=False,
    )


def read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Read a private key from a PEM file; `ConfigurationError` without one of P-256."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"not a private key in PEM: {error}", path=path) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigurationError("wrong kind of key: expected P-256", path=path)
    return key


def private_pem(key: PrivateKey) -> bytes:
    """Return a private key, unencrypted, as PEM text."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def identity_pem(key: PrivateKey, certificate: x509.Certificate) -> bytes:
    """Return private key and certificate, unencrypted, as one PEM text."""
    return private_pem(key) + certificate.public_bytes(serialization.Encoding.PEM)
