"""Signed documents whose content was changed, or is not what it says; first genuine ones, which must pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from forgery import MALLORY, RESOURCE, USER, certificate_for, naive_cost
from signxml import SignatureConfiguration, XMLVerifier

from ramp.errors import DocumentError, SignatureInvalid
from ramp.model import instant
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.instant import Instant
from ramp.rfql import agreements
from ramp.rfql.signing.notary import XmlNotary
from ramp.rfql.signing.signature import sign_text
from ramp.runtime.keys.store import KeyStore

# What must pass, so that the refusals below mean something.


def test_genuine_documents_are_accepted(
    verifier: XmlNotary, signed: Signed, countersigned: Signed, agreement: Agreement, now: Instant
) -> None:
    assert verifier.verify(signed.document, now) == Signed(agreement, (USER,), signed.document)
    assert verifier.verify(countersigned.document, now) == Signed(agreement, (USER, RESOURCE), countersigned.document)


def test_genuine_cancellation_is_accepted(
    verifier: XmlNotary, user_notary: XmlNotary, resource_notary: XmlNotary, now: Instant
) -> None:
    cancellation = ContractChange("agreement-9", 0, "offer-17", USER, RESOURCE, "bank@localhost", now, reason="x")
    once = user_notary.sign(Signed(cancellation), now)
    twice = resource_notary.sign(once, now)
    assert verifier.verify(once.document, now).signers == (USER,)
    assert verifier.verify(twice.document, now).signers == (USER, RESOURCE)


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
    with pytest.raises(SignatureInvalid, match="signatures: got 0"):
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
        ("cost", "cost: got 1, expected the offer's 704000"),
        ("request", "requestId: got 'request-5', expected the offer's 'request-4'"),
        ("resource", "resource: got 'thunder1@localhost', expected the offer's 'mallory@localhost'"),
        ("unit", "Unit number: got 1, expected the offer's 2"),
        ("total", "Unit number: got 2, expected at most 1"),
        ("slot", "end must be after its start"),
        ("validity", "validUntil: must be after issuedAt"),
    ],
)
def test_contradictory_agreement_is_refused_though_signed(
    verifier: XmlNotary, user_notary: XmlNotary, agreement: Agreement, now: Instant, which: str, reason: str
) -> None:
    attack = user_notary.sign(Signed(contradictory(agreement, which)), now).document
    with pytest.raises(DocumentError, match=reason):
        verifier.verify(attack, now)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('countersignedAt="2026-11-21T08:00:00Z"', 'countersignedAt="soon"', "countersignedAt: got 'soon'"),
        ("<Agreement ", "<Note/><Agreement ", "Note: not allowed here"),
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
    with pytest.raises(DocumentError, match=reason):
        verifier.verify(attack, now)
