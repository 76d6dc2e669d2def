"""Offline check of agreement files: what it lists, what it refuses, what it only warns about."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ramp.errors import DocumentError
from ramp.model import contents
from ramp.model.acl import Performative
from ramp.model.agreement import Agreement, Signed
from ramp.model.instant import DAY, HOUR, SECOND, Instant
from ramp.model.seal import Role, Seal
from ramp.rfql import documents
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import XmlNotary, sign_text
from ramp.rfql.signing.verification import FileReport, verify_file
from ramp.runtime.keys.store import KeyStore, trust_of
from tests.unit.rfql.conftest import AGREEMENT, BANK, CANCELLATION, NOW, market_of
from tests.unit.rfql.forgery import certificate_for, resealed, seal_of


@pytest.fixture
def check(tmp_path: Path, store: KeyStore):
    def run(document: str, at: Instant = NOW) -> FileReport:
        path = tmp_path / "agreement.xml"
        path.write_text(document, "utf-8")
        return verify_file(path, trust_of(store), at)

    return run


@pytest.fixture
def both_signed(user_notary: XmlNotary, resource_notary: XmlNotary) -> Callable[[Agreement], str]:
    return lambda agreement: resource_notary.sign(user_notary.sign(Signed(agreement), NOW), NOW).document


def test_report_of_a_genuine_agreement(check, countersigned: Signed) -> None:
    report = check(countersigned.document + "\n")
    assert report.holds
    assert report.agreement == AGREEMENT
    assert [(s.signer, s.signed_at) for s in report.signatures] == [
        ("alice@localhost", NOW),
        ("thunder1@localhost", NOW + SECOND),
    ]
    assert report.warnings == ()
    told = report.as_dict()
    assert told["agreement"]["cost"] == "7040.00"
    assert told["agreement"]["reservation_id"] == "thunder1-000123"
    assert told["signatures"][0]["signed_at"] == "2026-11-21T08:00:00Z"


def test_expiry_since_is_a_warning(check, countersigned: Signed) -> None:
    report = check(countersigned.document, NOW + 400 * DAY)
    assert report.holds
    assert [warning.split(" has")[0] for warning in report.warnings] == [
        "certificate of alice@localhost",
        "certificate of thunder1@localhost",
    ]


def test_expiry_before_is_a_failure(check, both_signed: Callable[[Agreement], str]) -> None:
    """Issued, as it says, a year after the certificates had ended."""
    late = replace(AGREEMENT, issued_at=NOW + 700 * DAY, valid_until=NOW + 701 * DAY)
    report = check(both_signed(late))
    assert not report.holds
    assert "expired" in report.failure


def test_countersignature_after_expiry_is_a_failure(
    check, countersigned: Signed, store: KeyStore, signed: Signed
) -> None:
    late = sign_text(documents.wrap(signed.document, AGREEMENT, NOW + 366 * DAY), *store.identity("thunder1@localhost"))
    report = check(late)
    assert "expired" in report.failure
    assert "signed by both parties" in report.passed


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        ('cost="704000"', 'cost="1"', "does not verify"),
        ('issuedAt="2026-11-21T08:00:00Z"', 'issuedAt="2026-11-21T08:30:00Z"', "does not verify"),
        ('issuedAt="2026-11-21T08:00:00Z"', 'issuedAt="long ago"', "issuedAt: got 'long ago'"),
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


# Cancellations


def test_report_of_a_cancellation(check, user_notary: XmlNotary, resource_notary: XmlNotary) -> None:
    once = user_notary.sign(Signed(CANCELLATION), NOW)
    report = check(once.document)
    assert (report.holds, report.kind, report.cancellation, report.agreement) == (
        True,
        "cancellation",
        CANCELLATION,
        None,
    )
    assert report.warnings == ("thunder1@localhost has not countersigned it",)
    report = check(resource_notary.sign(once, NOW + SECOND).document)
    assert (report.holds, report.warnings) == (True, ())
    assert [signature.role for signature in report.signatures] == [Role.USER, Role.RESOURCE]
    assert "thunder1@localhost is the party that the document names, certified as resource" in report.passed
    assert report.as_dict()["cancellation"]["agreement_id"] == "agreement-9"
    assert not check(once.document.replace("no need", "no deed")).holds


# Sealed messages


@pytest.fixture
def payment_text(store: KeyStore) -> str:
    content = contents.PaymentMade("agreement-9", "transfer-5", 704_000)
    notary = store.notary(BANK)
    return seal_of(notary, Performative.AGREE, "thunder1@localhost", content, NOW, "agreement-9-1").text


def test_report_of_a_sealed_message(check, payment_text: str) -> None:
    report = check(payment_text)
    assert (report.holds, report.kind, report.agreement, report.warnings) == (True, "sealed message", None, ())
    told = report.as_dict()
    assert told["message"] == {
        "performative": "agree",
        "content": "PaymentMade",
        "sender": BANK,
        "role": "bank",
        "receiver": "thunder1@localhost",
        "conversation_id": "request-4",
        "reply_with": "",
        "in_reply_to": "agreement-9-1",
        "signed_at": "2026-11-21T08:00:00Z",
        "document": '<PaymentMade xmlns="urn:ramp:market:1" agreementId="agreement-9" transferId="transfer-5" '
        'amount="704000"/>',
    }
    assert [(one["signer"], one["role"]) for one in told["signatures"]] == [(BANK, "bank")]


def test_sealed_message_outlives_its_certificate(check, payment_text: str) -> None:
    report = check(payment_text, NOW + 400 * DAY)
    assert report.holds
    assert [warning.split(" has")[0] for warning in report.warnings] == [f"certificate of {BANK}"]
    assert "in the future" in check(payment_text, NOW - 1).failure


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        ('amount="704000"', 'amount="1"', "does not fit"),
        ("to: thunder1@localhost", "to: ricc2@localhost", "does not fit"),
        ("from: bank@localhost", "from: alice@localhost", "got 'bank@localhost'"),
        ("2026-11-21T08:00:00.000000Z", "2026-11-21T07:59:00.000000Z", "does not fit"),
        ("2026-11-21T08:00:00.000000Z", "2016-11-21T07:59:00.000000Z", "holds only from"),
        ("\nsignature: ", "\n\nsignature: ", "does not fit"),
        ("\ncertificate: ", "\ncertificate: A", "base64"),
    ],
)
def test_changed_sealed_message_fails(check, payment_text: str, old: str, new: str, failure: str) -> None:
    report = check(payment_text.replace(old, new, 1))
    assert not report.holds
    assert failure in report.failure
    assert (report.kind, report.message) == ("sealed message", None)


def test_report_of_a_sealed_message_lists_what_holds_within_it(
    check, store: KeyStore, user_notary: XmlNotary, signed: Signed
) -> None:
    """A commitment passes the buyer's agreement and the bank's vote on, each with a proof of its own."""
    lines = (contents.OrderLine("agreement-9", "thunder1@localhost", AGREEMENT.cost),)
    vote = contents.FundsReserved("order-6", "alice@localhost", lines, 1, NOW, NOW)
    voted = seal_of(store.notary(BANK), Performative.AGREE, "alice@localhost", vote, NOW)
    content = contents.Commitment(signed, vote, voted)
    report = check(seal_of(user_notary, Performative.CONFIRM, "thunder1@localhost", content, NOW).text)
    assert report.holds, report.failure
    listed = "\n".join(report.passed)
    for part in (
        "seal of alice@localhost over the whole message",
        "signature of alice@localhost over the whole Agreement (ECDSA_SHA256)",
        "seal of bank@localhost over the whole message",
    ):
        assert part in listed


def test_sealed_message_in_the_wrong_role_or_with_bad_proofs_fails(
    check, store: KeyStore, user_notary: XmlNotary, signed: Signed, payment_text: str
) -> None:
    key, _ = store.identity(BANK)
    certificate = certificate_for(store, key, NOW, names=(BANK,), roles=(Role.USER,))
    wrong_role = resealed(payment_text, key, certificate).text()
    assert "for a PaymentMade: got user, expected bank" in check(wrong_role).failure
    vote = contents.FundsReserved("order-6", "alice@localhost", (), 1, NOW, NOW)
    seal = Seal(BANK, Role.BANK, "alice@localhost", "request-4", NOW, payment_text)
    content = contents.Commitment(signed, vote, seal)
    sealed = seal_of(user_notary, Performative.CONFIRM, "thunder1@localhost", content, NOW)
    assert "expected a FundsReserved" in check(sealed.text).failure


def test_revoked_sealer_fails_whenever_it_sealed(tmp_path: Path) -> None:
    market = market_of(tmp_path, {BANK: Role.BANK})
    refused = contents.PaymentRefused("agreement-9", "void")
    seal = seal_of(market.notary(BANK), Performative.REFUSE, "a@b", refused, NOW)
    path = tmp_path / "refused.txt"
    path.write_text(seal.text, "utf-8")
    assert verify_file(path, trust_of(market), NOW).holds
    market.revoke(BANK, NOW + DAY)
    assert "revoked" in verify_file(path, trust_of(market), NOW).failure


# More about agreements


def test_unmet_terms_are_warnings(check, both_signed: Callable[[Agreement], str]) -> None:
    """A best offer that the user has approved: dearer, later, smaller than asked for; it holds all the same."""
    offer = replace(AGREEMENT.offer, cpu_hour_cost=80, end=NOW + 5 * HOUR, start=NOW, cores=64)
    best = replace(AGREEMENT, offer=offer, cost=offer.cost, best_offer=True)
    report = check(both_signed(best))
    assert report.holds
    assert [
        warning.removeprefix("the offer does not meet the request: ").split(",")[0] for warning in report.warnings
    ] == [
        "cost too high: got 25 600.00 credits for 64 cores",
        "too few cores: got 64",
        "it starts at 2026-11-21T08:00:00Z",
        "it ends at 2026-11-21T13:00:00Z",
    ]


def test_an_agreement_above_the_limit_for_what_was_asked_fails(check, both_signed: Callable[[Agreement], str]) -> None:
    """128 cores asked at 70; the machine charges 256 at 55."""
    offer = replace(AGREEMENT.offer, cores=256)
    dear = replace(AGREEMENT, offer=offer, cost=offer.cost)
    report = check(both_signed(dear))
    assert not report.holds
    assert "above_cap: cost too high" in report.failure


def test_an_agreement_of_a_site_that_was_not_asked_for_is_told(check, both_signed: Callable[[Agreement], str]) -> None:
    elsewhere = replace(AGREEMENT, request=replace(AGREEMENT.request, sites=("west.example",)))
    report = check(both_signed(elsewhere))
    (warning,) = report.warnings
    assert warning.endswith("thunder1@localhost is not at west.example")


def test_revoked_signer_fails_whenever_it_signed(tmp_path: Path, countersigned: Signed, store: KeyStore) -> None:
    path = tmp_path / "agreement.xml"
    path.write_text(countersigned.document, "utf-8")
    revoked = store.identity("alice@localhost")[1].serial_number
    trust = Trust(store.ca_certificates(), revoked=lambda certificate: certificate.serial_number == revoked)
    report = verify_file(path, trust, NOW)
    assert "revoked" in report.failure


def test_file_that_cannot_be_read(tmp_path: Path, store: KeyStore) -> None:
    with pytest.raises(DocumentError, match=r"nothing\.xml: cannot be read"):
        verify_file(tmp_path / "nothing.xml", trust_of(store), NOW)
    (tmp_path / "binary.xml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DocumentError, match="not text in UTF-8"):
        verify_file(tmp_path / "binary.xml", trust_of(store), NOW)
