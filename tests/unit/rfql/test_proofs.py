"""What is passed on: the bank's vote in a commitment, its payment in a settlement, a resource's failure in a claim."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ramp.errors import DocumentError, SealInvalid
from ramp.model import contents
from ramp.model.acl import EncodedMessage, Message, Performative
from ramp.model.agreement import Signed
from ramp.model.instant import MINUTE, Instant
from ramp.rfql import codec, documents
from ramp.runtime.keys.store import KeyStore
from tests.unit.rfql.conftest import AGREEMENT, BANK, CANCELLATION, MALLORY, NOW, RESOURCE, USER
from tests.unit.rfql.forgery import seal_of


@pytest.fixture
def vote() -> contents.FundsReserved:
    lines = (contents.OrderLine("agreement-9", RESOURCE, AGREEMENT.cost),)
    return contents.FundsReserved("order-6", USER, lines, 10 * MINUTE, NOW + 10 * MINUTE, NOW)


@pytest.fixture
def commitment(store: KeyStore, signed: Signed, vote: contents.FundsReserved) -> contents.Commitment:
    return contents.Commitment(signed, vote, seal_of(store.notary(BANK), Performative.AGREE, USER, vote, NOW))


PAYMENT = contents.PaymentMade("agreement-9", "transfer-5", 704_000)


@pytest.fixture
def settled(store: KeyStore, countersigned: Signed) -> contents.Settled:
    seal = seal_of(store.notary(BANK), Performative.AGREE, RESOURCE, PAYMENT, NOW)
    return contents.Settled("agreement-9", "offer-17", countersigned, PAYMENT, seal)


Pass = Callable[[Performative, str, str, contents.Content], contents.Content]


@pytest.fixture
def passed(store: KeyStore) -> Pass:
    """The content as the receiver reads it, sealed by the sender and sent."""

    def run(performative: Performative, sender: str, receiver: str, content: contents.Content) -> contents.Content:
        message = store.notary(sender).seal(Message(performative, sender, receiver, "request-4", content), NOW)
        arrived = replace(codec.encode(message), peer=sender)
        return codec.decode(arrived, receiver, store.notary(receiver), NOW).content

    return run


def test_commitment_whose_proofs_do_not_hold_is_unverified(
    passed: Pass, store: KeyStore, commitment: contents.Commitment, signed: Signed
) -> None:
    """The user writes the vote itself, changes it, or signs another agreement; the resource can say so to it."""

    def refused(content: contents.Commitment) -> tuple[str, str, str, str]:
        read = passed(Performative.CONFIRM, USER, RESOURCE, content)
        assert isinstance(read, contents.Unverified)
        return read.kind, read.reference, read.code, read.detail

    def with_text(text: str) -> contents.Commitment:
        return replace(commitment, vote_seal=replace(commitment.vote_seal, text=text))

    text = commitment.vote_seal.text
    bad_signature = ("agreement", "agreement-9", "bad_signature")
    assert refused(with_text(text.replace('cost="704000"', 'cost="1"')))[:3] == bad_signature
    assert "does not fit" in refused(with_text(text.replace("PT600S", "PT60000S")))[3]
    assert "does not begin" in refused(with_text("yes"))[3]
    paid = seal_of(store.notary(BANK), Performative.AGREE, USER, PAYMENT, NOW)
    assert "expected a FundsReserved" in refused(with_text(paid.text))[3]
    forged = signed.document.replace('cost="704000"', 'cost="1"')
    assert refused(replace(commitment, agreement=replace(signed, document=forged)))[:3] == bad_signature
    assert refused(replace(commitment, agreement=replace(signed, document="<a")))[:3] == ("agreement", "", "malformed")


def test_commitment_without_a_seal_is_not_even_read(store: KeyStore, commitment: contents.Commitment) -> None:
    """Else anybody could have signatures verified, and be answered, in a user's name."""
    seal = replace(commitment.vote_seal, text="yes")
    for content in (commitment, replace(commitment, vote_seal=seal)):
        message = Message(Performative.CONFIRM, USER, RESOURCE, "request-4", content)
        encoded = codec.encode(store.notary(USER).seal(message, NOW))
        kept = ("version", "performative", "ontology", "language")
        plain = {name: encoded.metadata[name] for name in kept}
        with pytest.raises(SealInvalid, match="Commitment without a seal"):
            codec.decode(EncodedMessage(USER, encoded.body, plain, "request-4"), RESOURCE, store.notary(RESOURCE), NOW)


def test_commitment_of_a_cancellation_is_unverified(
    passed: Pass, store: KeyStore, commitment: contents.Commitment
) -> None:
    signed = store.notary(USER).sign(Signed(CANCELLATION), NOW)
    read = passed(Performative.CONFIRM, USER, RESOURCE, replace(commitment, agreement=signed))
    assert isinstance(read, contents.Unverified)
    assert (read.code, "ContractChange" in read.detail) == ("malformed", True)


def test_vote_by_somebody_who_is_no_bank_is_unverified(
    passed: Pass, store: KeyStore, commitment: contents.Commitment, vote: contents.FundsReserved
) -> None:
    """Mallory has a user's certificate; nothing she seals is a vote, whatever she calls herself."""
    with pytest.raises(SealInvalid, match="for a FundsReserved: got user, expected bank"):
        seal_of(store.notary(MALLORY), Performative.AGREE, USER, vote, NOW)
    text = commitment.vote_seal.text.replace("from: bank@localhost", "from: mallory@localhost")
    read = passed(
        Performative.CONFIRM, USER, RESOURCE, replace(commitment, vote_seal=replace(commitment.vote_seal, text=text))
    )
    assert isinstance(read, contents.Unverified)


def test_settlement_whose_proofs_do_not_hold_is_refused(
    passed: Pass, settled: contents.Settled, commitment: contents.Commitment
) -> None:
    forged = replace(settled.payment_seal, text=settled.payment_seal.text.replace('amount="704000"', 'amount="1"'))
    with pytest.raises(SealInvalid, match="does not fit"):
        passed(Performative.INFORM, RESOURCE, USER, replace(settled, payment_seal=forged))
    with pytest.raises(SealInvalid, match="got a FundsReserved, expected a PaymentMade"):
        passed(Performative.INFORM, RESOURCE, USER, replace(settled, payment_seal=commitment.vote_seal))
    changed = replace(settled.agreement, document=settled.agreement.document.replace("704000", "704001"))
    with pytest.raises(DocumentError, match="does not verify"):
        passed(Performative.INFORM, RESOURCE, USER, replace(settled, agreement=changed))


@pytest.mark.parametrize("change", [{"agreement_id": "agreement-10"}, {"offer_id": "offer-18"}])
def test_settlement_with_another_agreement_s_proof_is_refused(
    passed: Pass, settled: contents.Settled, change: dict[str, str]
) -> None:
    with pytest.raises(DocumentError, match="proof of something else"):
        passed(Performative.INFORM, RESOURCE, USER, replace(settled, **change))  # type: ignore[arg-type]


def test_settlement_with_another_payment_is_refused(passed: Pass, store: KeyStore, settled: contents.Settled) -> None:
    other = replace(PAYMENT, agreement_id="agreement-10")
    seal = seal_of(store.notary(BANK), Performative.AGREE, RESOURCE, other, NOW)
    with pytest.raises(DocumentError, match="proof of something else"):
        passed(Performative.INFORM, RESOURCE, USER, replace(settled, payment=other, payment_seal=seal))


def test_what_is_passed_on_passes_nothing_on_itself(store: KeyStore, commitment: contents.Commitment) -> None:
    """A proof within a proof within a proof would have the reader verify for as long as the sender likes."""
    nested = seal_of(store.notary(USER), Performative.CONFIRM, RESOURCE, commitment, NOW)
    body = documents.write_content(replace(commitment, vote_seal=nested))

    class Counting:
        opened = 0

        def verify(self, document: str, now: Instant) -> Signed:
            return commitment.agreement

        def open(self, text: str, now: Instant) -> Message:
            self.opened += 1
            raise AssertionError("not reached")

    read = documents.read_content(body, Counting(), NOW)
    assert isinstance(read, contents.Unverified)
    assert "got a Commitment, expected a FundsReserved" in read.detail


def test_proofs_that_are_missing_are_not_sent(commitment: contents.Commitment, settled: contents.Settled) -> None:
    for content in (
        replace(commitment, agreement=Signed(AGREEMENT)),
        replace(commitment, vote_seal=replace(commitment.vote_seal, text="")),
        replace(settled, agreement=Signed(AGREEMENT)),
        replace(settled, payment_seal=replace(settled.payment_seal, text="")),
    ):
        with pytest.raises(DocumentError, match=r"not signed|not sealed"):
            documents.write_content(content)
