"""The notary of a real party: signs in its name, and checks every signature of what others signed.

Two forms (paper sections 5.1.1 step 8 and 5.1.2 step 1): the user signs an Agreement or Cancellation; the resource puts
that, signature and all, into the countersigned form and signs the whole. An AccountQuery has one signature only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from lxml import etree

from ramp.errors import SchemaViolation, SignatureInvalid, SignerUnknown
from ramp.model.agreement import AccountQuery, Signable, Signed
from ramp.model.instant import Instant
from ramp.rfql import agreements, certificates, schema
from ramp.rfql.certificates import PrivateKey
from ramp.rfql.parser import Element, parse_wire
from ramp.rfql.record import INSTANT
from ramp.rfql.signature import check_profile, sign_text, signature_of, verify_bytes

CERTIFICATES_CHECKED_MAX: Final = 4096
"""Certificates remembered as issued by the CA; a market's parties are far fewer."""


def no_pin(_name: str) -> x509.Certificate | None:
    """Pins of a party that keeps none: the CA's word is enough."""
    return None


def none_revoked(_certificate: x509.Certificate) -> bool:
    """The empty revocation list."""
    return False


@dataclass(frozen=True, slots=True)
class VerifiedSignature:
    """One signature that holds.

    Attributes:
        signer: the party, as the certificate names it and the document expects it.
        certificate: the signer's certificate.
        signed_at: the signer's clock as signed, where the document says it.
    """

    signer: str
    certificate: x509.Certificate
    signed_at: Instant


@dataclass(frozen=True, slots=True)
class Verified:
    """A document all of whose signatures hold: what they cover, and whose they are (innermost first)."""

    body: Signable
    signatures: tuple[VerifiedSignature, ...]


@dataclass(slots=True)
class Trust:
    """Whom a party trusts.

    Attributes:
        ca_certificates: the market's CAs.
        pins: certificate on file for a party's name, or None where none is on file; its key must be the signer's.
        revoked: whether a certificate has been revoked.
    """

    ca_certificates: Sequence[x509.Certificate]
    pins: Callable[[str], x509.Certificate | None] = no_pin
    revoked: Callable[[x509.Certificate], bool] = none_revoked
    _known: dict[x509.Certificate, tuple[x509.Certificate, str]] = field(default_factory=dict)

    def check(self, certificate: x509.Certificate, now: Instant) -> str:
        """Check a signer's certificate and return the party it is for.

        Raises:
            SignerUnknown: not of this market, revoked, not the key on file, or out of its time.
            SignatureInvalid: too weak a key.
        """
        known = self._known.get(certificate)
        if known is None:
            issuer = certificates.check_issuer(certificate, self.ca_certificates)
            certificates.check_key(certificate)
            known = issuer, certificates.identity_of(certificate)
            if len(self._known) < CERTIFICATES_CHECKED_MAX:
                self._known[certificate] = known
        issuer, name = known
        certificates.check_validity(issuer, now)
        certificates.check_validity(certificate, now)
        if self.revoked(certificate):
            raise SignerUnknown(f"certificate {certificates.serial_text(certificate)} has been revoked")
        pinned = self.pins(name)
        if pinned is not None and not certificates.same_key(pinned, certificate):
            raise SignerUnknown(
                f"{name} signs with key {certificates.key_fingerprint(certificate)}, "
                f"but {certificates.key_fingerprint(pinned)} is on file"
            )
        return name


def verify_document(document: str, trust: Trust, now: Instant, passed: list[str] | None = None) -> Verified:
    """Check every signature of a document and read what they cover.

    Args:
        document: the XML text.
        trust: whom to trust.
        now: the time for which certificates must hold.
        passed: takes a sentence for every check that has passed, for reports.

    Raises:
        DocumentError: if anything about document or signatures is not right.
    """
    told = passed if passed is not None else []
    root = parse_wire(document)
    if root.tag not in agreements.KIND_OF:
        raise SchemaViolation(f"root element {root.tag} is no signable document")
    told.append(f"well-formed {etree.QName(root).localname}, no forbidden markup, {len(document)} characters")
    inner_tag = agreements.COUNTERSIGNED.get(str(root.tag))
    if inner_tag is None:
        content, outer_name, outer = _verify_level(root, document.encode(), 1, trust, now, told)
        schema.check(content)
        body = agreements.read_body(content)
        signer = body.account if isinstance(body, AccountQuery) else body.user
        _check_party(outer_name, signer, told)
        return Verified(body, (VerifiedSignature(outer_name, outer, body.issued_at),))
    content, outer_name, outer = _verify_level(root, document.encode(), 2, trust, now, told)
    schema.check(content)
    told.append("follows the schema")
    inner_element = content.find(inner_tag)
    assert inner_element is not None, "the schema requires it"
    inner_bytes = etree.tostring(inner_element, with_tail=False)
    inner_content, inner_name, inner = _verify_level(inner_element, inner_bytes, 1, trust, now, told)
    body = agreements.read_body(inner_content)
    assert not isinstance(body, AccountQuery), "not among the countersigned forms"
    told.append("request, offer and cost agree with one another")
    _check_party(inner_name, body.user, told)
    _check_party(outer_name, body.resource, told)
    return Verified(
        body,
        (
            VerifiedSignature(inner_name, inner, body.issued_at),
            VerifiedSignature(outer_name, outer, INSTANT.read(content.get("countersignedAt", ""))),
        ),
    )


def _verify_level(
    element: Element, document: bytes, levels: int, trust: Trust, now: Instant, told: list[str]
) -> tuple[Element, str, x509.Certificate]:
    parts = check_profile(signature_of(element, levels))
    name = trust.check(parts.certificate, now)
    told.append(
        f"certificate {certificates.serial_text(parts.certificate)} of {name}: of this market, valid, not revoked"
    )
    content = verify_bytes(document, parts, now)
    assert content.tag == element.tag, "URI='' covers the whole document"
    told.append(f"signature of {name} over the whole {etree.QName(element).localname} ({parts.method.name})")
    return content, name, parts.certificate


def _check_party(signer: str, party: str, told: list[str]) -> None:
    if signer != party:
        raise SignerUnknown(f"signed by {signer!r}; right would be {party!r}, whom the document names")
    told.append(f"{signer} is the party that the document names")


class XmlNotary:
    """`ramp.model.ports.Notary` with XML signatures and X.509 certificates.

    Args:
        name: the party in whose name it signs.
        key: that party's private key.
        certificate: its certificate, from the market's CA.
        ca_certificates: the market's CAs.
        pins: certificate on file for another party, or None.
        revoked: whether a certificate has been revoked.

    Raises:
        SignerUnknown: if the certificate is another party's.
        SignatureInvalid: if the key is too weak or is not the certificate's.
    """

    def __init__(
        self,
        name: str,
        key: PrivateKey,
        certificate: x509.Certificate,
        ca_certificates: Sequence[x509.Certificate],
        pins: Callable[[str], x509.Certificate | None] = no_pin,
        revoked: Callable[[x509.Certificate], bool] = none_revoked,
    ) -> None:
        certificates.check_key(certificate)
        owner = certificates.identity_of(certificate)
        if owner != name:
            raise SignerUnknown(f"the certificate is for {owner!r}; right would be one for {name!r}")
        if certificate.public_key() != key.public_key():
            raise SignatureInvalid(f"the private key of {name!r} does not belong to its certificate")
        self.name = name
        self._key = key
        self._certificate = certificate
        self._trust = Trust(ca_certificates, pins, revoked)

    def sign(self, signed: Signed, now: Instant) -> Signed:
        """Add this party's signature as the outermost one; fills `signers` and `document`.

        Raises:
            SignatureInvalid: if this party has nothing to sign there.
            CertificateExpired: if its own certificate does not hold now, so that nobody would accept the signature.
        """
        body = signed.body
        if not signed.signers:
            party = body.account if isinstance(body, AccountQuery) else body.user
            document = agreements.write_body(body)
        elif len(signed.signers) == 1 and not isinstance(body, AccountQuery):
            party = body.resource
            document = agreements.wrap(signed.document, body, now)
        else:
            raise SignatureInvalid(f"signed by {', '.join(signed.signers)} already; nobody else signs it")
        if party != self.name:
            raise SignatureInvalid(f"{self.name} may not sign for {party}")
        certificates.check_validity(self._certificate, now)
        text = sign_text(document, self._key, self._certificate)
        return Signed(body=body, signers=(*signed.signers, self.name), document=text)

    def verify(self, document: str, now: Instant) -> Signed:
        """Check every signature of a document and return what they cover.

        Raises:
            DocumentError: if anything about document or signatures is not right.
        """
        verified = verify_document(document, self._trust, now)
        signers = tuple(signature.signer for signature in verified.signatures)
        return Signed(body=verified.body, signers=signers, document=document)
