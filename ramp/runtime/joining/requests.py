"""Requests of invited parties for certificates: PKCS #10 (RFC 2986), with a proof of holding the invitation.

The private key stays with its party. The proof is an HMAC with the invitation's secret over a transcript of the whole
request, so a request fits one invitation, one market and its keys only.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import asdict
from typing import Final, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from ramp.errors import ConfigurationError, EnrolmentRefused
from ramp.model.contents import EnrolmentGranted, EnrolmentRequest
from ramp.options import read_options
from ramp.rfql.signing.certificates import (
    IDENTITY_SCHEME,
    UNREADABLE,
    PrivateKey,
    PublicKey,
)
from ramp.runtime.joining.invitations import Invitation, proof

VERSION: Final = 1
REQUEST_BYTES_MAX: Final = 8_192
"""Maximum size of a request in bytes of DER; one of this program has about 300."""

_TRANSCRIPT: Final = "RAMP enrolment 1"
_Contents = TypeVar("_Contents", EnrolmentRequest, EnrolmentGranted)


def make_request(invitation: Invitation, key: PrivateKey, server_key: PrivateKey | None) -> EnrolmentRequest:
    """Return the request of an invited party; `server_key` is None if no server needs a certificate."""
    uri, domain = x509.UniformResourceIdentifier(f"{IDENTITY_SCHEME}{invitation.name}"), invitation.domain
    request = _signing_request(invitation.name, uri, key)
    server = b"" if server_key is None else _signing_request(domain, x509.DNSName(domain), server_key)
    packed, packed_server = base64.b64encode(request).decode(), base64.b64encode(server).decode()
    said = proof(invitation.secret, _transcript(invitation, request, server))
    return EnrolmentRequest(invitation.invitation_id, packed, said, packed_server)


def check_request(invitation: Invitation, asked: EnrolmentRequest) -> tuple[PublicKey, ...]:
    """Check that the sender of a request holds the invitation and asks for no more than it promises.

    Returns:
        The public key of the party, and that of the site's server if it needs a certificate.

    Raises:
        EnrolmentRefused: with the code `forged`, `bad_request`, `other_name` or `no_server`.
    """
    try:
        request = base64.b64decode(asked.request, validate=True)
        server = base64.b64decode(asked.server_request, validate=True)
    except binascii.Error as error:
        raise EnrolmentRefused("bad_request", f"the request is not base64: {error}") from error
    if not hmac.compare_digest(proof(invitation.secret, _transcript(invitation, request, server)), asked.proof.lower()):
        raise EnrolmentRefused(
            "forged", "the request does not prove possession of the invitation, or was changed on its way"
        )
    identity = x509.UniformResourceIdentifier(f"{IDENTITY_SCHEME}{invitation.name}")
    key = _checked(request, identity)
    if not server:
        return (key,)
    if not invitation.certifies_server:
        raise EnrolmentRefused("no_server", f"the invitation does not certify a server of {invitation.domain}")
    return key, _checked(server, x509.DNSName(invitation.domain))


def contents_text(contents: EnrolmentRequest | EnrolmentGranted) -> str:
    """Write a request or issued certificates as a JSON file."""
    return json.dumps({"version": VERSION, **asdict(contents)}, indent=1) + "\n"


def read_request(text: str, source: str) -> EnrolmentRequest:
    """Read a request's file; `ConfigurationError` if it is invalid."""
    return _read(text, source, EnrolmentRequest, "`ramp join INVITATION --request FILE`")


def read_issued(text: str, source: str) -> EnrolmentGranted:
    """Read a file of issued certificates; `ConfigurationError` if it is invalid."""
    return _read(text, source, EnrolmentGranted, "`ramp invite sign REQUEST`")


def _read(text: str, source: str, kind: type[_Contents], writer: str) -> _Contents:
    try:
        plain = json.loads(text)
    except ValueError:
        plain = None
    version = plain.pop("version", None) if isinstance(plain, dict) else None
    if version != VERSION:
        right = f"a JSON object of version {VERSION}"
        raise ConfigurationError(f"not a file written by {writer}: expected {right}", path=source)
    return read_options(plain, kind, source=source)


def _transcript(invitation: Invitation, request: bytes, server_request: bytes) -> bytes:
    lines = (
        _TRANSCRIPT,
        invitation.invitation_id,
        invitation.market,
        invitation.ca_fingerprint,
        invitation.name,
        invitation.role.value,
        hashlib.sha256(request).hexdigest(),
        hashlib.sha256(server_request).hexdigest() if server_request else "",
    )
    return "\n".join(lines).encode()


def _signing_request(name: str, identity: x509.GeneralName, key: PrivateKey) -> bytes:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:64])])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    builder = builder.add_extension(x509.SubjectAlternativeName([identity]), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def _checked(der: bytes, identity: x509.GeneralName) -> PublicKey:
    if len(der) > REQUEST_BYTES_MAX:
        raise EnrolmentRefused(
            "bad_request", f"request too long: got {len(der)} bytes, expected at most {REQUEST_BYTES_MAX}"
        )
    try:
        request = x509.load_der_x509_csr(der)
        if not request.is_signature_valid:
            raise ValueError("it is not signed with its own key")
        names = list(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
        key = request.public_key()
    except (x509.ExtensionNotFound, *UNREADABLE) as error:
        raise EnrolmentRefused("bad_request", f"not a certificate request: {error}") from error
    if names != [identity]:
        shown = ", ".join(str(name.value) for name in names)[:200]
        raise EnrolmentRefused("other_name", f"it asks for {shown}; the invitation is for {identity.value}")
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise EnrolmentRefused("bad_request", "wrong kind of key: expected P-256")
    return key
