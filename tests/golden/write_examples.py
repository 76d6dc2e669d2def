"""Writes anew what is signed among `schemas/examples`; to be run by hand when a signed document has changed.

    python tests/golden/write_examples.py

Each run makes a new authority, whose key it forgets, so all signed examples change together; the others are written by
hand. What the examples say is fixed here, and the tests beside this file check the signatures by other means.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from ramp.model import contents
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, PricePaid, Signed, end_of
from ramp.model.called_terms import bound
from ramp.model.instant import HOUR, MINUTE, SECOND, from_iso
from ramp.model.offer import Offer, RefusalCode
from ramp.model.price_paid import SECOND_PRICE
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.model.sizes.amended import state_digest
from ramp.rfql import documents
from ramp.rfql.signing.notary import XmlNotary
from ramp.runtime.keys.store import KeyStore

EXAMPLES = Path(__file__).resolve().parents[2] / "schemas" / "examples"
NOW = from_iso("2026-11-21T08:00:00Z")
USER, RESOURCE, BANK, KEEPER = "alice@localhost", "thunder1@localhost", "bank@localhost", "keeper@localhost"
OTHER = "ricc1@localhost"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = KeyStore(Path(folder) / "keys")
        store.create_ca(NOW)
        parties = {USER: Role.USER, RESOURCE: Role.RESOURCE, OTHER: Role.RESOURCE, BANK: Role.BANK, KEEPER: Role.KEEPER}
        for name, role in parties.items():
            store.issue(name, role, NOW)
        (EXAMPLES / "market-ca.pem").write_bytes((store.folder / "ca.pem").read_bytes())
        write(*(store.notary(name) for name in (USER, RESOURCE, BANK, KEEPER)))
        write_changes(*(store.notary(name) for name in (USER, RESOURCE, BANK)))
        write_second_price(*(store.notary(name) for name in (USER, RESOURCE, OTHER)))


def write(user: XmlNotary, resource: XmlNotary, bank: XmlNotary, keeper: XmlNotary) -> None:
    agreement = signed_agreement()
    once = user.sign(Signed(agreement), NOW)
    twice = resource.sign(once, NOW + SECOND)
    cancellation = ContractChange(
        "agreement-9", 0, "offer-17", USER, RESOURCE, BANK, NOW + MINUTE, reason="not needed any more"
    )
    failure = end_of(agreement, "the machine is down", NOW + MINUTE, RefusalCode.PLUGIN_FAILED)
    cancelled = user.sign(Signed(cancellation), NOW)
    for name, signed in (
        ("agreement", once),
        ("countersigned-agreement", twice),
        ("cancellation", cancelled),
        ("countersigned-cancellation", resource.sign(cancelled, NOW + 2 * MINUTE)),
        ("failure", resource.sign(Signed(failure), NOW)),
    ):
        _write(f"valid/{name}.xml", signed.document)
    _invalid("agreement-unsigned", "an agreement is signed | names: signatures: got 0", documents.write_body(agreement))
    changed = twice.document.replace('cost="2112000"', 'cost="1"')
    _invalid("agreement-cost-changed", "signatures cover the whole document | names: signature | verify", changed)

    lines = (contents.OrderLine("agreement-9", RESOURCE, agreement.cost),)
    vote = contents.FundsReserved("order-6", USER, lines, 10 * MINUTE, NOW + 10 * MINUTE, NOW)
    payment = contents.PaymentMade("agreement-9", "transfer-5", agreement.cost)
    vote_seal = _sealed(bank, Performative.AGREE, USER, "request-4", vote, "order-6-1")
    payment_seal = _sealed(bank, Performative.AGREE, RESOURCE, "request-4", payment, "agreement-9-1")
    deposit = contents.DepositOrder("deposit-1", USER, 1_000_000, "allocation of the second quarter")
    _sealed(keeper, Performative.REQUEST, BANK, "deposit-1", deposit, "")

    proofs = {
        "commitment": contents.Commitment(once, vote, vote_seal),
        "settled": contents.Settled("agreement-9", "offer-17", twice, payment, payment_seal),
    }
    for name, content in proofs.items():
        document = documents.write_content(content)
        _write(f"valid/{name}.xml", document)
        head, _, sealed = document.rpartition("<SealedMessage>")
        forged = f"{head}<SealedMessage>{sealed.replace('agreement-9', 'agreement-8')}"
        assert forged != document
        _invalid(f"{name}-forged", "what is passed on is as it was sealed | names: the seal does not fit", forged)


def write_changes(user: XmlNotary, resource: XmlNotary, bank: XmlNotary) -> None:
    agreement = signed_agreement()
    first = ContractChange(
        agreement_id=agreement.agreement_id,
        number=1,
        previous=state_digest(agreement),
        offer_id=agreement.offer.offer_id,
        user=USER,
        resource=RESOURCE,
        bank=BANK,
        cores=64,
        until=agreement.offer.end,
        effective_at=NOW + 2 * HOUR,
        # half of the cores for two of three hours, of 21 120.00 credits: a third
        amount=-704_000,
        issued_at=NOW + 90 * MINUTE,
        valid_until=NOW + 2 * HOUR + 2 * MINUTE,
    )
    # an hour of the 64 cores that are left: a sixth
    second = replace(
        first,
        number=3,
        previous=state_digest(first),
        until=NOW + 3 * HOUR,
        effective_at=NOW + 150 * MINUTE,
        amount=-352_000,
        issued_at=NOW + 140 * MINUTE,
        valid_until=NOW + 152 * MINUTE,
    )
    for name, body in (("change", first), ("second-change", second)):
        once = user.sign(Signed(body), NOW)
        twice = resource.sign(once, body.effective_at + SECOND)
        _write(f"valid/{name}.xml", once.document)
        _write(f"valid/countersigned-{name}.xml", twice.document)
        if body is first:
            _invalid("change-unsigned", "a change is signed | names: signatures: got 0", documents.write_body(body))
            changed = twice.document.replace('amount="-704000"', 'amount="-704001"')
            _invalid("change-refund-changed", "signatures cover the whole document | names: signature", changed)
            backwards = replace(body, effective_at=body.issued_at)
            _invalid(
                "change-at-once",
                "a change takes effect after its issue | names: are not in this order",
                user.sign(Signed(backwards), NOW).document,
            )
            nothing = replace(body, amount=0)
            _invalid(
                "change-for-nothing",
                "a change moves money | names: expected either an amount below zero",
                user.sign(Signed(nothing), NOW).document,
            )
            end = ContractChange(
                *(agreement.agreement_id, 0, agreement.offer.offer_id, USER, RESOURCE, BANK, NOW), cores=1
            )
            _invalid(
                "cancellation-with-cores",
                "a change that ends an agreement leaves nothing | names: leaves no cores",
                user.sign(Signed(end), NOW).document,
            )
            posted = contents.ChangePosted("agreement-9", 1, "refund:agreement-9#1", -704_000)
            seal = _sealed(bank, Performative.AGREE, RESOURCE, "request-4", posted, "agreement-9#1")
            document = documents.write_content(contents.ChangeDone(twice, posted, seal))
            _write("valid/change-done.xml", document)
            head, _, sealed = document.rpartition("<SealedMessage>")
            forged = f"{head}<SealedMessage>{sealed.replace('agreement-9', 'agreement-8')}"
            _invalid(
                "change-done-forged", "what is passed on is as it was sealed | names: the seal does not fit", forged
            )


def write_second_price(user: XmlNotary, resource: XmlNotary, other: XmlNotary) -> None:
    """Sign, seal and write an agreement whose price another resource's offer sets."""
    agreement = signed_agreement()
    offer = bound(agreement.offer, agreement.request, SECOND_PRICE)
    runner_up = replace(offer, offer_id="offer-18", resource=OTHER, cpu_hour_cost=60)
    proposal = contents.Proposal("request-4", 1, (runner_up,))
    _write("valid/proposal-second-price.xml", documents.write_content(proposal))
    seal = _sealed(other, Performative.PROPOSE, USER, "request-4", proposal, "request-4/round/1")
    price = PricePaid(SECOND_PRICE, runner_up, seal)
    paid = replace(agreement, offer=offer, price=price, cost=runner_up.cost)
    once = user.sign(Signed(paid), NOW)
    _write("valid/agreement-second-price.xml", once.document)
    _write("valid/countersigned-agreement-second-price.xml", resource.sign(once, NOW + SECOND).document)
    lower = replace(seal, text=seal.text.replace('cpuHourCost="60"', 'cpuHourCost="56"'))
    forged = replace(paid, price=replace(price, seal=lower), cost=56 * offer.cores * 3 * 100)
    document = user.sign(Signed(forged), NOW).document
    _invalid(
        "agreement-runner-up-forged", "what sets the price is as it was sealed | names: the seal does not", document
    )
    elsewhere = replace(paid, price=replace(price, runner_up=replace(runner_up, offer_id="offer-19")))
    document = user.sign(Signed(elsewhere), NOW).document
    _invalid("agreement-runner-up-elsewhere", "the offer is in the proposal | names: offer-19 | is not in", document)


def signed_agreement() -> Agreement:
    unit = RequestUnit(1, 70, NOW + 4 * HOUR, TotalCores(128), NOW + HOUR)
    offer = Offer("offer-17", "request-4", 1, RESOURCE, 55, NOW + HOUR, NOW + 4 * HOUR, 128, 0.25, 30 * SECOND, "log")
    return Agreement(
        agreement_id="agreement-9",
        request_id="request-4",
        units_total=2,
        user=USER,
        resource=RESOURCE,
        bank=BANK,
        request=unit,
        offer=offer,
        reservation_id="thunder1-000123",
        cost=offer.cost,
        issued_at=NOW,
        order_id="order-6",
        valid_until=NOW + 10 * MINUTE,
    )


def _sealed(
    notary: XmlNotary,
    performative: Performative,
    receiver: str,
    conversation_id: str,
    content: contents.Content,
    in_reply_to: str,
) -> Seal:
    message = Message(performative, notary.name, receiver, conversation_id, content, in_reply_to=in_reply_to)
    seal = notary.seal(message, NOW).seal
    assert seal is not None
    name = type(content).__name__
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("-")
    (EXAMPLES / "sealed").mkdir(exist_ok=True)
    (EXAMPLES / "sealed" / f"{words}.txt").write_text(seal.text, "utf-8")
    return seal


def _write(name: str, document: str) -> None:
    (EXAMPLES / name).write_text(document + "\n", "utf-8")


def _invalid(name: str, rule: str, document: str) -> None:
    _write(f"invalid/{name}.xml", f"<!-- rule: {rule} -->\n{document}")


if __name__ == "__main__":
    main()
