"""The notary of a real party: signs and seals in its name, and checks every signature and seal of others.

Documents that people keep have XML signatures in two forms (paper sections 5.1.1 step 8 and 5.1.2 step 1): the user
signs an Agreement or a ContractChange; the resource puts that, signature and all, into the countersigned form and signs
the whole. A resource that has failed signs alone. All other messages that create an obligation are sealed
(`ramp.rfql.signing.seals`).

The market's narrow profile of W3C XML Signature 1.1 (through signxml): enveloped, the whole document (URI=""),
exclusive canonicalisation, ECDSA with P-256, SHA-256 throughout, only one X.509 certificate in the key info. A check
returns only the tree that was rebuilt from the signed bytes, so that callers read signed content only (against
signature wrapping).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding
from lxml import etree
from signxml import (
    CanonicalizationMethod,
    DigestAlgorithm,
    SignatureConfiguration,
    SignatureMethod,
    XMLSigner,
    XMLVerifier,
)
from signxml.exceptions import SignXMLException

from ramp.errors import DocumentError, SealInvalid, SignatureInvalid, SignerUnknown
from ramp.model import instant
from ramp.model.acl import ANY_AGE, ROLES_OF, Message
from ramp.model.agreement import Agreement, Signable, Signed
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.seal import Role, Seal
from ramp.rfql import documents
from ramp.rfql.record import INSTANT, NO_PROOFS
from ramp.rfql.signing import certificates, seals
from ramp.rfql.signing.certificates import CERTIFICATE_BYTES_MAX, UNREADABLE, CertifiedParty, PrivateKey, Trust
from ramp.rfql.xml import schema
from ramp.rfql.xml.namespaces import SIGNATURE
from ramp.rfql.xml.parser import Element, check_size, parse_wire, root_name

EXCLUSIVE: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"
ENVELOPED: Final = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
SHA256: Final = "http://www.w3.org/2001/04/xmlenc#sha256"
METHOD: Final = SignatureMethod.ECDSA_SHA256
TAG: Final = f"{{{SIGNATURE}}}Signature"


def sign_text(document: str, key: PrivateKey, certificate: x509.Certificate) -> str:
    """Sign a whole document and return it; the signature becomes the root's last child."""
    signer = XMLSigner(
        signature_algorithm=METHOD,
        digest_algorithm=DigestAlgorithm.SHA256,
        c14n_algorithm=CanonicalizationMethod.EXCLUSIVE_XML_CANONICALIZATION_1_0,
    )
    signed = signer.sign(parse_wire(document), key=key, cert=[certificate])
    text: str = etree.tostring(signed, encoding="unicode")
    return text


def signature_of(root: Element, levels: int) -> Element:
    """Return the one signature over a root: its last child; the document's other signatures are those of inner levels.

    Raises:
        SignatureInvalid: if there are more or fewer, or it is elsewhere.
    """
    everywhere = list(root.iter(TAG))
    if len(everywhere) != levels:
        raise SignatureInvalid(f"wrong number of signatures: got {len(everywhere)}, expected {levels}")
    # Exactly one over the root itself, so that the one checked here is the one that gets verified.
    if len(root) == 0 or root[-1].tag != TAG or len(list(root.iterchildren(TAG))) != 1:
        raise SignatureInvalid(f"expected exactly one signature, as the last child of {etree.QName(root).localname}")
    return root[-1]


def check_profile(signature: Element) -> bytes:
    """Check a signature's form against the profile, and return the signer's certificate in it, in DER, unread.

    Raises:
        SignatureInvalid: naming the part that is not allowed.
    """
    info, _, key_info = _children(signature, "SignedInfo", "SignatureValue", "KeyInfo")
    canonical, method, reference = _children(info, "CanonicalizationMethod", "SignatureMethod", "Reference")
    transforms, digest, _ = _children(reference, "Transforms", "DigestMethod", "DigestValue")
    steps = _children(transforms, "Transform", "Transform")
    _algorithm(canonical, EXCLUSIVE)
    _algorithm(method, METHOD.value)
    _algorithm(digest, SHA256)
    for step, algorithm in zip(steps, (ENVELOPED, EXCLUSIVE), strict=True):
        _algorithm(step, algorithm)
    if reference.items() != [("URI", "")]:
        raise SignatureInvalid("the Reference must cover the whole document (URI='' and no other attribute)")
    (data,) = _children(key_info, "X509Data")
    (text,) = _children(data, "X509Certificate")
    encoded = text.text or ""
    if len(encoded) > 2 * CERTIFICATE_BYTES_MAX:
        raise SignatureInvalid(f"X509Certificate too long: got {len(encoded)} characters")
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except ValueError as error:
        raise SignatureInvalid(f"X509Certificate is no certificate: {error}") from error


def _children(parent: Element, *names: str) -> list[Element]:
    found = list(parent)
    tags = [str(child.tag) for child in found]
    if tags != [f"{{{SIGNATURE}}}{name}" for name in names]:
        shown = ", ".join(tag.rpartition("}")[2] for tag in tags) or "nothing"
        where = etree.QName(parent).localname
        raise SignatureInvalid(f"wrong content of {where}: got {shown}, expected {', '.join(names)}")
    if parent.attrib and not names[0].startswith("Transforms"):
        raise SignatureInvalid(f"{etree.QName(parent).localname} must have no attributes")
    return found


def _algorithm(element: Element, expected: str) -> None:
    algorithm = element.get("Algorithm", "")
    if algorithm != expected or len(element.attrib) != 1 or len(element) != 0:
        name = etree.QName(element).localname
        raise SignatureInvalid(f"unaccepted {name}: got {algorithm!r}, expected {expected}")


def verify_bytes(document: bytes, certificate: x509.Certificate, now: Instant) -> Element:
    """Verify the signature over a whole document with the certificate in it, and return the signed element.

    The notary first decides whether to trust that certificate. The element is rebuilt from the signed bytes, without
    the signature.

    Args:
        document: the document with its signature as the root's child.
        certificate: the signer's, from the signature.
        now: when the certificate must hold.

    Raises:
        SignatureInvalid: if the signature or digest does not fit.
    """
    config = SignatureConfiguration(
        require_x509=True,
        location="./",
        expect_references=1,
        signature_methods=frozenset({METHOD}),
        digest_algorithms=frozenset({DigestAlgorithm.SHA256}),
        verification_time=instant.to_datetime(now),
    )
    try:
        result = XMLVerifier().verify(document, x509_cert=certificate, expect_config=config)
    except (SignXMLException, etree.LxmlError, InvalidSignature, OverflowError, *UNREADABLE) as error:
        raise SignatureInvalid(f"the signature does not verify: {error}") from error
    signed: Element | None = result.signed_xml
    if signed is None:
        raise SignatureInvalid("the signature does not cover an XML element")
    return signed


CLOCK_SKEW: Final[Duration] = 5 * MINUTE
"""Maximum lead of a signer's clock; certificates reach back as far before their issue."""


@dataclass(frozen=True, slots=True)
class VerifiedSignature:
    """One signature that holds.

    Attributes:
        signer: the party, as the certificate names it and the document expects it.
        role: its certified role.
        certificate: the signer's certificate.
        signed_at: the signer's clock as signed, if the document says it.
    """

    signer: str
    role: Role
    certificate: x509.Certificate
    signed_at: Instant


@dataclass(frozen=True, slots=True)
class Verified:
    """A document with valid signatures: its signed content, and the signatures, innermost first."""

    body: Signable
    signatures: tuple[VerifiedSignature, ...]


def _signature(party: CertifiedParty, signed_at: Instant) -> VerifiedSignature:
    return VerifiedSignature(party.name, party.role, party.certificate, signed_at)


class PublicNotary:
    """Checks signatures and seals, makes none; `passed` takes a sentence for every check that has passed."""

    def __init__(self, trust: Trust, passed: list[str] | None = None) -> None:
        self._trust = trust
        self._passed = passed

    def _tell(self, sentence: str) -> None:
        if self._passed is not None:
            self._passed.append(sentence)

    def verify(self, document: str, now: Instant) -> Signed:
        """Check every signature of a document and return the signed content; errors as of `verified`."""
        verified = self.verified(document, now)
        signers = tuple(signature.signer for signature in verified.signatures)
        return Signed(body=verified.body, signers=signers, document=document)

    def verified(self, document: str, now: Instant) -> Verified:
        """Check every signature of a document and read the signed content.

        Args:
            document: the XML text.
            now: the time for which certificates must hold.

        Raises:
            DocumentError: if document or signatures are invalid.
        """
        proofs = replace(NO_PROOFS, open=lambda text: self.open(text, now))
        root = parse_wire(document)
        if root.tag not in documents.SIGNABLE:
            raise DocumentError(f"root element {root.tag} is no signable document")
        self._tell(f"well-formed {etree.QName(root).localname}, no forbidden markup, {len(document)} characters")
        inner_tag = documents.COUNTERSIGNED.get(str(root.tag))
        content, outer = self._verify_level(root, document.encode(), 1 if inner_tag is None else 2, now)
        schema.check(content)
        if inner_tag is None:
            body = documents.read_body(content, proofs)
            signer = Signed(body).next_signer
            self._check_party(outer, signer, Role.USER if signer == body.user else Role.RESOURCE)
            return Verified(body, (_signature(outer, body.issued_at),))
        self._tell("follows the schema")
        inner_element = content.find(inner_tag)
        assert inner_element is not None, "the schema requires it"
        inner_content, inner = self._verify_level(inner_element, etree.tostring(inner_element, with_tail=False), 1, now)
        body = documents.read_body(inner_content, proofs)
        if isinstance(body, Agreement):
            self._tell("request, offer and cost agree with one another")
        elif body.is_failure:
            raise DocumentError(f"{body.resource} alone signs that it has failed")
        self._check_party(inner, body.user, Role.USER)
        self._check_party(outer, body.resource, Role.RESOURCE)
        try:
            countersigned_at: Instant = INSTANT.read(str(content.attrib["countersignedAt"]))
        except ValueError as error:
            raise DocumentError(f"countersignedAt: {error}") from error
        return Verified(body, (_signature(inner, body.issued_at), _signature(outer, countersigned_at)))

    def _verify_level(
        self, element: Element, document: bytes, levels: int, now: Instant
    ) -> tuple[Element, CertifiedParty]:
        party = self._trust.check(check_profile(signature_of(element, levels)), now)
        serial = certificates.serial_text(party.certificate)
        self._tell(f"certificate {serial} of {party.name}: {self._trust.standing()}")
        content = verify_bytes(document, party.certificate, now)
        assert content.tag == element.tag, "URI='' covers the whole document"
        self._tell(f"signature of {party.name} over the whole {etree.QName(element).localname} ({METHOD.name})")
        return content, party

    def _check_party(self, signer: CertifiedParty, party: str, role: Role) -> None:
        if signer.name != party:
            raise SignerUnknown(f"wrong signer: got {signer.name!r}, expected {party!r}, whom the document names")
        if signer.role is not role:
            raise SignerUnknown(f"{party} signs with a wrong certificate: got role {signer.role}, expected {role}")
        self._tell(f"{party} is the party that the document names, certified as {role}")

    def open(self, text: str, now: Instant) -> Message:
        """Read a sealed message, as it has arrived, or as it was kept or passed on.

        Args:
            text: the sealed message (`ramp.rfql.signing.seals`).
            now: the time for which certificates must hold; no seal may be later. Contents in `ramp.model.acl.ANY_AGE`
                are judged by their own time instead.

        Raises:
            SealInvalid: if the seal is not its sender's, or not for such a document.
            DocumentError: if the seal holds, but its document is invalid.
        """
        sealed = seals.parse(text)
        signed_at = sealed.moment()
        kind = documents.content_named(sealed.document)
        # our clock may be wrong, so messages that report the time are judged by the time that they state
        signer = self._check_seal(sealed, signed_at, signed_at if kind in ANY_AGE else now)
        if kind is None or root_name(sealed.body) != sealed.document:
            raise SealInvalid(f"the seal names a {sealed.document or 'nameless document'} but covers another document")
        check_role(signer.role, kind, sealed.sender)
        performative = seals.read_performative(sealed.performative)
        content = documents.read_content(sealed.body, self, now, f"{performative} of {sealed.sender}")
        seal = Seal(signer.name, signer.role, sealed.receiver, sealed.conversation_id, signed_at, text)
        message = seals.message_of(sealed, kind, content, seal)
        self._tell(f"{sealed.document} goes with {performative}, and {signer.role} is the role to say it in")
        return message

    def _check_seal(self, sealed: seals.SealedText, signed_at: Instant, now: Instant) -> CertifiedParty:
        try:
            signer = self._trust.check(sealed.certificate_bytes(), now)
        except SealInvalid:
            raise
        except DocumentError as error:
            raise SealInvalid(error.reason) from error
        serial = certificates.serial_text(signer.certificate)
        self._tell(f"certificate {serial} of {signer.name} as {signer.role}: {self._trust.standing()}")
        if signer.name != sealed.sender:
            raise SealInvalid(f"wrong signer of the seal: got {signer.name!r}, expected the sender {sealed.sender!r}")
        sealed.check_signature(signer.key)
        self._tell(f"seal of {signer.name} over the whole message, {len(sealed.body)} characters of document")
        if signed_at > now + CLOCK_SKEW:
            raise SealInvalid(f"signed at {sealed.signed_at}, which is in the future")
        return signer


def check_role(role: Role, kind: type, who: str) -> None:
    """Check that a role may send a content.

    Raises:
        SealInvalid: if not.
    """
    allowed = ROLES_OF.get(kind)
    if allowed is not None and role not in allowed:
        right = " or ".join(sorted(allowed))
        raise SealInvalid(f"wrong role of {who} for a {kind.__name__}: got {role}, expected {right}")


class XmlNotary(PublicNotary):
    """`ramp.model.ports.Notary` with XML signatures, detached signatures and X.509 certificates.

    Args:
        name: the party in whose name it signs.
        key: that party's private key.
        certificate: its certificate, from the market's CA.
        trust: the certificates of others that it trusts.

    Raises:
        SignerUnknown: if the certificate is another party's, or states no role.
        SignatureInvalid: if the key is too weak or is not the certificate's.
    """

    def __init__(
        self,
        name: str,
        key: PrivateKey,
        certificate: x509.Certificate,
        trust: Trust,
    ) -> None:
        super().__init__(trust)
        public = certificates.key_of(certificate)
        owner = certificates.identity_of(certificate)
        if owner != name:
            raise SignerUnknown(f"wrong certificate: got one for {owner!r}, expected one for {name!r}")
        if public != key.public_key():
            raise SignatureInvalid(f"the private key of {name!r} does not belong to its certificate")
        self.name = name
        self.role = certificates.role_of(certificate)
        self._key = key
        self._certificate = certificate
        self._packed_certificate = seals.pack(certificate.public_bytes(Encoding.DER))

    def sign(self, signed: Signed, now: Instant) -> Signed:
        """Add this party's signature as the outermost one; fills `signers` and `document`.

        Raises:
            SignatureInvalid: if this party may not sign the document.
            CertificateExpired: if its own certificate is not valid now, so that others would reject the signature.
        """
        body = signed.body
        party = signed.next_signer
        if not party:
            raise SignatureInvalid(f"signed by {', '.join(signed.signers)} already; no further signature is possible")
        if party != self.name:
            raise SignatureInvalid(f"{self.name} may not sign for {party}")
        first = not signed.signers
        document = documents.write_body(body) if first else documents.wrap(signed.document, body, now)
        certificates.check_validity(self._certificate, now)
        text = sign_text(document, self._key, self._certificate)
        return Signed(body=body, signers=(*signed.signers, self.name), document=text)

    def seal(self, message: Message, now: Instant) -> Message:
        """Seal a message of this party's, replacing any seal.

        Raises:
            CertificateExpired: if the party's own certificate is not valid now.
            SealInvalid: if it is another party's message, not for this party's role, or a slot could hold a line break.
            DocumentError: for values that the document cannot carry;
                or if the document is over the size limit.
        """
        if message.sender != self.name:
            raise SealInvalid(f"{self.name} may not seal for {message.sender}")
        kind = type(message.content)
        seals.check_sendable(message)
        check_role(self.role, kind, self.name)
        certificates.check_validity(self._certificate, now)
        body = documents.write_content(message.content)
        check_size(body, f"{kind.__name__} of {message.conversation_id}")
        unsigned = seals.unsigned(message, body, seals.write_moment(now))
        signature = seals.sign(unsigned.sealed_part(), self._key)
        text = replace(unsigned, signature=signature, certificate=self._packed_certificate).text()
        seal = Seal(self.name, self.role, message.receiver, message.conversation_id, now, text)
        return replace(message, seal=seal)
