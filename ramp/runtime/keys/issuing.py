"""Creates keys, certificates and revocation lists (RFC 5280): the market's CA, certificates for parties, revocations.

Revocations are in a file where certificates are issued, and in signed lists (section 5) for all other parties. The
number of a list only grows, so an old list cannot cancel a revocation. A list states the end of its validity. An
expired list still revokes its certificates; its expiry is reported.
"""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from ramp.errors import ConfigurationError, SignatureInvalid
from ramp.model import instant
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.seal import Role
from ramp.rfql.signing import certificates
from ramp.rfql.signing.certificates import IDENTITY_SCHEME, UNREADABLE, PrivateKey, PublicKey
from ramp.runtime.atomic_writes import write_whole

CLOCK_SKEW: Final[Duration] = 5 * MINUTE
"""Time from the start of validity to the issue of a certificate, because parties' clocks differ."""


def make_ca(market: str, now: Instant, lifetime: Duration) -> tuple[PrivateKey, x509.Certificate]:
    """Return key and self-signed certificate of a new CA; a random suffix distinguishes CAs of one market."""
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
    """Return a certificate for the key of a party, by the key and certificate of a CA.

    Its validity ends with the CA's own at the latest. The role is in the subject's organizational unit
    (`certificates.role_of`).
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
    """Return a certificate with the parts that all our certificates have, and further extensions.

    A key that by its usage (`key_usage`) signs certificates is that of a CA with no CA below it.
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


LIST_BYTES_MAX = 60_000
"""Maximum length of a list in characters of PEM: some 1 000 certificates, the maximum of a stanza."""


@dataclass(frozen=True, slots=True)
class Revocation:
    """A revoked certificate: serial number in hexadecimal, party, time and reason."""

    serial: str
    name: str
    revoked_at: Instant
    reason: str


def read_revocations(path: Path) -> dict[str, Revocation]:
    """Return all revocations of a file in order, by serial number.

    Raises:
        ConfigurationError: the file is damaged; it must not count as an empty list.
    """
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
        return {
            row["serial"]: Revocation(row["serial"], row["name"], instant.from_iso(row["revoked_at"]), row["reason"])
            for row in rows
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"revocation list cannot be read: {error}", path=path) from error


def write_revocations(path: Path, lines: Iterable[Revocation]) -> None:
    """Write a file of revocations."""
    rows = [{**asdict(line), "revoked_at": instant.iso(line.revoked_at)} for line in lines]
    write_whole(path, (json.dumps(rows, indent=1) + "\n").encode(), private=False)


@dataclass(frozen=True, slots=True)
class SignedList:
    """A revocation list with a valid signature.

    Attributes:
        number: increases with every list.
        expires_at: end of validity.
        revoked_at: time of revocation by serial number in hexadecimal.
        pem: the list as text.
    """

    number: int
    expires_at: Instant
    revoked_at: dict[str, Instant]
    pem: str


def sign_list(
    lines: Iterable[Revocation],
    number: int,
    issuer: tuple[PrivateKey, x509.Certificate],
    now: Instant,
    lifetime: Duration,
) -> str:
    """Return a signed revocation list in PEM; its number must be greater than that of every earlier list."""
    key, ca = issuer
    builder = x509.CertificateRevocationListBuilder().issuer_name(ca.subject)
    builder = builder.last_update(_whole(now)).next_update(_whole(now + lifetime))
    builder = builder.add_extension(x509.CRLNumber(number), critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key())  # type: ignore[arg-type]
    builder = builder.add_extension(identifier, critical=False)
    for line in lines:
        revoked = x509.RevokedCertificateBuilder().serial_number(int(line.serial, 16))
        builder = builder.add_revoked_certificate(revoked.revocation_date(_whole(line.revoked_at)).build())
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def read_list(pem: str, ca_certificates: Sequence[x509.Certificate]) -> SignedList:
    """Read a revocation list signed by an authority of the market; `SignatureInvalid` otherwise."""
    if len(pem) > LIST_BYTES_MAX:
        raise SignatureInvalid(
            f"revocation list too long: got {len(pem)} characters, expected at most {LIST_BYTES_MAX}"
        )
    try:
        found = x509.load_pem_x509_crl(pem.encode())
        number = found.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
        expires = found.next_update_utc
        if expires is None:
            raise ValueError("it has no end of validity")
        signed = any(
            ca.subject == found.issuer and found.is_signature_valid(ca.public_key())  # type: ignore[arg-type]
            for ca in ca_certificates
        )
        revoked = {f"{each.serial_number:x}": instant.from_datetime(each.revocation_date_utc) for each in found}
    except (x509.ExtensionNotFound, InvalidSignature, *UNREADABLE) as error:
        raise SignatureInvalid(f"not a revocation list: {error}") from error
    if not signed:
        raise SignatureInvalid("the revocation list is not signed by an authority of this market")
    return SignedList(number, instant.from_datetime(expires), revoked, pem)


def _whole(moment: Instant) -> datetime.datetime:
    return instant.to_datetime(moment).replace(microsecond=0)
