"""The TLS certificate of a local XMPP server, signed by an authority whose key is discarded."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ramp.model.instant import DAY, from_datetime
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.keys.issuing import issued, key_usage, private_pem

VALID_DAYS = 5 * 365
"""Validity of a new certificate in days from now."""

VALID_FROM = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
"""Start of the validity. A certificate that was valid only from its creation would lock out agents that start after the
clock was set back. An early start is safe, because agents trust the certificate for its place in the state folder."""

RENEW_BEFORE_DAYS = 30
"""A certificate with fewer days left is replaced at the start of its server."""


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """Paths of the certificate's files, all in PEM format.

    Attributes:
        ca_file: the authority, the only one that clients trust.
        certificate_file: the server's certificate.
        key_file: the server's key, readable by its owner only.
    """

    ca_file: Path
    certificate_file: Path
    key_file: Path


def ensure_server_certificate(directory: Path, domain: str) -> ServerCertificate:
    """Find or create the certificate of a server for a domain.

    The authority's key is discarded after signing; with it, any reader of the directory could impersonate a server.

    Args:
        directory: directory of the files; created if missing.
        domain: XMPP domain, for example `localhost`.
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
    except Exception:  # unreadable or inconsistent, for example after a crash: replaced
        return False
    limit = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=RENEW_BEFORE_DAYS)
    return certificate.not_valid_after_utc > limit


def _make(files: ServerCertificate, domain: str) -> None:
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"RAMP local XMPP authority for {domain}")])
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, domain)])
    begins = from_datetime(VALID_FROM)
    ends = from_datetime(datetime.datetime.now(datetime.UTC)) + VALID_DAYS * DAY
    issuer = authority_key, authority_name
    authority = issued(authority_name, authority_key.public_key(), issuer, begins, ends, key_usage(issues=True))
    names = x509.SubjectAlternativeName([x509.DNSName(domain), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    usage = key_usage(issues=False)
    server = issued(server_name, server_key.public_key(), issuer, begins, ends, usage, usages, names)
    write_whole(files.key_file, private_pem(server_key), private=True)
    write_whole(files.certificate_file, server.public_bytes(Encoding.PEM), private=False)
    write_whole(files.ca_file, authority.public_bytes(Encoding.PEM), private=False)
