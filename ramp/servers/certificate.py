"""The TLS certificate of a local XMPP server, signed by an authority of its own that nobody else can use."""

from __future__ import annotations

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_DAYS = 5 * 365
"""Life of the certificate, in days."""

VALID_FROM = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
"""When it begins, whenever it is made: it is trusted because it lies in the state folder. One that began when it was
made would keep every agent out that starts after the clock was set back, and with it its owner's control socket."""

RENEW_BEFORE_DAYS = 30
"""A certificate with fewer days left is made anew when its server starts."""


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """Where the files are, all PEM.

    Attributes:
        ca_file: the authority; clients trust it and nothing else.
        certificate_file: the server's certificate.
        key_file: the server's key, readable by its owner only.
    """

    ca_file: Path
    certificate_file: Path
    key_file: Path


def ensure_server_certificate(directory: Path, domain: str) -> ServerCertificate:
    """Find or make the certificate of a server for a domain.

    The authority's key is thrown away once it has signed: with it, whoever reads the directory could pass for any
    server. (pyjabber signs with a key that everybody finds in its wheel.)

    Args:
        directory: where the files are kept; made if missing.
        domain: XMPP domain, e.g. `localhost`.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    files = ServerCertificate(directory / "ca.pem", directory / f"{domain}_cert.pem", directory / f"{domain}_key.pem")
    if not _still_good(files):
        _make(files, domain)
    return files


def _still_good(files: ServerCertificate) -> bool:
    if not all(path.is_file() for path in (files.ca_file, files.certificate_file, files.key_file)):
        return False
    try:
        authority = x509.load_pem_x509_certificate(files.ca_file.read_bytes())
        certificate = x509.load_pem_x509_certificate(files.certificate_file.read_bytes())
        certificate.verify_directly_issued_by(authority)
    except Exception:  # unreadable, or not of one piece (a crash while they were written): made anew
        return False
    limit = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=RENEW_BEFORE_DAYS)
    begins = max(authority.not_valid_before_utc, certificate.not_valid_before_utc)
    return certificate.not_valid_after_utc > limit and begins <= VALID_FROM


def _make(files: ServerCertificate, domain: str) -> None:
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"RAMP local XMPP authority for {domain}")])
    authority = (
        _builder(authority_name, authority_name, authority_key, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names: list[x509.GeneralName] = [x509.DNSName(domain), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = (
        _builder(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, domain)]), authority_name, server_key, authority_key
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    _write_private(
        files.key_file,
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
    files.certificate_file.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    files.ca_file.write_bytes(authority.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(VALID_FROM)
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _write_private(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)  # so that the mode below holds: an existing file would keep its own
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
