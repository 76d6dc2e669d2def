"""Signed documents whose content was changed, or is not what it says; `tests/property` shows that genuine ones pass."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from signxml import SignatureConfiguration, XMLVerifier

from ramp.errors import CertificateExpired, DocumentError, SignatureInvalid, SignerUnknown
from ramp.model import instant
from ramp.model.agreement import Agreement, Signed, end_of
from ramp.model.instant import DAY, HOUR, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.seal import Role
from ramp.rfql import documents
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import XmlNotary, sign_text
from ramp.runtime.keys import issuing
from ramp.runtime.keys.store import KeyStore
from tests.unit.rfql.conftest import AGREEMENT, CANCELLATION, MALLORY, NOW, RESOURCE, USER, market_of
from tests.unit.rfql.forgery import certificate_for, naive_cost

Refused = Callable[[str, type[Exception], str], None]

# Changed content


def test_changed_inner_agreement_under_a_fresh_countersignature_is_refused(
    refused: Refused, store: KeyStore, signed: Signed
) -> None:
    """The resource raises the price after the user has signed, and signs the whole itself."""
    raised = signed.document.replace('cost="704000"', 'cost="7040000"').replace('cpuHourCost="55"', 'cpuHourCost="550"')
    attack = sign_text(documents.wrap(raised, AGREEMENT, NOW), *store.identity(RESOURCE))
    assert naive_cost(signed.document, store.identity(USER)[1]) == "704000"
    XMLVerifier().verify(  # the outer signature is perfectly good
        attack.encode(),
        x509_cert=store.identity(RESOURCE)[1],
        expect_config=SignatureConfiguration(location="./", verification_time=instant.to_datetime(NOW)),
    )
    refused(attack, SignatureInvalid, "does not verify")


def test_signature_of_another_agreement_is_refused(refused: Refused, user_notary: XmlNotary, signed: Signed) -> None:
    other = user_notary.sign(Signed(replace(AGREEMENT, agreement_id="agreement-10")), NOW)
    signature = signed.document[signed.document.index("<ds:Signature") :]
    attack = other.document[: other.document.index("<ds:Signature")] + signature
    assert "agreement-10" in attack
    refused(attack, SignatureInvalid, "does not verify")


def test_unsigned_document_is_refused(refused: Refused, body: str) -> None:
    refused(body, SignatureInvalid, "signatures: got 0")


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
    refused: Refused, user_notary: XmlNotary, which: str, reason: str
) -> None:
    attack = user_notary.sign(Signed(contradictory(AGREEMENT, which)), NOW).document
    refused(attack, DocumentError, reason)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('countersignedAt="2026-11-21T08:00:00Z"', 'countersignedAt="soon"', "countersignedAt: got 'soon'"),
        ("<Agreement ", "<Note/><Agreement ", "Note: not allowed here"),
        ("countersignedAt=", 'note="x" countersignedAt=', "attribute note"),
    ],
)
def test_document_outside_the_schema_is_refused_though_signed(
    refused: Refused, store: KeyStore, signed: Signed, old: str, new: str, reason: str
) -> None:
    wrapped = documents.wrap(signed.document, AGREEMENT, NOW)
    assert old in wrapped
    attack = sign_text(wrapped.replace(old, new, 1), *store.identity(RESOURCE))
    refused(attack, DocumentError, reason)


# Signatures by somebody else, under a certificate that does not hold, or beyond what a notary signs.


def test_another_party_s_signature_is_refused(refused: Refused, store: KeyStore, body: str) -> None:
    """Mallory is a member of the market and signs an agreement in Alice's name."""
    key, certificate = store.identity(MALLORY)
    attack = sign_text(body, key, certificate)
    assert f'user="{USER}"' in attack
    assert naive_cost(attack, certificate) == "704000"
    refused(attack, SignerUnknown, r"got 'mallory@localhost', expected 'alice@localhost'")


def test_countersignature_by_the_user_is_refused(refused: Refused, store: KeyStore, signed: Signed) -> None:
    attack = sign_text(documents.wrap(signed.document, AGREEMENT, NOW), *store.identity(USER))
    refused(attack, SignerUnknown, r"got 'alice@localhost', expected 'thunder1@localhost'")


def test_resource_s_signature_over_another_party_s_is_refused(refused: Refused, store: KeyStore, body: str) -> None:
    """The resource and Mallory, both of this market, charge Alice together."""
    inner = sign_text(body, *store.identity(MALLORY))
    attack = sign_text(documents.wrap(inner, AGREEMENT, NOW), *store.identity(RESOURCE))
    refused(attack, SignerUnknown, r"got 'mallory@localhost', expected 'alice@localhost'")


def test_countersignature_without_the_user_s_is_refused(refused: Refused, store: KeyStore, body: str) -> None:
    attack = sign_text(documents.wrap(body, AGREEMENT, NOW), *store.identity(RESOURCE))
    refused(attack, SignatureInvalid, "signatures: got 1, expected 2")


def test_another_market_s_ca_is_refused(refused: Refused, tmp_path: Path, body: str) -> None:
    """An attacker's own CA issues a certificate for Alice."""
    theirs = market_of(tmp_path, {USER: Role.USER})
    attack = sign_text(body, *theirs.identity(USER))
    assert naive_cost(attack, theirs.identity(USER)[1]) == "704000"
    refused(attack, SignerUnknown, "not issued by a CA of this market")


def test_forged_issuer_name_is_refused(refused: Refused, store: KeyStore, body: str) -> None:
    """The attacker's CA bears the market CA's name; only its signature differs."""
    ca = store.ca_certificates()[0]
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"xmpp:{USER}")])
    issuer, usage = (key, ca.subject), issuing.key_usage(issues=False)
    forged = issuing.issued(ca.subject, key.public_key(), issuer, NOW - DAY, NOW + DAY, usage, name)
    assert forged.issuer == ca.subject
    refused(sign_text(body, key, forged), SignerUnknown, "not issued by a CA of this market")


def test_key_other_than_the_pinned_one_is_refused(verifier: XmlNotary, store: KeyStore, body: str) -> None:
    """The CA was tricked into a second certificate for Alice; the bank has her first key on file."""
    key = ec.generate_private_key(ec.SECP256R1())
    attack = sign_text(body, key, certificate_for(store, key, NOW))
    assert verifier.verify(attack, NOW).signers == (USER,)  # without pins the CA's word is enough
    with pytest.raises(SignerUnknown, match="is on file"):
        store.notary(RESOURCE).verify(attack, NOW)


def test_renewed_certificate_of_the_same_key_fits_the_pin(
    store: KeyStore, body: str, resource_notary: XmlNotary
) -> None:
    key, _ = store.identity(USER)
    renewed = certificate_for(store, key, NOW)
    assert resource_notary.verify(sign_text(body, key, renewed), NOW).signers == (USER,)


@pytest.mark.parametrize(("shift", "reason"), [(2 * DAY, "expired"), (-2 * DAY, "holds only from")])
def test_certificate_out_of_its_time_is_refused(
    verifier: XmlNotary, store: KeyStore, body: str, shift: int, reason: str
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    attack = sign_text(body, key, certificate_for(store, key, NOW))
    assert verifier.verify(attack, NOW).signers == (USER,)
    with pytest.raises(CertificateExpired, match=reason):
        verifier.verify(attack, NOW + shift)


def test_revoked_certificate_is_refused(tmp_path: Path) -> None:
    keys = market_of(tmp_path, {USER: Role.USER, RESOURCE: Role.RESOURCE})
    document = keys.notary(USER).sign(Signed(AGREEMENT), NOW).document
    bank = keys.notary(RESOURCE)
    assert bank.verify(document, NOW).signers == (USER,)
    keys.revoke(USER, NOW + HOUR, "laptop stolen")
    with pytest.raises(SignerUnknown, match="revoked"):
        bank.verify(document, NOW + HOUR + SECOND)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"ca": True}, "belongs to a CA"),
        ({"signs": False}, "not for signing"),
        ({"names": (USER, MALLORY)}, "names 2 parties"),
        ({"names": ()}, "names 0 parties"),
        ({"roles": ()}, "got no role"),
        ({"roles": (Role.USER, Role.BANK)}, "got 'user', 'bank', expected one of"),
        ({"roles": ("User",)}, "got 'User', expected one of"),
        ({"roles": (Role.RESOURCE,)}, "got role resource, expected user"),
        ({"roles": (Role.BANK,)}, "got role bank, expected user"),
    ],
)
def test_certificate_for_another_purpose_is_refused(
    refused: Refused, store: KeyStore, body: str, options: dict[str, object], reason: str
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = certificate_for(store, key, NOW, **options)  # type: ignore[arg-type]
    refused(sign_text(body, key, certificate), SignerUnknown, reason)


@pytest.mark.parametrize("role", [Role.USER, Role.BANK, Role.DIRECTORY, Role.KEEPER])
def test_countersignature_in_the_wrong_role_is_refused(
    refused: Refused, store: KeyStore, signed: Signed, role: Role
) -> None:
    """The right key under the right name, certified as something else."""
    key, _ = store.identity(RESOURCE)
    certificate = certificate_for(store, key, NOW, names=(RESOURCE,), roles=(role,))
    attack = sign_text(documents.wrap(signed.document, AGREEMENT, NOW), key, certificate)
    refused(attack, SignerUnknown, f"got role {role}, expected resource")


def test_cancellation_in_the_wrong_role_is_refused(verifier: XmlNotary, refused: Refused, store: KeyStore) -> None:
    key, _ = store.identity(USER)
    body = documents.write_body(CANCELLATION)
    assert verifier.verify(sign_text(body, key, certificate_for(store, key, NOW)), NOW).signers == (USER,)
    attack = sign_text(body, key, certificate_for(store, key, NOW, roles=(Role.RESOURCE,)))
    refused(attack, SignerUnknown, "got role resource, expected user")


# The notary itself


def test_notary_signs_only_in_its_own_name(
    resource_notary: XmlNotary, user_notary: XmlNotary, countersigned: Signed
) -> None:
    with pytest.raises(SignatureInvalid, match="may not sign for alice"):
        resource_notary.sign(Signed(AGREEMENT), NOW)
    with pytest.raises(SignatureInvalid, match="no further signature"):
        user_notary.sign(countersigned, NOW)
    with pytest.raises(SignatureInvalid, match="may not sign for thunder1"):
        user_notary.sign(user_notary.sign(Signed(AGREEMENT), NOW), NOW)


def test_a_resource_alone_signs_that_it_has_failed(
    resource_notary: XmlNotary, user_notary: XmlNotary, verifier: XmlNotary, refused: Refused, store: KeyStore
) -> None:
    failure = end_of(AGREEMENT, "it burns", NOW, RefusalCode.PLUGIN_FAILED)
    signed = resource_notary.sign(Signed(failure), NOW)
    assert verifier.verify(signed.document, NOW) == signed
    assert (signed.body, signed.signers, signed.next_signer) == (failure, (RESOURCE,), "")
    with pytest.raises(SignatureInvalid, match=f"may not sign for {RESOURCE}"):
        user_notary.sign(Signed(failure), NOW)
    with pytest.raises(SignatureInvalid, match="no further signature"):
        user_notary.sign(signed, NOW)
    by_user = sign_text(documents.write_body(failure), *store.identity(USER))
    refused(by_user, SignerUnknown, f"got '{USER}', expected '{RESOURCE}'")
    wrapped = sign_text(documents.wrap(by_user, failure, NOW), *store.identity(RESOURCE))
    refused(wrapped, DocumentError, "alone signs that it has failed")
    cancellation = sign_text(documents.write_body(end_of(AGREEMENT, "it burns", NOW)), *store.identity(RESOURCE))
    refused(cancellation, SignerUnknown, f"got '{RESOURCE}', expected '{USER}'")


def test_notary_does_not_sign_with_an_expired_certificate(user_notary: XmlNotary) -> None:
    with pytest.raises(CertificateExpired, match="expired"):
        user_notary.sign(Signed(AGREEMENT), NOW + 366 * DAY)


def test_notary_refuses_another_party_s_certificate_or_key(store: KeyStore) -> None:
    key, certificate = store.identity(USER)
    with pytest.raises(SignerUnknown, match="got one for 'alice@localhost'"):
        XmlNotary(MALLORY, key, certificate, Trust(store.ca_certificates()))
    with pytest.raises(SignatureInvalid, match="does not belong"):
        XmlNotary(USER, issuing.new_key(), certificate, Trust(store.ca_certificates()))
