"""Attacks on signed documents: each test shows the attack document first, then that the notary refuses it.

Where practical it also shows that a naive verifier (signxml with its defaults, then reading the original document)
would have been taken in. Sources: McIntosh and Austel 2005 (signature wrapping), the W3C's XML Signature Best
Practices 2013, and the project's measurements of signxml.
"""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from lxml import etree
from signxml import DigestAlgorithm, SignatureConfiguration, SignatureMethod, XMLSigner, XMLVerifier

from ramp.errors import (
    CertificateExpired,
    DocumentTooLarge,
    MalformedXml,
    MeaningViolation,
    SchemaViolation,
    SignatureInvalid,
    SignerUnknown,
)
from ramp.model import instant
from ramp.model.agreement import AccountQuery, Agreement, Cancellation, Signed
from ramp.model.instant import DAY, HOUR, SECOND, Instant
from ramp.rfql import agreements
from ramp.rfql.certificates import PrivateKey
from ramp.rfql.notary import XmlNotary
from ramp.rfql.parser import DOCUMENT_BYTES_MAX
from ramp.rfql.signature import sign_text
from ramp.runtime import issuing
from ramp.runtime.keys import KeyStore

USER = "alice@localhost"
RESOURCE = "thunder1@localhost"
MALLORY = "mallory@localhost"
DS = "http://www.w3.org/2000/09/xmldsig#"
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
    key: PrivateKey | bytes,
    certificate: x509.Certificate,
    method: SignatureMethod = SignatureMethod.ECDSA_SHA256,
    digest: DigestAlgorithm = DigestAlgorithm.SHA256,
    canonical: str = EXCLUSIVE,
    **options: object,
) -> str:
    """Sign with any algorithm and option."""
    signer = WeakSigner(signature_algorithm=method, digest_algorithm=digest, c14n_algorithm=canonical)
    root = signer.sign(etree.fromstring(document), key=key, cert=[certificate], **options)
    return etree.tostring(root, encoding="unicode")


def certificate_for(
    store: KeyStore,
    key: PrivateKey,
    now: Instant,
    *,
    names: tuple[str, ...] = (USER,),
    signs: bool = True,
    ca: bool = False,
) -> x509.Certificate:
    """A certificate of the market's CA, as careless or as cruel as the test wants it."""
    ca_key, ca_certificate = store._read_identity(store.folder / "ca" / "identity.pem")
    usage = x509.KeyUsage(signs, False, not signs, False, False, False, False, False, False)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "someone")]))
        .issuer_name(ca_certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(instant.to_datetime(now - DAY))
        .not_valid_after(instant.to_datetime(now + DAY))
        .add_extension(x509.BasicConstraints(ca, None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"xmpp:{name}") for name in names]),
            critical=False,
        )
        .sign(ca_key, hashes.SHA256())
    )


@pytest.fixture
def verifier(store: KeyStore) -> XmlNotary:
    """A bank's view: the market's CA, but no pins, so that each test shows the check it is about."""
    key, certificate = store.identity(RESOURCE)
    return XmlNotary(RESOURCE, key, certificate, store.ca_certificates())


@pytest.fixture
def body(agreement: Agreement) -> str:
    return agreements.write_body(agreement)


# What must pass, so that the refusals below mean something.


def test_genuine_documents_are_accepted(
    verifier: XmlNotary, signed: Signed, countersigned: Signed, agreement: Agreement, now: Instant
) -> None:
    assert verifier.verify(signed.document, now) == Signed(agreement, (USER,), signed.document)
    assert verifier.verify(countersigned.document, now) == Signed(agreement, (USER, RESOURCE), countersigned.document)


def test_genuine_cancellation_and_query_are_accepted(
    verifier: XmlNotary, user_notary: XmlNotary, resource_notary: XmlNotary, now: Instant
) -> None:
    cancellation = Cancellation(
        "c-1", "agreement-9", "offer-17", USER, RESOURCE, rollback=True, reason="x", issued_at=now
    )
    once = user_notary.sign(Signed(cancellation), now)
    twice = resource_notary.sign(once, now)
    assert verifier.verify(once.document, now).signers == (USER,)
    assert verifier.verify(twice.document, now).signers == (USER, RESOURCE)
    query = user_notary.sign(Signed(AccountQuery("n-1", USER, now)), now)
    assert verifier.verify(query.document, now) == Signed(AccountQuery("n-1", USER, now), (USER,), query.document)


def test_rsa_signature_is_accepted(verifier: XmlNotary, store: KeyStore, body: str, now: Instant) -> None:
    key = rsa.generate_private_key(65537, 2048)
    document = sign_text(body, key, certificate_for(store, key, now))
    assert "rsa-sha256" in document
    assert verifier.verify(document, now).signers == (USER,)


# Changed content


def test_changed_value_is_refused(verifier: XmlNotary, signed: Signed, now: Instant) -> None:
    attack = signed.document.replace('cost="704000"', 'cost="1"')
    assert attack != signed.document
    with pytest.raises(SignatureInvalid, match="does not verify"):
        verifier.verify(attack, now)


def test_changed_inner_agreement_under_a_fresh_countersignature_is_refused(
    verifier: XmlNotary, store: KeyStore, signed: Signed, agreement: Agreement, now: Instant
) -> None:
    """The resource raises the price after the user has signed, and signs the whole itself."""
    raised = signed.document.replace('cost="704000"', 'cost="7040000"').replace('cpuHourCost="55"', 'cpuHourCost="550"')
    attack = sign_text(agreements.wrap(raised, agreement, now), *store.identity(RESOURCE))
    assert naive_cost(signed.document, store.identity(USER)[1]) == "704000"
    XMLVerifier().verify(  # the outer signature is perfectly good
        attack.encode(),
        x509_cert=store.identity(RESOURCE)[1],
        expect_config=SignatureConfiguration(location="./", verification_time=instant.to_datetime(now)),
    )
    with pytest.raises(SignatureInvalid, match="does not verify"):
        verifier.verify(attack, now)


def test_signature_of_another_agreement_is_refused(
    verifier: XmlNotary, user_notary: XmlNotary, signed: Signed, agreement: Agreement, now: Instant
) -> None:
    other = user_notary.sign(Signed(replace(agreement, agreement_id="agreement-10")), now)
    signature = signed.document[signed.document.index("<ds:Signature") :]
    attack = other.document[: other.document.index("<ds:Signature")] + signature
    assert "agreement-10" in attack
    with pytest.raises(SignatureInvalid, match="does not verify"):
        verifier.verify(attack, now)


def test_unsigned_document_is_refused(verifier: XmlNotary, body: str, now: Instant) -> None:
    with pytest.raises(SignatureInvalid, match="0 signatures"):
        verifier.verify(body, now)


def contradictory(agreement: Agreement, which: str) -> Agreement:
    offer = agreement.offer
    return {
        "cost": replace(agreement, cost=1),
        "request": replace(agreement, request_id="request-5"),
        "resource": replace(agreement, offer=replace(offer, resource=MALLORY)),
        "unit": replace(agreement, offer=replace(offer, unit=2)),
        "total": replace(agreement, request=replace(agreement.request, number=2), offer=replace(offer, unit=2)),
        "slot": replace(agreement, offer=replace(offer, end=offer.start), cost=0),
        "validity": replace(agreement, valid_until=agreement.issued_at),
    }[which]


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("cost", "cost: 1 is not the offer's 704000"),
        ("request", "requestId: 'request-5' is not the offer's 'request-4'"),
        ("resource", "resource: 'thunder1@localhost' is not the offer's 'mallory@localhost'"),
        ("unit", "Unit number: 1 is not the offer's 2"),
        ("total", "Unit number: 2 of only 1"),
        ("slot", "end does not lie after its start"),
        ("validity", "validUntil: does not lie after issuedAt"),
    ],
)
def test_contradictory_agreement_is_refused_though_signed(
    verifier: XmlNotary, user_notary: XmlNotary, agreement: Agreement, now: Instant, which: str, reason: str
) -> None:
    attack = user_notary.sign(Signed(contradictory(agreement, which)), now).document
    with pytest.raises(MeaningViolation, match=reason):
        verifier.verify(attack, now)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('countersignedAt="2026-11-21T08:00:00Z"', 'countersignedAt="soon"', "countersignedAt: 'soon' is wrong"),
        ("<Agreement ", "<Note/><Agreement ", "Note: not expected here"),
        ("countersignedAt=", 'note="x" countersignedAt=', "attribute note"),
    ],
)
def test_document_outside_the_schema_is_refused_though_signed(
    verifier: XmlNotary,
    store: KeyStore,
    signed: Signed,
    agreement: Agreement,
    now: Instant,
    old: str,
    new: str,
    reason: str,
) -> None:
    wrapped = agreements.wrap(signed.document, agreement, now)
    assert old in wrapped
    attack = sign_text(wrapped.replace(old, new, 1), *store.identity(RESOURCE))
    with pytest.raises(SchemaViolation, match=reason):
        verifier.verify(attack, now)


# Wrong signers


def test_another_party_s_signature_is_refused(verifier: XmlNotary, store: KeyStore, body: str, now: Instant) -> None:
    """Mallory is a member of the market and signs an agreement in Alice's name."""
    key, certificate = store.identity(MALLORY)
    attack = sign_text(body, key, certificate)
    assert f'user="{USER}"' in attack
    assert naive_cost(attack, certificate) == "704000"
    with pytest.raises(SignerUnknown, match=r"signed by 'mallory@localhost'; right would be 'alice@localhost'"):
        verifier.verify(attack, now)


def test_countersignature_by_the_user_is_refused(
    verifier: XmlNotary, store: KeyStore, signed: Signed, agreement: Agreement, now: Instant
) -> None:
    attack = sign_text(agreements.wrap(signed.document, agreement, now), *store.identity(USER))
    with pytest.raises(SignerUnknown, match=r"signed by 'alice@localhost'; right would be 'thunder1@localhost'"):
        verifier.verify(attack, now)


def test_resource_s_signature_over_another_party_s_is_refused(
    verifier: XmlNotary, store: KeyStore, body: str, agreement: Agreement, now: Instant
) -> None:
    """The resource and Mallory, both of this market, charge Alice together."""
    inner = sign_text(body, *store.identity(MALLORY))
    attack = sign_text(agreements.wrap(inner, agreement, now), *store.identity(RESOURCE))
    with pytest.raises(SignerUnknown, match=r"signed by 'mallory@localhost'; right would be 'alice@localhost'"):
        verifier.verify(attack, now)


def test_countersignature_without_the_user_s_is_refused(
    verifier: XmlNotary, store: KeyStore, body: str, agreement: Agreement, now: Instant
) -> None:
    attack = sign_text(agreements.wrap(body, agreement, now), *store.identity(RESOURCE))
    with pytest.raises(SignatureInvalid, match="1 signatures; right would be 2"):
        verifier.verify(attack, now)


def test_another_market_s_ca_is_refused(
    verifier: XmlNotary, tmp_path_factory: pytest.TempPathFactory, body: str, now: Instant
) -> None:
    """An attacker's own CA issues a certificate for Alice."""
    theirs = KeyStore(tmp_path_factory.mktemp("theirs"))
    theirs.create_ca(now)
    theirs.issue(USER, now)
    attack = sign_text(body, *theirs.identity(USER))
    assert naive_cost(attack, theirs.identity(USER)[1]) == "704000"
    with pytest.raises(SignerUnknown, match="not issued by a CA of this market"):
        verifier.verify(attack, now)


def test_forged_issuer_name_is_refused(verifier: XmlNotary, store: KeyStore, body: str, now: Instant) -> None:
    """The attacker's CA bears the market CA's name; only its signature differs."""
    ca = store.ca_certificates()[0]
    key = ec.generate_private_key(ec.SECP256R1())
    forged = (
        x509.CertificateBuilder(
            issuer_name=ca.subject,
            subject_name=ca.subject,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=ca.not_valid_before_utc,
            not_valid_after=ca.not_valid_after_utc,
        )
        .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"xmpp:{USER}")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    assert forged.issuer == ca.subject
    with pytest.raises(SignerUnknown, match="not issued by a CA of this market"):
        verifier.verify(sign_text(body, key, forged), now)


def test_key_other_than_the_pinned_one_is_refused(
    verifier: XmlNotary, store: KeyStore, body: str, now: Instant
) -> None:
    """The CA was tricked into a second certificate for Alice; the bank has her first key on file."""
    key = ec.generate_private_key(ec.SECP256R1())
    attack = sign_text(body, key, certificate_for(store, key, now))
    assert verifier.verify(attack, now).signers == (USER,)  # without pins the CA's word is enough
    with pytest.raises(SignerUnknown, match="is on file"):
        store.notary(RESOURCE).verify(attack, now)


def test_renewed_certificate_of_the_same_key_fits_the_pin(
    store: KeyStore, body: str, resource_notary: XmlNotary, now: Instant
) -> None:
    key, _ = store.identity(USER)
    renewed = certificate_for(store, key, now)
    assert resource_notary.verify(sign_text(body, key, renewed), now).signers == (USER,)


@pytest.mark.parametrize(("shift", "reason"), [(2 * DAY, "expired"), (-2 * DAY, "holds only from")])
def test_certificate_out_of_its_time_is_refused(
    verifier: XmlNotary, store: KeyStore, body: str, now: Instant, shift: int, reason: str
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    attack = sign_text(body, key, certificate_for(store, key, now))
    assert verifier.verify(attack, now).signers == (USER,)
    with pytest.raises(CertificateExpired, match=reason):
        verifier.verify(attack, now + shift)


def test_revoked_certificate_is_refused(
    tmp_path_factory: pytest.TempPathFactory, agreement: Agreement, now: Instant
) -> None:
    keys = KeyStore(tmp_path_factory.mktemp("revoked"))
    keys.create_ca(now)
    for name in (USER, RESOURCE):
        keys.issue(name, now)
    document = keys.notary(USER).sign(Signed(agreement), now).document
    bank = keys.notary(RESOURCE)
    assert bank.verify(document, now).signers == (USER,)
    keys.revoke(USER, now + HOUR, "laptop stolen")
    with pytest.raises(SignerUnknown, match="revoked"):
        bank.verify(document, now + HOUR + SECOND)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"ca": True}, "is a CA's own"),
        ({"signs": False}, "not for signing"),
        ({"names": (USER, MALLORY)}, "names 2 parties"),
        ({"names": ()}, "names 0 parties"),
    ],
)
def test_certificate_for_another_purpose_is_refused(
    verifier: XmlNotary, store: KeyStore, body: str, now: Instant, options: dict[str, object], reason: str
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = certificate_for(store, key, now, **options)  # type: ignore[arg-type]
    with pytest.raises(SignerUnknown, match=reason):
        verifier.verify(sign_text(body, key, certificate), now)


# Signature wrapping and several signatures


def test_signature_wrapping_is_refused(verifier: XmlNotary, store: KeyStore, body: str, now: Instant) -> None:
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
    with pytest.raises(SignatureInvalid, match="right would be URI=''"):
        verifier.verify(attack, now)


def test_genuine_document_inside_a_forged_one_is_refused(
    verifier: XmlNotary, signed: Signed, body: str, now: Instant
) -> None:
    head, tail = body.rsplit("</Agreement>", 1)
    attack = f"{head}{signed.document}</Agreement>{tail}"
    assert attack.count("<ds:Signature ") == 1
    with pytest.raises(SignatureInvalid, match="not exactly one signature as the last child"):
        verifier.verify(attack, now)


def test_two_signatures_side_by_side_are_refused(
    verifier: XmlNotary, signed: Signed, countersigned: Signed, now: Instant
) -> None:
    signature = signed.document[signed.document.index("<ds:Signature") : -len("</Agreement>")]
    appended = signed.document.replace("</Agreement>", signature + "</Agreement>")
    with pytest.raises(SignatureInvalid, match="2 signatures; right would be 1"):
        verifier.verify(appended, now)
    # The same count as a genuine countersigned document has, but both over the outer element.
    inner_unsigned = countersigned.document.replace(signature, "", 1)
    attack = inner_unsigned.replace("</CountersignedAgreement>", signature + "</CountersignedAgreement>")
    assert attack.count("<ds:Signature ") == 2
    with pytest.raises(SignatureInvalid, match="not exactly one signature as the last child"):
        verifier.verify(attack, now)


def test_content_after_the_signature_is_refused(verifier: XmlNotary, signed: Signed, now: Instant) -> None:
    attack = signed.document.replace("</Agreement>", "<Offer/></Agreement>")
    with pytest.raises(SignatureInvalid, match="last child"):
        verifier.verify(attack, now)


# Weak or odd algorithms


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
    with pytest.raises(SignatureInvalid, match="hmac-sha256' is not accepted"):
        verifier.verify(attack, now)


@pytest.mark.parametrize(
    ("method", "digest", "reason"),
    [
        (SignatureMethod.ECDSA_SHA1, DigestAlgorithm.SHA256, "ecdsa-sha1' is not accepted"),
        (SignatureMethod.ECDSA_SHA256, DigestAlgorithm.SHA1, "sha1' is not accepted"),
        (SignatureMethod.ECDSA_SHA512, DigestAlgorithm.SHA256, "ecdsa-sha512' is not accepted"),
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
        ("http://www.w3.org/TR/2001/REC-xml-c14n-20010315", "CanonicalizationMethod .* is not accepted"),
        (EXCLUSIVE + "WithComments", "CanonicalizationMethod .* is not accepted"),
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
    with pytest.raises(SignatureInvalid, match="RSA key of 1024 bits"):
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
    with pytest.raises(SignatureInvalid, match="KeyInfo holds KeyValue"):
        verifier.verify(attack, now)


def test_two_keys_in_the_key_info_are_refused(verifier: XmlNotary, store: KeyStore, body: str, now: Instant) -> None:
    attack = sign_with(body, *store.identity(USER), always_add_key_value=True)
    with pytest.raises(SignatureInvalid, match="KeyInfo holds KeyValue, X509Data"):
        verifier.verify(attack, now)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('<ds:Reference URI="">', '<ds:Reference URI="" Type="x">', "Reference"),
        (
            "<ds:Transforms>",
            '<ds:Transforms><ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/>',
            "Transforms holds",
        ),
        (
            "</ds:Signature>",
            "<ds:Object/></ds:Signature>",
            "Signature holds SignedInfo, SignatureValue, KeyInfo, Object",
        ),
        ("<ds:SignedInfo>", '<ds:SignedInfo Id="s">', "SignedInfo has attributes"),
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


# Forbidden markup


def test_comment_inside_a_value_is_refused(
    verifier: XmlNotary, user_notary: XmlNotary, store: KeyStore, agreement: Agreement, now: Instant
) -> None:
    """Canonicalisation drops comments, so the signature holds; a naive reader stops at the comment and reads 6."""
    unit = replace(agreement.request, os_version="6.12")
    document = user_notary.sign(Signed(replace(agreement, request=unit)), now).document
    attack = document.replace("6.12", "6<!-- -->.12")
    assert naive_cost(attack, store.identity(USER)[1]) == "704000"  # the signature holds
    version = etree.fromstring(attack.encode()).find(".//{*}OSVersion")
    assert version is not None
    assert version.text == "6"
    with pytest.raises(MalformedXml, match="forbidden markup '<!--"):
        verifier.verify(attack, now)


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
def test_document_type_and_instructions_are_refused(
    verifier: XmlNotary, signed: Signed, now: Instant, markup: str
) -> None:
    with pytest.raises(MalformedXml, match="forbidden markup"):
        verifier.verify(markup + signed.document, now)


def test_cdata_is_refused(verifier: XmlNotary, signed: Signed, now: Instant) -> None:
    attack = signed.document.replace("LINUX", "<![CDATA[LINUX]]>")
    with pytest.raises(MalformedXml, match="forbidden markup"):
        verifier.verify(attack, now)


def test_oversize_document_is_refused_before_it_is_parsed(verifier: XmlNotary, signed: Signed, now: Instant) -> None:
    attack = signed.document.replace("<Unit", " " * DOCUMENT_BYTES_MAX + "<Unit")
    with pytest.raises(DocumentTooLarge, match="at most 90000"):
        verifier.verify(attack, now)


def test_deep_document_is_refused(verifier: XmlNotary, now: Instant) -> None:
    with pytest.raises(MalformedXml, match="nested deeper"):
        verifier.verify("<a>" * 40 + "</a>" * 40, now)


def test_foreign_document_is_refused(verifier: XmlNotary, store: KeyStore, now: Instant) -> None:
    attack = sign_text('<Payment xmlns="urn:ramp:market:1" amount="1"/>', *store.identity(USER))
    with pytest.raises(SchemaViolation, match="no signable document"):
        verifier.verify(attack, now)


# The notary itself


def test_notary_signs_only_in_its_own_name(
    resource_notary: XmlNotary, user_notary: XmlNotary, agreement: Agreement, countersigned: Signed, now: Instant
) -> None:
    with pytest.raises(SignatureInvalid, match="may not sign for alice"):
        resource_notary.sign(Signed(agreement), now)
    with pytest.raises(SignatureInvalid, match="nobody else signs it"):
        user_notary.sign(countersigned, now)
    with pytest.raises(SignatureInvalid, match="may not sign for thunder1"):
        user_notary.sign(user_notary.sign(Signed(agreement), now), now)


def test_notary_does_not_sign_with_an_expired_certificate(
    user_notary: XmlNotary, agreement: Agreement, now: Instant
) -> None:
    with pytest.raises(CertificateExpired, match="expired"):
        user_notary.sign(Signed(agreement), now + 366 * DAY)


def test_notary_refuses_another_party_s_certificate_or_key(store: KeyStore) -> None:
    key, certificate = store.identity(USER)
    with pytest.raises(SignerUnknown, match="is for 'alice@localhost'"):
        XmlNotary(MALLORY, key, certificate, store.ca_certificates())
    with pytest.raises(SignatureInvalid, match="does not belong"):
        XmlNotary(USER, issuing.new_key("p256"), certificate, store.ca_certificates())
