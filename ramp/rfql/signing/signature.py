"""Make one XML signature, or check it against the market's narrow profile (W3C XML Signature 1.1 through signxml).

Profile: enveloped, the whole document (URI=""), exclusive canonicalisation, ECDSA with P-256, SHA-256 throughout, only
one X.509 certificate in the key info. The check returns only the tree that was rebuilt from the signed bytes, so that
callers read signed content only (against signature wrapping).
"""

from __future__ import annotations

import base64
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
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

from ramp.errors import SignatureInvalid
from ramp.model import instant
from ramp.model.instant import Instant
from ramp.rfql.signing.certificates import CERTIFICATE_BYTES_MAX, UNREADABLE, PrivateKey
from ramp.rfql.xml.namespaces import SIGNATURE
from ramp.rfql.xml.parser import Element, parse_wire

EXCLUSIVE: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"
ENVELOPED: Final = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
SHA256: Final = "http://www.w3.org/2001/04/xmlenc#sha256"
METHOD: Final = SignatureMethod.ECDSA_SHA256
TAG: Final = f"{{{SIGNATURE}}}Signature"


def sign_text(document: str, key: PrivateKey, certificate: x509.Certificate) -> str:
    """Sign a whole document and return it; the signature becomes the root's last child.

    Args:
        document: XML text.
        key: the signer's private key.
        certificate: the signer's certificate, which goes into the signature.
    """
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

    Args:
        root: the signed element.
        levels: expected number of signatures in the document.

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
