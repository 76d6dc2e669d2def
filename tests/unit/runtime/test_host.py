"""The host: order of effects, signatures, faults of peers, plug-in and ledger."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.errors import PluginError, RemoteProtocolError
from ramp.ledger.account import AccountKind
from ramp.ledger.book import Book
from ramp.model.acl import Message, Performative
from ramp.model.agreement import AccountQuery, Agreement, Cancellation, Signed
from ramp.model.contents import (
    AccountQueryRefused,
    AccountStatement,
    Confirmed,
    DirectoryQuery,
    NotUnderstood,
    PaymentMade,
    PaymentRefused,
    RefundMade,
    RefundRefused,
    Unverified,
)
from ramp.model.instant import HOUR
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Slot
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.bank_party import BankParty
from ramp.protocol.records import SlotReleased
from ramp.protocol.timing import Timing
from ramp.runtime.host import Host, Ports
from ramp.runtime.journal import MemoryJournal
from simulation.market.virtual_notary import VirtualNotary

UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
OFFER = Offer("o1", "r1", 1, "res", 60, HOUR, 2 * HOUR, 16, 0.5, HOUR)
RECORD = SlotReleased("o1", "", RefusalCode.CANCELLED, "", 0, 1)


class Scripted:
    """A party that returns prepared effects and remembers what it was told."""

    name = "me"
    deadline: int | None = None

    def __init__(self, *answers: list[fx.Effect] | Exception) -> None:
        self.answers = list(answers)
        self.events: list[ev.Event] = []

    def start(self, now: int) -> list[fx.Effect]:
        self.events.append("start")  # type: ignore[arg-type]
        return []

    def recover(self, records: Any, now: int) -> list[fx.Effect]:
        self.events.append(("recover", tuple(records)))  # type: ignore[arg-type]
        return []

    def tick(self, now: int) -> list[fx.Effect]:
        self.events.append("tick")  # type: ignore[arg-type]
        return []

    def handle(self, event: ev.Event, now: int) -> list[fx.Effect]:
        self.events.append(event)
        answer = self.answers.pop(0) if self.answers else []
        if isinstance(answer, Exception):
            raise answer
        return answer


def message(content: Any, performative: Performative = Performative.QUERY_REF, sender: str = "peer") -> Message:
    return Message(performative, sender, "me", "conversation", content, reply_with="w1")


QUERY = message(DirectoryQuery("q", "resource-trader"))


def test_effects_are_carried_out_in_order() -> None:
    done: list[str] = []

    class Journal(MemoryJournal):
        def append(self, record: Any) -> None:
            done.append("persist")
            super().append(record)

    party = Scripted([fx.Persist(RECORD), fx.Send(QUERY), fx.Persist(RECORD), fx.Send(QUERY)])
    host = Host(party, Ports(send=lambda _: done.append("send"), journal=Journal()))
    host.deliver(QUERY, 1)
    assert done == ["persist", "send", "persist", "send"]


def test_a_crash_before_an_effect_leaves_the_later_ones_undone() -> None:
    sent: list[Message] = []

    def crash(effect: fx.Effect) -> None:
        if effect == fx.Send(QUERY):
            raise RuntimeError("crash")

    journal = MemoryJournal()
    host = Host(
        Scripted([fx.Persist(RECORD), fx.Send(QUERY), fx.Persist(RECORD)]),
        Ports(send=sent.append, journal=journal, before=crash),
    )
    with pytest.raises(RuntimeError, match="crash"):
        host.deliver(QUERY, 1)
    assert journal.records() == (RECORD,)
    assert sent == []


def test_a_host_goes_on_where_its_journal_ends() -> None:
    fresh = Scripted()
    Host(fresh, Ports(send=lambda _: None, journal=MemoryJournal())).start(1)
    assert fresh.events == ["start"]
    journal = MemoryJournal()
    journal.append(RECORD)
    again = Scripted()
    Host(again, Ports(send=lambda _: None, journal=journal)).start(1)
    assert again.events == [("recover", (RECORD,))]


def test_a_tick_before_the_deadline_does_nothing() -> None:
    party = Scripted()
    host = Host(party, Ports(send=lambda _: None))
    host.tick(5)
    party.deadline = 10
    host.tick(9)
    assert party.events == []
    host.tick(10)
    assert party.events == ["tick"]


def test_a_message_that_has_no_place_is_answered_not_understood() -> None:
    sent: list[Message] = []
    host = Host(Scripted(RemoteProtocolError("no such thing")), Ports(send=sent.append))
    host.deliver(QUERY, 1)
    (answer,) = sent
    assert (answer.performative, answer.receiver, answer.conversation_id, answer.in_reply_to, answer.content) == (
        Performative.NOT_UNDERSTOOD,
        "peer",
        "conversation",
        "w1",
        NotUnderstood("no such thing"),
    )


def test_not_understood_is_never_answered_with_not_understood() -> None:
    sent: list[Message] = []
    host = Host(Scripted(RemoteProtocolError("no such thing")), Ports(send=sent.append))
    host.deliver(message(NotUnderstood("what?"), Performative.NOT_UNDERSTOOD), 1)
    assert sent == []


def agreement(agreement_id: str = "a1", cost: int = OFFER.cost, offer: Offer = OFFER) -> Agreement:
    return Agreement(agreement_id, "r1", 1, "alice", "res", "bank", UNIT, offer, "R1", cost, 0, 10**12)


def test_what_leaves_is_signed_once_by_the_sender() -> None:
    sent: list[Message] = []
    first = fx.Send(message(Signed(agreement(), ("alice",)), Performative.REQUEST))
    own = fx.Send(message(Signed(agreement(), ("alice", "me")), Performative.REQUEST))
    host = Host(Scripted([first, own]), Ports(send=sent.append, notary=VirtualNotary("me")))
    host.deliver(QUERY, 1)
    assert [each.content.signers for each in sent] == [("alice", "me"), ("alice", "me")]  # type: ignore[union-attr]


class Broken:
    """A plug-in whose batch system does not answer."""

    source = "live"

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any) -> Any:
            raise PluginError("slurm", "sinfo timed out", transient=True)

        return fail


def test_a_plug_in_that_fails_refuses() -> None:
    party = Scripted([fx.QuoteSlots("c", (UNIT,)), fx.HoldSlot("k", UNIT, Slot(0, 1, 1, 0), 9), fx.ConfirmSlot("k")])
    Host(party, Ports(send=lambda _: None, plugin=Broken())).deliver(QUERY, 1)  # type: ignore[arg-type]
    answers = party.events[1:]
    down = Refusal(1, RefusalCode.PLUGIN_FAILED, detail="sinfo timed out")
    assert answers[:2] == [ev.SlotsQuoted("c", (down,)), ev.SlotHeld("k", down)]
    assert isinstance(answers[2], ev.SlotConfirmed)
    assert isinstance(answers[2].answer, Refusal)


class Bank:
    """A bank over a ledger in memory; alice has 2000 credits."""

    def __init__(self) -> None:
        self.ledger = Book()
        self.sent: list[Message] = []
        for name, kind in (("alice", AccountKind.USER), ("mallory", AccountKind.USER), ("res", AccountKind.RESOURCE)):
            self.ledger.open_account(name, kind, at=1)
        self.ledger.open_account("other", AccountKind.RESOURCE, at=1)
        self.ledger.deposit("d", "alice", 200_000, at=2)
        self.host = Host(BankParty("bank", timing=Timing()), Ports(send=self.sent.append, ledger=self.ledger))

    def ask(self, content: Any, performative: Performative = Performative.REQUEST, now: int = 10) -> Any:
        self.sent.clear()
        self.host.deliver(message(content, performative, "res"), now)
        return self.sent[0].content

    def pay(self, body: Agreement, now: int = 10) -> Any:
        return self.ask(Signed(body, (body.user, body.resource)), now=now)


@pytest.fixture
def bank() -> Bank:
    return Bank()


def test_the_bank_pays_an_agreement_once(bank: Bank) -> None:
    first, second = bank.pay(agreement()), bank.pay(agreement())
    assert first == second == PaymentMade("a1", first.transfer_id, 96_000)
    assert bank.ledger.balance("res").posted == 96_000


def test_an_agreement_id_paid_on_other_terms_is_refused_and_stays_paid(bank: Bank) -> None:
    bank.pay(agreement())
    cheap = Offer("o2", "r1", 1, "res", 1, HOUR, 2 * HOUR, 16, 0.5, HOUR)
    refused = bank.pay(agreement(cost=cheap.cost, offer=cheap))
    assert (type(refused), refused.code) == (PaymentRefused, "duplicate_differs")
    assert type(bank.pay(agreement())) is PaymentMade


def test_an_impossible_agreement_id_does_not_stop_the_bank(bank: Bank) -> None:
    refused = bank.pay(agreement('"quoted" and spaced'))
    assert type(refused) is PaymentRefused
    assert type(bank.pay(agreement())) is PaymentMade


def test_what_was_refused_stays_refused(bank: Bank) -> None:
    poor = Offer("o2", "r1", 1, "res", 600, HOUR, 2 * HOUR, 16, 0.5, HOUR)
    first = bank.pay(agreement(cost=poor.cost, offer=poor))
    assert first.code == "insufficient_funds"
    bank.ledger.deposit("d2", "alice", 10**9, at=11)
    assert bank.pay(agreement(cost=poor.cost, offer=poor)).code == "insufficient_funds"


def test_a_refusal_for_a_signature_is_final_but_payment_comes_first(bank: Bank) -> None:
    broken = Unverified("agreement", "a1", "bad_signature", "the digest does not fit")
    assert bank.ask(broken).code == "bad_signature"
    assert bank.pay(agreement()).code == "bad_signature"
    bank.pay(agreement("a2"))
    assert type(bank.ask(Unverified("agreement", "a2", "bad_signature", ""))) is PaymentMade


def test_an_agreement_that_comes_after_its_validity_is_refused_unless_paid(bank: Bank) -> None:
    assert bank.pay(agreement(), now=10**12 + 1).code == "expired"
    bank.pay(agreement("a2"))
    assert type(bank.pay(agreement("a2"), now=10**12 + 1)) is PaymentMade


def cancellation(resource: str = "res", user: str = "alice") -> Signed:
    return Signed(Cancellation("c1", "a1", "o1", user, resource, False, "", 0), (user, resource))


def test_a_refund_is_for_the_two_who_paid(bank: Bank) -> None:
    bank.pay(agreement())
    for stranger in (cancellation(resource="other"), cancellation(user="mallory")):
        refused = bank.ask(stranger)
        assert (type(refused), refused.code) == (RefundRefused, "bad_terms")
    assert bank.ledger.balance("res").posted == 96_000
    assert type(bank.ask(cancellation())) is RefundMade
    assert bank.ledger.balance("res").posted == 0


def query(nonce: str, issued_at: int = 10) -> Signed:
    return Signed(AccountQuery(nonce, "alice", issued_at), ("alice",))


def test_an_account_query_is_answered_once(bank: Bank) -> None:
    answer = bank.ask(query("n1"), Performative.QUERY_REF)
    assert isinstance(answer, AccountStatement)
    assert answer.balance == 200_000
    again = bank.ask(query("n1"), Performative.QUERY_REF)
    assert (type(again), again.code) == (AccountQueryRefused, "replayed")


def test_an_account_query_of_another_time_or_without_sense_is_refused(bank: Bank) -> None:
    old = bank.ask(query("n1"), Performative.QUERY_REF, now=10 + Timing().account_query_age + 1)
    assert old.code == "expired"
    assert type(bank.ask(query('"n 2"'), Performative.QUERY_REF)) is AccountQueryRefused


def test_what_is_nothing_for_a_bank(bank: Bank) -> None:
    assert isinstance(bank.ask(Confirmed("a1", "o1"), Performative.CONFIRM), NotUnderstood)
