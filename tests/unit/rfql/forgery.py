"""Forging signed documents: any algorithm, any option, any certificate; and a verifier that would be taken in."""

from dataclasses import replace
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from lxml import etree
from signxml import DigestAlgorithm, SignatureConfiguration, SignatureMethod, XMLSigner, XMLVerifier

from ramp.model.acl import Message, Performative
from ramp.model.contents import Content
from ramp.model.instant import DAY, Instant
from ramp.model.seal import Role, Seal
from ramp.rfql.signing import seals
from ramp.rfql.signing.certificates import PrivateKey
from ramp.rfql.signing.notary import XmlNotary
from ramp.rfql.signing.seals import SealedText
from ramp.runtime.keys import issuing
from ramp.runtime.keys.store import KeyStore
from tests.unit.rfql.conftest import USER

EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"


def naive_cost(document: str, certificate: x509.Certificate) -> str:
    """The cost that a naive verifier would have the bank pay: it verifies, then reads the original document."""
    XMLVerifier().verify(
        document.encode(),
        x509_cert=certificate,
        expect_config=SignatureConfiguration(verification_time=certificate.not_valid_before_utc),
    )
    return etree.fromstring(document.encode()).get("cost", "")


class WeakSigner(XMLSigner):
    """signxml refuses to make weak signatures; an attacker does not."""

    def check_deprecated_methods(self) -> None:
        """Let everything pass."""


def sign_with(
    document: str,
    key: Any,
    certificate: x509.Certificate,
    method: SignatureMethod = SignatureMethod.ECDSA_SHA256,
    digest: DigestAlgorithm = DigestAlgorithm.SHA256,
    canonical: str = EXCLUSIVE,
    **options: object,
) -> str:
    signer = WeakSigner(signature_algorithm=method, digest_algorithm=digest, c14n_algorithm=canonical)
    root = signer.sign(etree.fromstring(document), key=key, cert=[certificate], **options)
    return etree.tostring(root, encoding="unicode")


def certificate_for(
    store: KeyStore,
    key: Any,
    now: Instant,
    *,
    names: tuple[str, ...] = (USER,),
    signs: bool = True,
    ca: bool = False,
    roles: tuple[str, ...] = (Role.USER,),
) -> x509.Certificate:
    """A certificate of the market's CA, as careless or as cruel as the test wants it."""
    ca_key, ca_certificate = store.issuer()
    encrypts = x509.KeyUsage(False, False, True, False, False, False, False, False, False)
    units = [x509.NameAttribute(x509.NameOID.ORGANIZATIONAL_UNIT_NAME, str(role)) for role in roles]
    identities = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"xmpp:{name}") for name in names])
    usage = issuing.key_usage(issues=ca) if signs else encrypts
    issuer = ca_key, ca_certificate.subject
    return issuing.issued(x509.Name(units), key.public_key(), issuer, now - DAY, now + DAY, usage, identities)


def seal_of(
    notary: XmlNotary, performative: Performative, receiver: str, content: Content, now: Instant, in_reply_to: str = ""
) -> Seal:
    message = Message(performative, notary.name, receiver, "request-4", content, in_reply_to=in_reply_to)
    seal = notary.seal(message, now).seal
    assert seal is not None
    return seal


def text_of(message: Message) -> str:
    assert message.seal is not None
    return message.seal.text


def resealed(text: str, key: PrivateKey, certificate: x509.Certificate, **changes: str) -> SealedText:
    """Change a sealed text and seal it anew with a key and certificate, whether or not they may."""
    part = replace(seals.parse(text), certificate=seals.pack(certificate.public_bytes(Encoding.DER)), **changes)
    return replace(part, signature=seals.sign(part.sealed_part(), key))
