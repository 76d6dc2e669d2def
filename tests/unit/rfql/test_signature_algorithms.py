"""Signatures with weak or odd algorithms, keys and profiles."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from forgery import EXCLUSIVE, USER, certificate_for, naive_cost, sign_with
from lxml import etree
from signxml import DigestAlgorithm, SignatureConfiguration, SignatureMethod, XMLSigner, XMLVerifier

from ramp.errors import SignatureInvalid
from ramp.model.agreement import Signed
from ramp.model.instant import Instant
from ramp.rfql.signing.notary import XmlNotary
from ramp.runtime.keys.store import KeyStore


def test_hmac_keyed_with_the_public_certificate_is_refused(
    verifier: XmlNotary, store: KeyStore, body: str, now: Instant
) -> None:
    """Algorithm confusion: anybody knows Alice's certificate, so anybody could make this HMAC."""
    certificate = store.identity(USER)[1]
    public = certificate.public_bytes(serialization.Encoding.PEM)
    attack = sign_with(body, public, certificate, SignatureMethod.HMAC_SHA256)
    der = base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()
    key_info = f"<ds:KeyInfo><ds:X509Data><ds:X509Certificate>{der}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>"
    attack = attack.replace("</ds:Signature>", key_info + "</ds:Signature>")
    with pytest.raises(SignatureInvalid, match=r"got .*hmac-sha256'"):
        verifier.verify(attack, now)


@pytest.mark.parametrize(
    ("method", "digest", "reason"),
    [
        (SignatureMethod.ECDSA_SHA1, DigestAlgorithm.SHA256, "got .*ecdsa-sha1'"),
        (SignatureMethod.ECDSA_SHA256, DigestAlgorithm.SHA1, "got .*sha1'"),
        (SignatureMethod.ECDSA_SHA512, DigestAlgorithm.SHA256, "got .*ecdsa-sha512'"),
    ],
)
def test_other_algorithms_are_refused(
    verifier: XmlNotary,
    store: KeyStore,
    body: str,
    now: Instant,
    method: SignatureMethod,
    digest: DigestAlgorithm,
    reason: str,
) -> None:
    attack = sign_with(body, *store.identity(USER), method, digest)
    with pytest.raises(SignatureInvalid, match=reason):
        verifier.verify(attack, now)


@pytest.mark.parametrize(
    ("canonical", "reason"),
    [
        ("http://www.w3.org/TR/2001/REC-xml-c14n-20010315", "unaccepted CanonicalizationMethod"),
        (EXCLUSIVE + "WithComments", "unaccepted CanonicalizationMethod"),
    ],
)
def test_other_canonicalisations_are_refused(
    verifier: XmlNotary, store: KeyStore, body: str, now: Instant, canonical: str, reason: str
) -> None:
    attack = sign_with(body, *store.identity(USER), canonical=canonical)
    assert naive_cost(attack, store.identity(USER)[1]) == "704000"
    with pytest.raises(SignatureInvalid, match=reason):
        verifier.verify(attack, now)


def test_weak_keys_are_refused(verifier: XmlNotary, store: KeyStore, body: str, now: Instant) -> None:
    short = rsa.generate_private_key(65537, 1024)
    attack = sign_with(body, short, certificate_for(store, short, now), SignatureMethod.RSA_SHA256)
    with pytest.raises(SignatureInvalid, match="RSA key too short: got 1024 bits"):
        verifier.verify(attack, now)
    other = ec.generate_private_key(ec.SECP192R1())
    attack = sign_with(body, other, certificate_for(store, other, now))
    with pytest.raises(SignatureInvalid, match="secp192r1"):
        verifier.verify(attack, now)


def test_bare_key_instead_of_a_certificate_is_refused(verifier: XmlNotary, body: str, now: Instant) -> None:
    """The attacker's own key as KeyValue: without require_x509 signxml accepts it from anybody."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer = XMLSigner(signature_algorithm="ecdsa-sha256", c14n_algorithm=EXCLUSIVE)
    attack = etree.tostring(signer.sign(etree.fromstring(body), key=key), encoding="unicode")
    XMLVerifier().verify(attack.encode(), expect_config=SignatureConfiguration(require_x509=False))
    with pytest.raises(SignatureInvalid, match="KeyInfo: got KeyValue"):
        verifier.verify(attack, now)


def test_two_keys_in_the_key_info_are_refused(verifier: XmlNotary, store: KeyStore, body: str, now: Instant) -> None:
    attack = sign_with(body, *store.identity(USER), always_add_key_value=True)
    with pytest.raises(SignatureInvalid, match="KeyInfo: got KeyValue, X509Data"):
        verifier.verify(attack, now)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('<ds:Reference URI="">', '<ds:Reference URI="" Type="x">', "Reference"),
        (
            "<ds:Transforms>",
            '<ds:Transforms><ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/>',
            "content of Transforms: got",
        ),
        (
            "</ds:Signature>",
            "<ds:Object/></ds:Signature>",
            "Signature: got SignedInfo, SignatureValue, KeyInfo, Object",
        ),
        ("<ds:SignedInfo>", '<ds:SignedInfo Id="s">', "SignedInfo must have no attributes"),
        ("<ds:X509Certificate>", "<ds:X509Certificate>AAAA", "is no certificate"),
    ],
)
def test_signature_outside_the_profile_is_refused(
    verifier: XmlNotary, signed: Signed, now: Instant, old: str, new: str, reason: str
) -> None:
    attack = signed.document.replace(old, new)
    assert attack != signed.document
    with pytest.raises(SignatureInvalid, match=reason):
        verifier.verify(attack, now)
