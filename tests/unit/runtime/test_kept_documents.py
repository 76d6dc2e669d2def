"""A bank knows again what it has posted by, though those who signed it have other keys by now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramp.errors import DocumentError, SignerUnknown
from ramp.ledger.account import AccountKind
from ramp.ledger.amendments.amendment import AmendmentTerms
from ramp.ledger.book import Book
from ramp.ledger.evidence import Evidence
from ramp.ledger.orders.order import OrderLine
from ramp.ledger.reclamations.reclamation import ReclamationTerms
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Amendment, PricePaid, Reclamation, Signed
from ramp.model.called_terms import bound
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, from_iso
from ramp.model.offer import Offer
from ramp.model.price_paid import SECOND_PRICE
from ramp.model.request import ReclaimTerms, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.sizes.amended import state_digest
from ramp.rfql.signing.notary import XmlNotary
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.ledger import kept_documents
from ramp.runtime.ledger.kept_documents import KeptDocuments, noticed_in

NOW = from_iso("2026-11-21T08:00:00Z")
LATER = NOW + 30 * DAY
USER, RESOURCE, BANK = "alice@localhost", "thunder1@localhost", "bank@localhost"
STARTS, ENDS = NOW + HOUR, NOW + 60 * DAY
UNIT = RequestUnit(
    1, 70, ENDS, TotalCores(64), not_before=STARTS, wall_time=ENDS - STARTS, reclaim=ReclaimTerms(16, 5 * MINUTE, 10)
)
OFFER = Offer("offer-17", "request-4", 1, RESOURCE, 55, STARTS, ENDS, 64, 0.25, 30 * SECOND, "log")
AGREEMENT = Agreement(
    "agreement-9", "request-4", 1, USER, RESOURCE, BANK, UNIT, OFFER, "R-1", OFFER.cost, NOW, "order-6", NOW + MINUTE
)  # fmt: skip
AMENDMENT = Amendment(
    "agreement-9",
    1,
    state_digest(AGREEMENT),
    "offer-17",
    USER,
    RESOURCE,
    BANK,
    60,
    ENDS,
    STARTS,
    7,
    NOW,
    STARTS + MINUTE,
)
FIRST = Reclamation(
    "agreement-9",
    1,
    state_digest(AMENDMENT),
    "offer-17",
    USER,
    RESOURCE,
    BANK,
    50,
    ENDS,
    NOW + HOUR,
    9,
    1,
    NOW,
    NOW + 2 * HOUR,
)
NEXT = replace(FIRST, number=2, cores=40, issued_at=LATER, effective_at=LATER + HOUR, valid_until=LATER + 2 * HOUR)


@pytest.fixture
def keys(tmp_path: Path) -> KeyStore:
    store = KeyStore(tmp_path / "keys")
    store.create_ca(NOW)
    for name, role in ((USER, Role.USER), (RESOURCE, Role.RESOURCE), (BANK, Role.BANK)):
        store.issue(name, role, NOW)
    return store


def by_both(keys: KeyStore, body: Agreement | Amendment) -> Signed:
    return keys.notary(RESOURCE).sign(keys.notary(USER).sign(Signed(body), NOW), NOW)


def notice(keys: KeyStore, body: Reclamation, bought: Signed, *changes: Signed) -> str:
    """The sealed text of a notice, signed with the resource's key of that time."""
    resource = keys.notary(RESOURCE)
    content = c.ReclamationNotice(resource.sign(Signed(body), body.issued_at), bought, changes)
    message = Message(Performative.REQUEST, RESOURCE, BANK, "request-4", content, reply_with="w")
    seal = resource.seal(message, body.issued_at).seal
    assert seal is not None
    return seal.text


def bought_with(bought: Signed, cost: int, ledger: Book | None = None) -> Book:
    """The ledger of a bank that has posted an agreement."""
    ledger = Book() if ledger is None else ledger
    ledger.open_account(USER, AccountKind.USER, at=1)
    ledger.open_account(RESOURCE, AccountKind.RESOURCE, at=1)
    ledger.deposit("d", USER, cost, at=2)
    ledger.reserve_order("order-6", USER, [OrderLine("agreement-9", RESOURCE, cost, "offer-17")], NOW + MINUTE, at=NOW)
    ledger.countersign("agreement-9", at=NOW, starts_at=STARTS, evidence=bought.document)
    return ledger


class Posted:
    """What a bank has posted: an agreement, an amendment of it, and a reclamation."""

    def __init__(self, keys: KeyStore) -> None:
        self.bought = by_both(keys, AGREEMENT)
        self.ledger = bought_with(self.bought, OFFER.cost)
        self.amended = by_both(keys, AMENDMENT)
        first = notice(keys, FIRST, self.bought, self.amended)
        opened = keys.notary(BANK).open(first, NOW).content
        assert isinstance(opened, c.ReclamationNotice)
        self.taken = opened.reclamation
        ledger = self.ledger
        amendment = AmendmentTerms("agreement-9", 1, "s0", "s1", USER, RESOURCE, 7, NOW + HOUR)
        ledger.post_amendment(amendment, at=NOW, evidence=self.amended.document)
        terms = ReclamationTerms(
            "agreement-9", 1, "s1", False, "s2", USER, RESOURCE, 9, 1, MINUTE, NOW + HOUR, NOW + 2 * HOUR
        )
        ledger.note_reclamation(terms, at=NOW, evidence=first)

    def notary(self, keys: KeyStore) -> XmlNotary:
        return keys.notary(BANK, KeptDocuments(self.ledger).kept_at)


@pytest.fixture
def posted(keys: KeyStore) -> Posted:
    return Posted(keys)


def all_changes(posted: Posted) -> tuple[Signed, ...]:
    return posted.amended, posted.taken


RENEWED: dict[str, Callable[[KeyStore], Any]] = {
    "the buyer's": lambda keys: keys.renew(USER, NOW + DAY, new_key=True),
    "the seller's": lambda keys: keys.renew(RESOURCE, NOW + DAY, new_key=True),
    "both": lambda keys: [keys.renew(name, NOW + DAY, new_key=True) for name in (USER, RESOURCE)],
}


@pytest.mark.parametrize("whose", RENEWED)
def test_a_new_key_does_not_end_a_right(keys: KeyStore, posted: Posted, whose: str) -> None:
    """Cores are taken back of a slot that was bought, amended and taken from before with keys that are gone."""
    RENEWED[whose](keys)
    text = notice(keys, NEXT, posted.bought, *all_changes(posted))
    content = posted.notary(keys).open(text, LATER).content
    assert isinstance(content, c.ReclamationNotice)
    assert content.agreement == posted.bought
    assert content.changes == all_changes(posted)
    assert content.reclamation.signers == (RESOURCE,)


@pytest.mark.parametrize("whose", RENEWED)
def test_a_seller_countersigns_anew_what_its_buyer_signed_then(keys: KeyStore, posted: Posted, whose: str) -> None:
    """So a seller does: it keeps what its buyer has signed, and countersigns whenever it brings that."""
    once = keys.notary(USER).sign(Signed(AGREEMENT), NOW)
    posted.ledger = bought_with(keys.notary(RESOURCE).sign(once, NOW), OFFER.cost)
    old = keys.notary(RESOURCE)
    RENEWED[whose](keys)
    anew = keys.notary(RESOURCE).sign(once, LATER)
    assert posted.notary(keys).verify(anew.document, LATER) == anew
    if whose != "the buyer's":  # the seller's old key countersigns nothing any more
        with pytest.raises(DocumentError):
            posted.notary(keys).verify(old.sign(once, LATER).document, LATER)


OTHER = "thunder2@localhost"


@pytest.mark.parametrize(
    "happens",
    [
        lambda keys: keys.renew(OTHER, NOW + DAY, new_key=True),
        lambda keys: keys.revoke(OTHER, NOW + DAY),
    ],
    ids=["a new key", "a revocation"],
)
def test_nor_does_a_stranger_whose_offer_has_set_the_price(keys: KeyStore, happens: Callable[[KeyStore], Any]) -> None:
    """Under the second-price rule the agreement passes on the sealed offer of a seller that has lost."""
    keys.issue(OTHER, Role.RESOURCE, NOW)
    offer = bound(OFFER, UNIT, SECOND_PRICE)
    runner_up = replace(offer, offer_id="offer-18", resource=OTHER, cpu_hour_cost=60)
    told = Message(Performative.PROPOSE, OTHER, USER, "request-4", c.Proposal("request-4", 1, (runner_up,)))
    seal = keys.notary(OTHER).seal(told, NOW).seal
    price = PricePaid(SECOND_PRICE, runner_up, seal)
    once = keys.notary(USER).sign(Signed(replace(AGREEMENT, offer=offer, price=price, cost=runner_up.cost)), NOW)
    ledger = bought_with(keys.notary(RESOURCE).sign(once, NOW), runner_up.cost)
    happens(keys)
    anew = keys.notary(RESOURCE).sign(once, LATER)
    bank = keys.notary(BANK, KeptDocuments(ledger).kept_at)
    assert bank.verify(anew.document, LATER) == anew
    with pytest.raises(DocumentError):
        keys.notary(BANK).verify(anew.document, LATER)  # who has not kept it cannot know


def test_a_bank_that_keeps_nothing_asks_the_keys_on_file(keys: KeyStore, posted: Posted) -> None:
    RENEWED["the buyer's"](keys)
    with pytest.raises(SignerUnknown, match="is on file"):
        keys.notary(BANK).open(notice(keys, NEXT, posted.bought), LATER)


def test_nor_does_a_certificate_that_was_revoked(keys: KeyStore, posted: Posted) -> None:
    keys.revoke(USER, NOW + DAY)
    assert posted.notary(keys).verify(posted.bought.document, LATER) == posted.bought


@pytest.mark.parametrize("other", ["another agreement", "the same signed anew", "changed"])
def test_what_was_not_posted_is_believed_by_the_keys_on_file_only(keys: KeyStore, posted: Posted, other: str) -> None:
    """The old key, lost or stolen, signs nothing any more: not even the same agreement, countersigned once more."""
    resource = keys.notary(RESOURCE)
    body = replace(AGREEMENT, agreement_id="agreement-8") if other == "another agreement" else AGREEMENT
    made = resource.sign(keys.notary(USER).sign(Signed(body), NOW), NOW + SECOND).document
    if other == "changed":
        made = posted.bought.document.replace('reservationId="R-1"', 'reservationId="R-2"')
        assert made != posted.bought.document
    RENEWED["the buyer's"](keys)
    with pytest.raises(DocumentError):
        posted.notary(keys).verify(made, LATER)


class CountedBook(Book):
    """A ledger that counts which evidence is read."""

    read = 0

    def evidence(self, reference: str, *, after: int = 0) -> tuple[Evidence, ...]:
        found = super().evidence(reference, after=after)
        self.read += len(found)
        return found


def test_what_nobody_has_signed_costs_the_same_however_much_is_kept(keys: KeyStore) -> None:
    """Evidence is read once; what comes later by itself."""
    bought = by_both(keys, AGREEMENT)
    ledger = bought_with(bought, OFFER.cost, CountedBook())
    assert isinstance(ledger, CountedBook)
    kept = KeptDocuments(ledger)
    bogus = bought.document.replace('reservationId="R-1"', 'reservationId="R-2"')
    for count, number in enumerate(range(1, 6), start=1):
        assert kept.kept_at(bogus) is None
        assert ledger.read == count
        assert kept.kept_at(bogus) is None
        assert kept.kept_at(bought.document) == NOW
        assert ledger.read == count
        ledger.void_amendment("agreement-9", number, USER, at=NOW, evidence="withdrawn")


def test_what_is_forgotten_is_read_again(posted: Posted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_documents, "AGREEMENTS_MAX", 1)
    kept = KeptDocuments(posted.ledger)
    posted.ledger.deposit("agreement-8", USER, 1, at=NOW, evidence="<deposit/>")
    for _ in range(2):
        assert kept.kept_at(posted.bought.document) == NOW
        assert kept.kept_at('<Agreement agreementId="agreement-8"/>') is None
        assert kept.kept_at(posted.taken.document) == NOW


def test_what_came_to_nothing_is_not_known(keys: KeyStore, posted: Posted) -> None:
    """Of such a seller may bring as many as there are numbers; nothing ever follows on them."""
    posted.ledger.expire_orders(NOW + 2 * HOUR)
    assert posted.ledger.reclamations("agreement-9")[0].code == "expired"
    kept = KeptDocuments(posted.ledger)
    assert kept.kept_at(posted.taken.document) is None
    assert kept.kept_at(posted.amended.document) == NOW


def test_what_a_sealed_word_passes_on_is_no_evidence_of_itself(keys: KeyStore, posted: Posted) -> None:
    """A withdrawal and the word that cores are taken are kept as well, and are no documents of a slot."""
    ledger = posted.ledger
    ledger.void_amendment("agreement-9", 2, USER, at=NOW, evidence="no sealed text")
    ledger.post_reclamation("agreement-9", 1, RESOURCE, at=NOW + HOUR, evidence="no sealed text")
    kept = KeptDocuments(ledger)
    assert kept.kept_at(posted.taken.document) == NOW
    assert kept.kept_at("no sealed text") is None
    assert kept.kept_at("") is None


def test_a_bank_reads_the_document_of_a_notice_again_byte_for_byte(keys: KeyStore, posted: Posted) -> None:
    texts = [each.text for each in posted.ledger.evidence("agreement-9")]
    assert [noticed_in(text) for text in texts] == [
        None,
        None,
        posted.taken,
    ]  # the agreement and the amendment are none
    word = Message(Performative.REQUEST, RESOURCE, BANK, "request-4", c.ReclamationTaken("agreement-9", 1))
    seal = keys.notary(RESOURCE).seal(word, NOW).seal
    assert seal is not None
    assert noticed_in(seal.text) is None
