"""Revocations: a file where certificates are issued, and signed lists (RFC 5280, section 5) for all other parties.

The number of a list only grows, so an old list cannot cancel a revocation. A list states the end of its validity. An
expired list still revokes its certificates; its expiry is reported.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from ramp.errors import ConfigurationError, SignatureInvalid
from ramp.model.instant import Duration, Instant, from_datetime, from_iso, iso, to_datetime
from ramp.rfql.signing.certificates import UNREADABLE, PrivateKey
from ramp.runtime.atomic_writes import write_whole

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
            row["serial"]: Revocation(row["serial"], row["name"], from_iso(row["revoked_at"]), row["reason"])
            for row in rows
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"revocation list cannot be read: {error}", path=path) from error


def write_revocations(path: Path, lines: Iterable[Revocation]) -> None:
    """Write a file of revocations."""
    rows = [{**asdict(line), "revoked_at": iso(line.revoked_at)} for line in lines]
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
    """Return a signed revocation list in PEM.

    Args:
        lines: the revocations.
        number: greater than the number of every earlier list.
        issuer: key and certificate of the CA.
        now: the current time.
        lifetime: validity of the list.
    """
    key, ca = issuer
    builder = x509.CertificateRevocationListBuilder().issuer_name(ca.subject)
    builder = builder.last_update(_whole(now)).next_update(_whole(now + lifetime))
    builder = builder.add_extension(x509.CRLNumber(number), critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key())  # type: ignore[arg-type]
    builder = builder.add_extension(identifier, critical=False)
    for line in lines:
        revoked = x509.RevokedCertificateBuilder().serial_number(int(line.serial, 16))
        builder = builder.add_revoked_certificate(revoked.revocation_date(_whole(line.revoked_at)).build())
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


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
        revoked = {f"{each.serial_number:x}": from_datetime(each.revocation_date_utc) for each in found}
    except (x509.ExtensionNotFound, InvalidSignature, *UNREADABLE) as error:
        raise SignatureInvalid(f"not a revocation list: {error}") from error
    if not signed:
        raise SignatureInvalid("the revocation list is not signed by an authority of this market")
    return SignedList(number, from_datetime(expires), revoked, pem)


def _whole(instant: Instant) -> datetime.datetime:
    return to_datetime(instant).replace(microsecond=0)
