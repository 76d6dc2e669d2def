"""Offline check of agreement files: what it lists, what it refuses, what it only warns about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ramp.errors import DocumentError
from ramp.model.agreement import AccountQuery, Agreement, Signed
from ramp.model.instant import DAY, HOUR, SECOND, Instant
from ramp.rfql import agreements
from ramp.rfql.notary import XmlNotary
from ramp.rfql.signature import sign_text
from ramp.rfql.verification import AgreementReport, verify_agreement_file
from ramp.runtime.keys import KeyStore


@pytest.fixture
def check(tmp_path: Path, store: KeyStore, now: Instant):
    def run(document: str, at: Instant = now) -> AgreementReport:
        path = tmp_path / "agreement.xml"
        path.write_text(document, "utf-8")
        return verify_agreement_file(path, store.ca_certificates(), at, revoked=store.is_revoked)

    return run


def test_report_of_a_genuine_agreement(check, countersigned: Signed, agreement: Agreement, now: Instant) -> None:
    report = check(countersigned.document + "\n")
    assert report.holds
    assert report.agreement == agreement
    assert [(s.signer, s.signed_at) for s in report.signatures] == [
        ("alice@localhost", now),
        ("thunder1@localhost", now + SECOND),
    ]
    assert report.warnings == ()
    listed = "\n".join(report.passed)
    for part in (
        "well-formed CountersignedAgreement",
        "signature of thunder1@localhost over the whole CountersignedAgreement (ECDSA_SHA256)",
        "signature of alice@localhost over the whole Agreement (ECDSA_SHA256)",
        "request, offer and cost agree",
        "signed by both parties",
        "certificates held when it was signed",
    ):
        assert part in listed
    told = report.as_dict()
    assert told["agreement"]["cost"] == "7 040.00"
    assert told["agreement"]["reservation_id"] == "thunder1-000123"
    assert told["signatures"][0]["signed_at"] == "2026-11-21T08:00:00Z"


def test_expiry_since_is_a_warning(check, countersigned: Signed, now: Instant) -> None:
    report = check(countersigned.document, now + 400 * DAY)
    assert report.holds
    assert [warning.split(" has")[0] for warning in report.warnings] == [
        "certificate of alice@localhost",
        "certificate of thunder1@localhost",
    ]


def test_expiry_before_is_a_failure(
    check, user_notary: XmlNotary, resource_notary: XmlNotary, agreement: Agreement, now: Instant
) -> None:
    """Issued, as it says, a year after the certificates had ended."""
    late = replace(agreement, issued_at=now + 700 * DAY, valid_until=now + 701 * DAY)
    document = resource_notary.sign(user_notary.sign(Signed(late), now), now).document
    report = check(document)
    assert not report.holds
    assert "expired" in report.failure


def test_countersignature_after_expiry_is_a_failure(
    check, countersigned: Signed, store: KeyStore, signed: Signed, agreement: Agreement, now: Instant
) -> None:
    late = sign_text(
        agreements.wrap(signed.document, agreement, now + 366 * DAY), *store.identity("thunder1@localhost")
    )
    report = check(late)
    assert "expired" in report.failure
    assert "signed by both parties" in report.passed


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        ('cost="704000"', 'cost="1"', "does not verify"),
        ('issuedAt="2026-11-21T08:00:00Z"', 'issuedAt="2026-11-21T08:30:00Z"', "does not verify"),
        ('issuedAt="2026-11-21T08:00:00Z"', 'issuedAt="long ago"', "issuedAt is 'long ago'"),
        ("<Offer", "<!-- --><Offer", "forbidden markup"),
        ("</CountersignedAgreement>", "", "not well-formed"),
    ],
)
def test_tampered_file_fails(check, countersigned: Signed, old: str, new: str, failure: str) -> None:
    report = check(countersigned.document.replace(old, new, 1))
    assert not report.holds
    assert failure in report.failure
    assert report.agreement is None


def test_user_s_signature_alone_is_no_agreement(check, signed: Signed) -> None:
    report = check(signed.document)
    assert "signed by alice@localhost only" in report.failure
    assert any("signature of alice@localhost" in line for line in report.passed)


def test_other_documents_fail(check, user_notary: XmlNotary, now: Instant) -> None:
    assert (
        "no agreement"
        in check(user_notary.sign(Signed(AccountQuery("n", "alice@localhost", now)), now).document).failure
    )
    assert "no agreement" in check("<a/>").failure


def test_unmet_terms_are_warnings(
    check, user_notary: XmlNotary, resource_notary: XmlNotary, agreement: Agreement, now: Instant
) -> None:
    """A best offer that the user has approved: dearer, later, smaller than asked for; it holds all the same."""
    offer = replace(agreement.offer, cpu_hour_cost=80, end=now + 5 * HOUR, start=now, cores=64)
    best = replace(agreement, offer=offer, cost=offer.cost, best_offer=True)
    report = check(resource_notary.sign(user_notary.sign(Signed(best), now), now).document)
    assert report.holds
    assert [
        warning.removeprefix("the offer does not meet the request: ").split(",")[0] for warning in report.warnings
    ] == [
        "price 80 is above the 70 asked for",
        "slot ends at 2026-11-21T13:00:00Z",
        "64 cores of the 128 asked for",
        "slot starts at 2026-11-21T08:00:00Z",
    ]


def test_revoked_signer_fails_whenever_it_signed(
    tmp_path: Path, countersigned: Signed, store: KeyStore, now: Instant
) -> None:
    path = tmp_path / "agreement.xml"
    path.write_text(countersigned.document, "utf-8")
    revoked = store.identity("alice@localhost")[1].serial_number
    report = verify_agreement_file(
        path, store.ca_certificates(), now, revoked=lambda certificate: certificate.serial_number == revoked
    )
    assert "revoked" in report.failure


def test_file_that_cannot_be_read(tmp_path: Path, store: KeyStore, now: Instant) -> None:
    with pytest.raises(DocumentError, match=r"nothing\.xml: cannot be read"):
        verify_agreement_file(tmp_path / "nothing.xml", store.ca_certificates(), now)
    (tmp_path / "binary.xml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DocumentError, match="not text in UTF-8"):
        verify_agreement_file(tmp_path / "binary.xml", store.ca_certificates(), now)
