"""Agreements whose price another offer sets, as signed documents: what survives the wire, and what a forger can do."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ramp.errors import DocumentError
from ramp.model import contents
from ramp.model.acl import Message, Performative
from ramp.model.agreement import PricePaid, Signed
from ramp.model.called_terms import bound
from ramp.model.instant import MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.price_paid import SECOND_PRICE
from ramp.model.seal import Role
from ramp.protocol.rules.checked_rule import RUNNER_UP_BYTES_MAX, passed_on_bytes
from ramp.rfql.codec import encode
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import XmlNotary
from ramp.rfql.signing.verification import FileReport, verify_file
from ramp.runtime.keys.store import KeyStore
from tests.unit.rfql.conftest import AGREEMENT, NOW, market_of
from tests.unit.rfql.forgery import seal_of

OTHER = "ricc1@localhost"
ID = "3f0b7a6e-4f0e-4c39-9d0a-{:012}"


@pytest.fixture(scope="module")
def other_notary(store: KeyStore) -> XmlNotary:
    store.issue(OTHER, Role.RESOURCE, NOW)
    return store.notary(OTHER)


@pytest.fixture
def sealed_offer() -> Callable[..., PricePaid]:
    """A runner-up's offer at 60, changed or not, sealed by whoever."""

    def price(notary: XmlNotary, **changes: object) -> PricePaid:
        offer = bound(AGREEMENT.offer, AGREEMENT.request, SECOND_PRICE)
        offer = replace(offer, offer_id="offer-18", resource=OTHER, cpu_hour_cost=60, **changes)  # type: ignore[arg-type]
        proposal = contents.Proposal(AGREEMENT.request_id, 1, (offer,))
        seal = seal_of(notary, Performative.PROPOSE, AGREEMENT.user, proposal, NOW - SECOND)
        return PricePaid(SECOND_PRICE, offer, seal)

    return price


@pytest.fixture
def report(
    tmp_path: Path, store: KeyStore, user_notary: XmlNotary, resource_notary: XmlNotary
) -> Callable[..., FileReport]:
    """What `ramp verify` finds in the agreement with a price, signed by both."""

    def verify(price: PricePaid, cost: int = 60 * 12_800) -> FileReport:
        offer = bound(AGREEMENT.offer, AGREEMENT.request, price.rule)
        body = replace(AGREEMENT, offer=offer, price=price, cost=cost)
        signed = resource_notary.sign(user_notary.sign(Signed(body), NOW), NOW + SECOND)
        path = tmp_path / "agreement.xml"
        path.write_text(signed.document)
        return verify_file(path, Trust(store.ca_certificates()), NOW)

    return verify


def test_a_price_set_by_another_offer_is_verified(report, sealed_offer, other_notary) -> None:
    price = sealed_offer(other_notary)
    found = report(price)
    assert found.holds, found.failure
    assert found.agreement is not None
    assert found.agreement.price == price
    said = "second-price: 7 680.00 credits are paid for an offer of 7 040.00 credits"
    assert f"{said}; the sealed offer offer-18 of {OTHER} sets the price" in found.passed
    assert any(f"seal of {OTHER} over the whole message" in each for each in found.passed)
    assert found.as_dict()["agreement"]["rule"] == SECOND_PRICE


def test_a_single_bidder_is_paid_the_cap(report) -> None:
    assert report(PricePaid(SECOND_PRICE), 70 * 12_800).holds
    assert "not_the_rules_price" in report(PricePaid(SECOND_PRICE)).failure


def test_what_is_paid_as_offered_has_nothing_new(user_notary: XmlNotary) -> None:
    document = user_notary.sign(Signed(AGREEMENT), NOW).document
    assert "PricePaid" not in document
    assert "rule" not in document


def test_another_price_than_the_rules_fails(report, sealed_offer, other_notary) -> None:
    assert "not_the_rules_price: wrong cost: got 7 600.00" in report(sealed_offer(other_notary), 760_000).failure
    assert "runner_up_expired" in report(sealed_offer(other_notary, valid_for=SECOND // 2)).failure
    assert "runner_up_foreign" in report(sealed_offer(other_notary, cores=64)).failure


def test_a_runner_up_sealed_by_the_buyer_fails(report, sealed_offer, user_notary) -> None:
    """A user's certificate is no resource's, whatever name the offer bears."""
    with pytest.raises(DocumentError):
        sealed_offer(user_notary)


def test_a_runner_up_sealed_by_the_winner_itself_fails(report, sealed_offer, resource_notary) -> None:
    assert "runner_up_forged" in report(sealed_offer(resource_notary)).failure


def test_a_changed_offer_fails_by_its_seal(report, sealed_offer, other_notary, store: KeyStore) -> None:
    price = sealed_offer(other_notary)
    assert price.seal is not None
    text = price.seal.text.replace('cpuHourCost="60"', 'cpuHourCost="56"')
    assert text != price.seal.text
    forged = replace(price, runner_up=replace(price.runner_up, cpu_hour_cost=56), seal=replace(price.seal, text=text))
    assert "the seal does not fit the message" in report(forged, 56 * 12_800).failure


def test_another_markets_offer_fails(report, sealed_offer, tmp_path: Path) -> None:
    elsewhere = market_of(tmp_path / "elsewhere", {OTHER: Role.RESOURCE})
    found = report(sealed_offer(elsewhere.notary(OTHER)))
    assert not found.holds
    assert OTHER in found.failure


def test_something_else_sealed_is_no_offer(report, other_notary: XmlNotary) -> None:
    refused = contents.HoldRefused(AGREEMENT.request_id, "offer-18", RefusalCode.SLOT_TAKEN)
    seal = seal_of(other_notary, Performative.REFUSE, AGREEMENT.user, refused, NOW)
    price = PricePaid(SECOND_PRICE, replace(AGREEMENT.offer, offer_id="offer-18", resource=OTHER), seal)
    assert "wrong document in the sealed message: got a HoldRefused, expected a Proposal" in report(price).failure


def test_an_offer_that_is_not_in_the_proposal_fails(report, sealed_offer, other_notary) -> None:
    price = sealed_offer(other_notary)
    found = report(replace(price, runner_up=replace(price.runner_up, offer_id="offer-99")))
    assert "'offer-99' is not in the proposal" in found.failure


def test_an_offer_whose_id_is_twice_in_the_proposal_fails(report, sealed_offer, other_notary: XmlNotary) -> None:
    """It would depend on the reader which of the two sets the price."""
    price = sealed_offer(other_notary)
    elsewhere = replace(price.runner_up, unit=9)
    proposal = contents.Proposal(AGREEMENT.request_id, 1, (price.runner_up, elsewhere))
    twice = replace(price, seal=seal_of(other_notary, Performative.PROPOSE, AGREEMENT.user, proposal, NOW))
    assert "'offer-18' is more than once in the proposal" in report(twice).failure


@pytest.mark.parametrize(("units", "detail"), [(150, ""), (1, "<" * 4000), (1, "\"'&" * 900), (1, "x\r" * 400)])
def test_what_may_be_a_runner_up_fits_the_winners_commitment(
    units: int, detail: str, other_notary: XmlNotary, user_notary: XmlNotary, store: KeyStore
) -> None:
    other = bound(AGREEMENT.offer, AGREEMENT.request, SECOND_PRICE)
    other = replace(other, offer_id=ID.format(1), resource=OTHER, cpu_hour_cost=60)
    offers = tuple(replace(other, offer_id=ID.format(unit), unit=unit) for unit in range(1, units + 1))
    refusals = (Refusal(2, RefusalCode.PRICE, detail=detail),) if detail else ()
    proposal = contents.Proposal(AGREEMENT.request_id, 1, offers, refusals)
    seal = seal_of(other_notary, Performative.PROPOSE, AGREEMENT.user, proposal, NOW)
    assert passed_on_bytes(seal) <= RUNNER_UP_BYTES_MAX
    lines = tuple(
        contents.OrderLine(ID.format(line), AGREEMENT.resource, 10**6, ID.format(line)) for line in range(150)
    )
    vote = contents.FundsReserved("order-6", AGREEMENT.user, lines, MINUTE, AGREEMENT.valid_until, NOW)
    said = seal_of(store.notary(AGREEMENT.bank), Performative.AGREE, AGREEMENT.user, vote, NOW)

    def document(price: PricePaid) -> int:
        signed = user_notary.sign(Signed(replace(AGREEMENT, price=price, cost=60 * 12_800)), NOW)
        commitment = contents.Commitment(signed, vote, said)
        message = Message(Performative.CONFIRM, AGREEMENT.user, AGREEMENT.resource, "request-4", commitment)
        return len(encode(user_notary.seal(message, NOW)).body.encode())

    grown = document(PricePaid(SECOND_PRICE, other, seal)) - document(PricePaid(SECOND_PRICE))
    assert 0 < grown - passed_on_bytes(seal) < 200  # the element around it


def test_resource_and_bank_read_the_seal_as_well(
    sealed_offer, other_notary, user_notary: XmlNotary, verifier: XmlNotary
) -> None:
    price = sealed_offer(other_notary)
    body = replace(AGREEMENT, price=price, cost=60 * 12_800)
    signed = user_notary.sign(Signed(body), NOW)
    assert verifier.verify(signed.document, NOW + MINUTE).body == body
