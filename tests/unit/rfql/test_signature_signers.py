"""Signatures by somebody else, under a certificate that does not hold, or beyond what a notary signs."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from forgery import MALLORY, RESOURCE, USER, certificate_for, naive_cost

from ramp.errors import (
    CertificateExpired,
    DocumentError,
    SignatureInvalid,
    SignerUnknown,
)
from ramp.model.agreement import Agreement, ContractChange, Signed, end_of
from ramp.model.instant import DAY, HOUR, SECOND, Instant
from ramp.model.offer import RefusalCode
from ramp.model.seal import Role
from ramp.rfql import agreements
from ramp.rfql.signing.notary import XmlNotary
from ramp.rfql.signing.signature import sign_text
from ramp.runtime.keys.store import KeyStore, issuing


def test_another_party_s_signature_is_refused(verifier: XmlNotary, store: KeyStore, body: str, now: Instant) -> None:
    """Mallory is a member of the market and signs an agreement in Alice's name."""
    key, certificate = store.identity(MALLORY)
    attack = sign_text(body, key, certificate)
    assert f'user="{USER}"' in attack
    assert naive_cost(attack, certificate) == "704000"
    with pytest.raises(SignerUnknown, match=r"got 'mallory@localhost', expected 'alice@localhost'"):
        verifier.verify(attack, now)


def test_countersignature_by_the_user_is_refused(
    verifier: XmlNotary, store: KeyStore, signed: Signed, agreement: Agreement, now: Instant
) -> None:
    attack = sign_text(agreements.wrap(signed.document, agreement, now), *store.identity(USER))
    with pytest.raises(SignerUnknown, match=r"got 'alice@localhost', expected 'thunder1@localhost'"):
        verifier.verify(attack, now)


def test_resource_s_signature_over_another_party_s_is_refused(
    verifier: XmlNotary, store: KeyStore, body: str, agreement: Agreement, now: Instant
) -> None:
    """The resource and Mallory, both of this market, charge Alice together."""
    inner = sign_text(body, *store.identity(MALLORY))
    attack = sign_text(agreements.wrap(inner, agreement, now), *store.identity(RESOURCE))
    with pytest.raises(SignerUnknown, match=r"got 'mallory@localhost', expected 'alice@localhost'"):
        verifier.verify(attack, now)


def test_countersignature_without_the_user_s_is_refused(
    verifier: XmlNotary, store: KeyStore, body: str, agreement: Agreement, now: Instant
) -> None:
    attack = sign_text(agreements.wrap(body, agreement, now), *store.identity(RESOURCE))
    with pytest.raises(SignatureInvalid, match="signatures: got 1, expected 2"):
        verifier.verify(attack, now)


def test_another_market_s_ca_is_refused(
    verifier: XmlNotary, tmp_path_factory: pytest.TempPathFactory, body: str, now: Instant
) -> None:
    """An attacker's own CA issues a certificate for Alice."""
    theirs = KeyStore(tmp_path_factory.mktemp("theirs"))
    theirs.create_ca(now)
    theirs.issue(USER, Role.USER, now)
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
    for name, role in ((USER, Role.USER), (RESOURCE, Role.RESOURCE)):
        keys.issue(name, role, now)
    document = keys.notary(USER).sign(Signed(agreement), now).document
    bank = keys.notary(RESOURCE)
    assert bank.verify(document, now).signers == (USER,)
    keys.revoke(USER, now + HOUR, "laptop stolen")
    with pytest.raises(SignerUnknown, match="revoked"):
        bank.verify(document, now + HOUR + SECOND)


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
    verifier: XmlNotary, store: KeyStore, body: str, now: Instant, options: dict[str, object], reason: str
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = certificate_for(store, key, now, **options)  # type: ignore[arg-type]
    with pytest.raises(SignerUnknown, match=reason):
        verifier.verify(sign_text(body, key, certificate), now)


@pytest.mark.parametrize("role", [Role.USER, Role.BANK, Role.DIRECTORY, Role.KEEPER])
def test_countersignature_in_the_wrong_role_is_refused(
    verifier: XmlNotary, store: KeyStore, signed: Signed, agreement: Agreement, now: Instant, role: Role
) -> None:
    """The right key under the right name, certified as something else."""
    key, _ = store.identity(RESOURCE)
    certificate = certificate_for(store, key, now, names=(RESOURCE,), roles=(role,))
    attack = sign_text(agreements.wrap(signed.document, agreement, now), key, certificate)
    with pytest.raises(SignerUnknown, match=f"got role {role}, expected resource"):
        verifier.verify(attack, now)


def test_cancellation_in_the_wrong_role_is_refused(verifier: XmlNotary, store: KeyStore, now: Instant) -> None:
    key, _ = store.identity(USER)
    body = agreements.write_body(
        ContractChange("agreement-9", 0, "offer-17", USER, RESOURCE, "bank@localhost", now, reason="")
    )
    assert verifier.verify(sign_text(body, key, certificate_for(store, key, now)), now).signers == (USER,)
    attack = sign_text(body, key, certificate_for(store, key, now, roles=(Role.RESOURCE,)))
    with pytest.raises(SignerUnknown, match="got role resource, expected user"):
        verifier.verify(attack, now)


# The notary itself


def test_notary_signs_only_in_its_own_name(
    resource_notary: XmlNotary, user_notary: XmlNotary, agreement: Agreement, countersigned: Signed, now: Instant
) -> None:
    with pytest.raises(SignatureInvalid, match="may not sign for alice"):
        resource_notary.sign(Signed(agreement), now)
    with pytest.raises(SignatureInvalid, match="no further signature"):
        user_notary.sign(countersigned, now)
    with pytest.raises(SignatureInvalid, match="may not sign for thunder1"):
        user_notary.sign(user_notary.sign(Signed(agreement), now), now)


def test_a_resource_alone_signs_that_it_has_failed(
    resource_notary: XmlNotary,
    user_notary: XmlNotary,
    verifier: XmlNotary,
    store: KeyStore,
    agreement: Agreement,
    now: Instant,
) -> None:
    failure = end_of(agreement, "it burns", now, RefusalCode.PLUGIN_FAILED)
    signed = resource_notary.sign(Signed(failure), now)
    assert verifier.verify(signed.document, now) == signed
    assert (signed.body, signed.signers, signed.next_signer) == (failure, (RESOURCE,), "")
    with pytest.raises(SignatureInvalid, match=f"may not sign for {RESOURCE}"):
        user_notary.sign(Signed(failure), now)
    with pytest.raises(SignatureInvalid, match="no further signature"):
        user_notary.sign(signed, now)
    by_user = sign_text(agreements.write_body(failure), *store.identity(USER))
    with pytest.raises(SignerUnknown, match=f"got '{USER}', expected '{RESOURCE}'"):
        verifier.verify(by_user, now)
    wrapped = sign_text(agreements.wrap(by_user, failure, now), *store.identity(RESOURCE))
    with pytest.raises(DocumentError, match="alone signs that it has failed"):
        verifier.verify(wrapped, now)
    cancellation = sign_text(agreements.write_body(end_of(agreement, "it burns", now)), *store.identity(RESOURCE))
    with pytest.raises(SignerUnknown, match=f"got '{RESOURCE}', expected '{USER}'"):
        verifier.verify(cancellation, now)


def test_notary_does_not_sign_with_an_expired_certificate(
    user_notary: XmlNotary, agreement: Agreement, now: Instant
) -> None:
    with pytest.raises(CertificateExpired, match="expired"):
        user_notary.sign(Signed(agreement), now + 366 * DAY)


def test_notary_refuses_another_party_s_certificate_or_key(store: KeyStore) -> None:
    key, certificate = store.identity(USER)
    with pytest.raises(SignerUnknown, match="got one for 'alice@localhost'"):
        XmlNotary(MALLORY, key, certificate, store.ca_certificates())
    with pytest.raises(SignatureInvalid, match="does not belong"):
        XmlNotary(USER, issuing.new_key("p256"), certificate, store.ca_certificates())
