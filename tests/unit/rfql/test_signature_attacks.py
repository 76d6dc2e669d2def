"""Attacks on signed documents: each test shows the attack document first, then that the notary refuses it.

Where practical it also shows that a naive verifier (signxml with its defaults, then reading the original document)
would have been taken in. Sources: McIntosh and Austel 2005 (signature wrapping), the W3C's XML Signature Best
Practices 2013, and the project's measurements of signxml."""

import base64
from collections.abc import Callable
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from lxml import etree
from signxml import DigestAlgorithm, SignatureConfiguration, SignatureMethod, XMLSigner, XMLVerifier

from ramp.errors import DocumentError, SignatureInvalid
from ramp.model.agreement import Signed
from ramp.rfql.signing.notary import XmlNotary, sign_text
from ramp.rfql.xml.parser import DOCUMENT_BYTES_MAX
from ramp.runtime.keys.store import KeyStore
from tests.unit.rfql.conftest import AGREEMENT, NOW, USER
from tests.unit.rfql.forgery import EXCLUSIVE, certificate_for, naive_cost, sign_with

Refused = Callable[[str, type[Exception], str], None]

# Signature wrapping and several signatures


def test_signature_wrapping_is_refused(refused: Refused, store: KeyStore, body: str) -> None:
    """Alice signed a cheap agreement by Id; the attacker hides it in a dear one. A naive bank pays the dear one."""
    key, certificate = store.identity(USER)
    genuine = body.replace("<Agreement ", '<Agreement Id="genuine" ').replace('cost="704000"', 'cost="1"')
    signed_by_id = sign_with(genuine, key, certificate, reference_uri="#genuine")
    split = signed_by_id.index("<ds:Signature")
    signature = signed_by_id[split : signed_by_id.index("</ds:Signature>") + len("</ds:Signature>")]
    hidden = signed_by_id[:split] + "</Agreement>"
    head, tail = body.rsplit("</Agreement>", 1)
    attack = f"{head}<Hidden>{hidden}</Hidden>{signature}</Agreement>{tail}"
    assert naive_cost(attack, certificate) == "704000"
    refused(attack, SignatureInvalid, "must cover the whole document")


def test_genuine_document_inside_a_forged_one_is_refused(refused: Refused, signed: Signed, body: str) -> None:
    head, tail = body.rsplit("</Agreement>", 1)
    attack = f"{head}{signed.document}</Agreement>{tail}"
    assert attack.count("<ds:Signature ") == 1
    refused(attack, SignatureInvalid, "expected exactly one signature, as the last child")


def test_two_signatures_side_by_side_are_refused(refused: Refused, signed: Signed, countersigned: Signed) -> None:
    signature = signed.document[signed.document.index("<ds:Signature") : -len("</Agreement>")]
    appended = signed.document.replace("</Agreement>", signature + "</Agreement>")
    refused(appended, SignatureInvalid, "signatures: got 2, expected 1")
    # The same count as a genuine countersigned document has, but both over the outer element.
    inner_unsigned = countersigned.document.replace(signature, "", 1)
    attack = inner_unsigned.replace("</CountersignedAgreement>", signature + "</CountersignedAgreement>")
    assert attack.count("<ds:Signature ") == 2
    refused(attack, SignatureInvalid, "expected exactly one signature, as the last child")


# Forbidden markup


def test_comment_inside_a_value_is_refused(refused: Refused, user_notary: XmlNotary, store: KeyStore) -> None:
    """Canonicalisation drops comments, so the signature holds; a naive reader stops at the comment and reads 6."""
    unit = replace(AGREEMENT.request, os_version="6.12")
    document = user_notary.sign(Signed(replace(AGREEMENT, request=unit)), NOW).document
    attack = document.replace("6.12", "6<!-- -->.12")
    assert naive_cost(attack, store.identity(USER)[1]) == "704000"  # the signature holds
    version = etree.fromstring(attack.encode()).find(".//{*}OSVersion")
    assert version is not None
    assert version.text == "6"
    refused(attack, DocumentError, "forbidden markup '<!--")


@pytest.mark.parametrize(
    "markup",
    [
        "<!DOCTYPE Agreement>",
        '<!DOCTYPE Agreement [<!ENTITY c "1">]>',
        '<!DOCTYPE Agreement SYSTEM "http://localhost:1/a.dtd">',
        "<?xml-stylesheet href='a.xsl'?>",
        '<?xml version="1.0"?>',
    ],
)
def test_document_type_and_instructions_are_refused(refused: Refused, signed: Signed, markup: str) -> None:
    refused(markup + signed.document, DocumentError, "forbidden markup")


def test_deep_document_is_refused(refused: Refused) -> None:
    refused("<a>" * 40 + "</a>" * 40, DocumentError, "nested deeper")


def test_foreign_document_is_refused(refused: Refused, store: KeyStore) -> None:
    attack = sign_text('<Payment xmlns="urn:ramp:market:1" amount="1"/>', *store.identity(USER))
    refused(attack, DocumentError, "no signable document")


# Signatures with weak or odd algorithms, keys and profiles.


def test_hmac_keyed_with_the_public_certificate_is_refused(refused: Refused, store: KeyStore, body: str) -> None:
    """Algorithm confusion: anybody knows Alice's certificate, so anybody could make this HMAC."""
    certificate = store.identity(USER)[1]
    public = certificate.public_bytes(serialization.Encoding.PEM)
    attack = sign_with(body, public, certificate, SignatureMethod.HMAC_SHA256)
    der = base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()
    key_info = f"<ds:KeyInfo><ds:X509Data><ds:X509Certificate>{der}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>"
    attack = attack.replace("</ds:Signature>", key_info + "</ds:Signature>")
    refused(attack, SignatureInvalid, r"got .*hmac-sha256'")


@pytest.mark.parametrize(
    ("method", "digest", "reason"),
    [
        (SignatureMethod.ECDSA_SHA1, DigestAlgorithm.SHA256, "got .*ecdsa-sha1'"),
        (SignatureMethod.ECDSA_SHA256, DigestAlgorithm.SHA1, "got .*sha1'"),
        (SignatureMethod.ECDSA_SHA512, DigestAlgorithm.SHA256, "got .*ecdsa-sha512'"),
    ],
)
def test_other_algorithms_are_refused(
    refused: Refused, store: KeyStore, body: str, method: SignatureMethod, digest: DigestAlgorithm, reason: str
) -> None:
    attack = sign_with(body, *store.identity(USER), method, digest)
    refused(attack, SignatureInvalid, reason)


@pytest.mark.parametrize(
    ("canonical", "reason"),
    [
        ("http://www.w3.org/TR/2001/REC-xml-c14n-20010315", "unaccepted CanonicalizationMethod"),
        (EXCLUSIVE + "WithComments", "unaccepted CanonicalizationMethod"),
    ],
)
def test_other_canonicalisations_are_refused(
    refused: Refused, store: KeyStore, body: str, canonical: str, reason: str
) -> None:
    attack = sign_with(body, *store.identity(USER), canonical=canonical)
    assert naive_cost(attack, store.identity(USER)[1]) == "704000"
    refused(attack, SignatureInvalid, reason)


def test_other_keys_are_refused(refused: Refused, store: KeyStore, body: str) -> None:
    key = rsa.generate_private_key(65537, 2048)
    attack = sign_with(body, key, certificate_for(store, key, NOW), SignatureMethod.RSA_SHA256)
    refused(attack, SignatureInvalid, "unaccepted SignatureMethod: got .*rsa-sha256")
    other = ec.generate_private_key(ec.SECP192R1())
    attack = sign_with(body, other, certificate_for(store, other, NOW))
    refused(attack, SignatureInvalid, "secp192r1")


def test_bare_key_instead_of_a_certificate_is_refused(refused: Refused, body: str) -> None:
    """The attacker's own key as KeyValue: without require_x509 signxml accepts it from anybody."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer = XMLSigner(signature_algorithm="ecdsa-sha256", c14n_algorithm=EXCLUSIVE)
    attack = etree.tostring(signer.sign(etree.fromstring(body), key=key), encoding="unicode")
    XMLVerifier().verify(attack.encode(), expect_config=SignatureConfiguration(require_x509=False))
    refused(attack, SignatureInvalid, "KeyInfo: got KeyValue")


def test_two_keys_in_the_key_info_are_refused(refused: Refused, store: KeyStore, body: str) -> None:
    attack = sign_with(body, *store.identity(USER), always_add_key_value=True)
    refused(attack, SignatureInvalid, "KeyInfo: got KeyValue, X509Data")


@pytest.mark.parametrize(
    ("old", "new", "error", "reason"),
    [
        ('cost="704000"', 'cost="1"', SignatureInvalid, "does not verify"),
        ("</Agreement>", "<Offer/></Agreement>", SignatureInvalid, "last child"),
        ("LINUX", "<![CDATA[LINUX]]>", DocumentError, "forbidden markup"),
        ("<Unit", " " * DOCUMENT_BYTES_MAX + "<Unit", DocumentError, "at most 90000"),
        ('<ds:Reference URI="">', '<ds:Reference URI="" Type="x">', SignatureInvalid, "Reference"),
        (
            "<ds:Transforms>",
            '<ds:Transforms><ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/>',
            SignatureInvalid,
            "content of Transforms: got",
        ),
        (
            "</ds:Signature>",
            "<ds:Object/></ds:Signature>",
            SignatureInvalid,
            "Signature: got SignedInfo, SignatureValue, KeyInfo, Object",
        ),
        ("<ds:SignedInfo>", '<ds:SignedInfo Id="s">', SignatureInvalid, "SignedInfo must have no attributes"),
        ("<ds:X509Certificate>", "<ds:X509Certificate>AAAA", SignatureInvalid, "is no certificate"),
        ("<ds:X509Certificate>", "<ds:X509Certificate>!", SignatureInvalid, "is no certificate"),
        ("<ds:DigestMethod ", '<ds:DigestMethod Id="d" ', SignatureInvalid, "unaccepted DigestMethod"),
        ('#sha256"/>', '#sha256"><Inner/></ds:DigestMethod>', SignatureInvalid, "unaccepted DigestMethod"),
    ],
    ids=lambda each: each[:24] if isinstance(each, str) else "",
)
def test_document_changed_after_its_signature_is_refused(
    refused: Refused, signed: Signed, old: str, new: str, error: type[Exception], reason: str
) -> None:
    attack = signed.document.replace(old, new)
    assert attack != signed.document
    refused(attack, error, reason)
