"""What is said of a signed document that does not verify."""

from __future__ import annotations

from ramp.errors import CertificateExpired, DocumentError, SealInvalid, SignatureInvalid, SignerUnknown
from ramp.model import contents
from ramp.rfql import agreements
from ramp.rfql.xml.parser import Element, parse_wire
from ramp.text import IDENTIFIER


def claimed_by(document: str) -> str:
    """Return the agreement id that a signed document claims, unverified; may be empty."""
    try:
        return claimed_reference(parse_wire(document))
    except DocumentError:
        return ""


def claimed_reference(root: Element) -> str:
    """Return the agreement id that an unverified document claims, for the answer only; may be empty."""
    body = next(iter(root.iterchildren(*agreements.COUNTERSIGNED.values())), root)
    claimed = body.get("agreementId", "")
    return claimed if IDENTIFIER.fullmatch(claimed) else ""


def unverified(kind: str, reference: str, error: DocumentError) -> contents.Unverified:
    """Return the replacement of a signed content whose signatures do not hold."""
    return contents.Unverified(kind=kind, reference=reference, code=refusal_code(error), detail=error.reason)


def refusal_code(error: DocumentError) -> str:
    """Return the code of `contents.Unverified` for an error of a signed document."""
    if isinstance(error, CertificateExpired):
        return "certificate_expired"
    if isinstance(error, SignerUnknown):
        return "unknown_signer"
    return "bad_signature" if isinstance(error, SignatureInvalid | SealInvalid) else "malformed"
