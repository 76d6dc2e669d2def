"""The host: order of effects, signatures, faults of peers, plug-in and ledger."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from ramp.errors import EffectFailed, LedgerUnavailable, PluginError, RemoteProtocolError, SealInvalid, StorageFailed
from ramp.ledger.entry import AccountKind
from ramp.model import contents as c
from ramp.model.acl import OFFERS, SEALED, Message, Performative
from ramp.model.agreement import Agreement, Signed
from ramp.model.contents import HoldCancelled as Cancelled
from ramp.model.instant import HOUR
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.model.slot import Slot
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol import events as said
from ramp.protocol.party import Party
from ramp.protocol.records import SlotReleased
from ramp.runtime.guests.health import GuestHealth
from ramp.runtime.guests.questions import GuardedGuest
from ramp.runtime.host import Host, Ports
from ramp.runtime.journal import MemoryJournal
from ramp.runtime.ledger.bank_ledger import BankLedger
from simulation.market.book import Book
from simulation.market.virtual_notary import VirtualNotary

UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
OFFER = Offer("o1", "r1", 1, "res", 60, HOUR, 2 * HOUR, 16, 0.5, HOUR)
RECORD = SlotReleased("o1", "", RefusalCode.CANCELLED, "", 0, None, 1)


class Scripted(Party):
    """A party that returns prepared effects and remembers what it was told."""

    deadline: int | None = None  # type: ignore[assignment]

    def __init__(self, *answers: list[fx.Effect] | Exception) -> None:
        super().__init__("me")
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


QUERY = message(c.DirectoryQuery("q", "resource-trader"))


def sent_by(party: Party, taken: Message = QUERY, **ports: Any) -> list[Message]:
    """What a host sends when its party has taken a message at instant 7."""
    sent: list[Message] = []
    Host(party, Ports(send=sent.append, **ports)).deliver(taken, 7)
    return sent


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
    (answer,) = sent_by(Scripted(RemoteProtocolError("no such thing")))
    assert (answer.performative, answer.receiver, answer.conversation_id, answer.in_reply_to, answer.content) == (
        Performative.NOT_UNDERSTOOD,
        "peer",
        "conversation",
        "w1",
        c.NotUnderstood("no such thing"),
    )


def test_not_understood_is_never_answered_with_not_understood() -> None:
    said_nothing = message(c.NotUnderstood("what?"), Performative.NOT_UNDERSTOOD)
    assert sent_by(Scripted(RemoteProtocolError("no such thing")), said_nothing) == []


AGREEMENT = Agreement("a1", "r1", 1, "alice", "res", "bank", UNIT, OFFER, "R1", OFFER.cost, 0, "order-1", 10**12)
NOTARY = VirtualNotary("me", Role.USER)


def test_what_leaves_is_signed_once_by_the_sender() -> None:
    first = fx.Send(message(Signed(AGREEMENT, ("alice",)), Performative.REQUEST))
    own = fx.Send(message(Signed(AGREEMENT, ("alice", "me")), Performative.REQUEST))
    sent = sent_by(Scripted([first, own]), notary=NOTARY)
    assert [each.content.signers for each in sent] == [("alice", "me"), ("alice", "me")]  # type: ignore[union-attr]
    assert [each.seal for each in sent] == [None, None]  # the document is what counts


VOTE = c.FundsReserved("order-1", "alice", (c.OrderLine("a1", "res", 96_000),), 5, 5, 0)
PAID = c.PaymentMade("a1", "t1", 96_000)
SEAL = Seal("bank", Role.BANK, "me", "r1", 0, "text")


@pytest.mark.parametrize(
    "content", [c.Commitment(Signed(AGREEMENT), VOTE, SEAL), c.Settled("a1", "o1", Signed(AGREEMENT), PAID, SEAL)]
)
def test_an_agreement_within_a_message_is_signed_and_the_whole_is_sealed(content: Any) -> None:
    (left,) = sent_by(Scripted([fx.Send(message(content, sender="me"))]), notary=NOTARY)
    assert left.content.agreement.signers == ("me",)  # type: ignore[union-attr]
    assert (left.seal.signer, left.seal.role, left.seal.signed_at) == ("me", Role.USER, 7)
    assert NOTARY.open(left.seal.text, 7).content == left.content  # sealed after signing


@pytest.mark.parametrize(("sealed", "offers_sealed"), [(SEALED, False), (SEALED | OFFERS, True)])
def test_what_binds_leaves_sealed_and_offers_where_the_market_wants_it(
    sealed: frozenset[type], offers_sealed: bool
) -> None:
    sends = [
        fx.Send(message(content, sender="me"))
        for content in (
            c.Acceptance("r1", "o1"),
            c.Rejection("r1", "o1", "lost"),
            c.DirectoryQuery("q", "resource-trader"),
        )
    ]
    sent = sent_by(Scripted(sends), notary=NOTARY, sealed=sealed)
    assert [each.seal is not None for each in sent] == [True, offers_sealed, False]


def test_an_agreement_is_kept_signed_with_the_banks_word() -> None:
    kept: list[Any] = []
    party = Scripted([fx.SaveAgreement("a1", Signed(AGREEMENT, ("alice",)), "paid, says the bank")])
    ports = Ports(send=lambda _: None, notary=NOTARY, keep_agreement=lambda *what: kept.append(what))
    Host(party, ports).deliver(QUERY, 1)
    ((agreement_id, signed, payment),) = kept
    assert (agreement_id, signed.signers, payment) == ("a1", ("alice", "me"), "paid, says the bank")


class Accounts:
    """A ledger of one account, with an order."""

    def __init__(self) -> None:
        self.ledger = Book()
        self.ledger.open_account("alice", AccountKind.USER, at=1)
        self.ledger.open_account("res", AccountKind.RESOURCE, at=1)
        self.ledger.deposit("d", "alice", 200_000, at=2)
        self.books = BankLedger(self.ledger)

    def reserve(self, order_id: str = "o1", now: int = 10) -> said.OrderStands:
        lines = (c.OrderLine(f"a-{order_id}", "res", 1_000),)
        answer = self.books.answer(fx.ReserveFunds("c", order_id, "alice", lines, 100, "sealed order"), now)
        assert isinstance(answer, said.OrderStands)
        return answer


def test_the_ledger_answers_the_bank_at_its_place_in_the_order() -> None:
    accounts = Accounts()
    party = Scripted([fx.ReserveFunds("c", "o1", "alice", (c.OrderLine("a1", "res", 5),), 100, "")])
    Host(party, Ports(send=lambda _: None, ledger=accounts.books)).deliver(QUERY, 10)
    (_, stands) = party.events
    assert (stands.order.state, stands.order.lines) == (c.OrderState.RESERVED, (c.OrderLine("a1", "res", 5),))


@pytest.mark.parametrize("swept", [True, False])
def test_what_has_run_out_is_void_to_whoever_asks(swept: bool) -> None:
    accounts = Accounts()
    accounts.reserve()
    if swept:
        answer = accounts.books.answer(fx.SweepOrders(), 100)
        assert isinstance(answer, said.OrdersSwept)
        assert [each.state for each in answer.voided] == [c.OrderState.VOIDED]
        assert answer.reserved == ()
    found = accounts.books.answer(fx.LookUpAgreement("c", "a-o1"), 100)
    assert (found.order.state, found.order.code) == (c.OrderState.VOIDED, "expired")


def test_the_overview_comes_in_pages() -> None:
    accounts = Accounts()
    for number in range(600):
        accounts.ledger.deposit(f"d{number}", "alice", 1, at=3 + number)
    trades: list[str] = []
    after, pages = 0, []
    while not pages or after:
        page = accounts.books.answer(fx.LookUpOverview("c", None, None, after), 10**6)
        assert isinstance(page, said.OverviewLookedUp)
        pages.append(len(page.overview.trades))
        trades += [each.transfer_id for each in page.overview.trades]
        after = page.overview.next_after or 0
    assert pages == [250, 250, 101]
    assert len(set(trades)) == 601


def machine_of(plugin: Any, watch: Callable[[Any], None] = lambda _: None) -> GuardedGuest:
    return GuardedGuest(plugin, GuestHealth("plug-in", watch))


class Failing:
    """A ledger, a plug-in and a shelf of agreements that raise what they were given."""

    source = "live"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any) -> Any:
            raise self.error

        return fail


def test_a_plug_in_that_fails_refuses_quotes_and_leaves_the_rest_in_doubt() -> None:
    asked: list[fx.Effect] = [fx.QuoteSlots("c", (UNIT,)), fx.HoldSlot("k", UNIT, Slot(0, 1, 1, 0), 9)]
    asked += [fx.ConfirmSlot("k"), fx.LookUpSlot("k"), fx.ReleaseSlot("k")]
    party, told = Scripted(asked), []
    broken = Failing(PluginError("slurm", "sinfo timed out", transient=True))
    ports = Ports(send=lambda _: None, machine=machine_of(broken, told.append), watch=told.append)
    Host(party, ports).deliver(QUERY, 1)
    down = Refusal(1, RefusalCode.PLUGIN_FAILED, detail="quote: sinfo timed out")
    doubts = [ev.MachineInDoubt(f"{call}: sinfo timed out", True) for call in ("confirm", "reservation", "release")]
    kinds = (ev.SlotConfirmed, ev.SlotLookedUp, ev.SlotFreed)
    expected = [kind("k", doubt) for kind, doubt in zip(kinds, doubts, strict=True)]  # type: ignore[arg-type]
    assert party.events[1:] == [ev.SlotsQuoted("c", (down,)), ev.SlotHeld("k", down), *expected]
    assert [each.reason for each in told] == [down.detail, *(doubt.reason for doubt in doubts)]


def test_an_order_of_somebody_without_an_account_leaves_no_trace() -> None:
    accounts = Accounts()
    entries = accounts.ledger.snapshot()
    refused = accounts.books.answer(fx.ReserveFunds("c", "o9", "mallory", (c.OrderLine("a9", "res", 5),), 100, "x"), 10)
    assert (type(refused), refused.code) == (said.LedgerRefused, "unknown_account")
    assert accounts.ledger.snapshot() == entries
    assert accounts.ledger.order("o9") is None


# -- effects that fail -----------------------------------------------------------------------------------------------


class FullDisk(MemoryJournal):
    """A journal on a disk that is full."""

    def append(self, record: Any) -> None:
        raise StorageFailed("disk full", path="/state/journals/me.sqlite")


ENTRIES = {
    "message": lambda host: host.deliver(QUERY, 1),
    "command": lambda host: host.take(ev.RequestWithdrawn("r1"), 1),
    "tick": lambda host: host.tick(1),
    "perform": lambda host: host.perform([fx.Persist(RECORD), fx.Send(QUERY)], 1),
}


class Ready(Scripted):
    """A party that has something to do on every entry."""

    deadline = 0

    def tick(self, now: int) -> list[fx.Effect]:
        return self.handle("tick", now)  # type: ignore[arg-type]


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_follows_a_record_that_cannot_be_written_is_not_done(entry: str) -> None:
    """By whatever way it was asked for; afterwards the host does nothing more, for its memory is ahead."""
    sent: list[Message] = []
    effects: list[fx.Effect] = [fx.Send(QUERY), fx.Persist(RECORD), fx.Send(QUERY)]
    party = Ready(effects, [fx.Send(QUERY)], [fx.Send(QUERY)])
    host = Host(party, Ports(send=sent.append, journal=FullDisk(), fault=lambda *_: None))
    with pytest.raises(EffectFailed, match=r"me stops because Persist failed: disk full: /state/journals/me.sqlite"):
        ENTRIES[entry](host)
    before = list(sent)
    assert len(before) == (0 if entry == "perform" else 1)  # what came before the record
    for again in ENTRIES.values():
        with pytest.raises(EffectFailed, match="it has ended"):
            again(host)
    assert sent == before


SLOT = Slot(HOUR, 2 * HOUR, 16, 0.5)
WRITES: dict[str, fx.Effect] = {
    "agreement": fx.SaveAgreement("a1", Signed(AGREEMENT, ("me",)), "paid"),
    "hold": fx.HoldSlot("o1", UNIT, SLOT, 9),
    "confirm": fx.ConfirmSlot("o1"),
    "release": fx.ReleaseSlot("o1"),
    "ledger": fx.SweepOrders(),
}
FULL = [OSError(28, "No space left on device"), sqlite3.OperationalError("disk full")]
"""What the system raises where there is no room: of our own writes a failure of storage, in a guest its own affair."""


@pytest.mark.parametrize(
    ("what", "error"),
    [(what, StorageFailed("disk full")) for what in WRITES]
    + [(what, error) for what in ("agreement", "ledger") for error in FULL]
    + [("ledger", LedgerUnavailable("the ledger's database does not answer: disk full"))],
)
def test_every_write_that_fails_ends_the_host(what: str, error: Exception) -> None:
    sent: list[Message] = []
    broken: Any = Failing(error)
    ports = Ports(
        send=sent.append, machine=machine_of(broken), ledger=broken, keep_agreement=broken.keep, fault=lambda *_: None
    )
    host = Host(Scripted([WRITES[what], fx.Send(QUERY)]), ports)
    with pytest.raises(EffectFailed, match="disk full"):
        host.deliver(QUERY, 1)
    assert sent == []


@pytest.mark.parametrize("what", ["hold", "confirm", "release"])
@pytest.mark.parametrize("error", FULL)
def test_a_guest_without_room_leaves_its_machine_in_doubt_and_the_host_alive(what: str, error: Exception) -> None:
    sent: list[Message] = []
    party = Scripted([WRITES[what], fx.Send(QUERY)])
    host = Host(party, Ports(send=sent.append, machine=machine_of(Failing(error))))
    host.deliver(QUERY, 1)
    assert isinstance(party.events[1].answer, ev.MachineInDoubt)  # type: ignore[union-attr]
    assert sent == [QUERY]
    assert host.failure is None


# -- bugs ------------------------------------------------------------------------------------------------------------


class Forgetful(Scripted):
    """A party that can take conversations up again."""

    def __init__(self, *answers: list[fx.Effect] | Exception, resumed: list[fx.Effect] | Exception) -> None:
        super().__init__(*answers)
        self.resumed = resumed
        self.forgotten: list[str] = []

    def resume(self, reference: str, records: Any, now: int) -> list[fx.Effect]:
        self.events.append(("resume", reference, tuple(records)))  # type: ignore[arg-type]
        if isinstance(self.resumed, Exception):
            raise self.resumed
        return self.resumed

    def forget(self, reference: str) -> None:
        self.forgotten.append(reference)


BUG = LookupError("a bug")


def test_a_bug_takes_one_conversation_up_again_at_its_place_in_the_order() -> None:
    """What others of the same moment have to do is done; what was durable before is what it is taken up from."""
    sent: list[Message] = []
    faults: list[tuple[str, Exception]] = []
    one, two, three = (message(c.DirectoryQuery(name, "resource-trader")) for name in ("one", "two", "three"))
    party = Forgetful(
        [fx.Send(one), fx.Persist(RECORD), fx.TakeUpAgain("r1", BUG), fx.Send(three)], resumed=[fx.Send(two)]
    )
    told = lambda reference, error: faults.append((reference, error))  # noqa: E731
    host = Host(party, Ports(send=sent.append, journal=MemoryJournal(), fault=told))
    host.deliver(QUERY, 1)
    assert sent == [one, two, three]
    assert party.events[1:] == [("resume", "r1", (RECORD,))]
    assert faults == [("r1", BUG)]
    host.deliver(QUERY, 2)
    assert host.failure is None


@pytest.mark.parametrize("resumed", [BUG, [fx.TakeUpAgain("r1", BUG)]])
def test_a_conversation_that_raises_again_rests(resumed: Any) -> None:
    party = Forgetful([fx.TakeUpAgain("r1", BUG)], resumed=resumed)
    host = Host(party, Ports(send=lambda _: None, fault=lambda *_: None))
    host.deliver(QUERY, 1)
    assert party.forgotten == ["r1"]
    host.deliver(QUERY, 2)


def test_a_message_that_raises_outside_every_conversation_is_dropped() -> None:
    faults: list[str] = []
    host = Host(Scripted(BUG), Ports(send=lambda _: None, fault=lambda reference, _: faults.append(reference)))
    host.deliver(QUERY, 1)
    assert faults == [""]


def test_without_somebody_to_tell_bugs_raise() -> None:
    """As the simulator and these tests want it: a bug that is taken up again quietly would not be found."""
    for party in (Scripted(BUG), Forgetful([fx.TakeUpAgain("r1", BUG)], resumed=[])):
        with pytest.raises(LookupError, match="a bug"):
            Host(party, Ports(send=lambda _: None)).deliver(QUERY, 1)


def test_a_ledger_operation_that_is_a_bug_ends_at_its_message() -> None:
    """Its transaction was rolled back; but a bank that does not know what is open may not go on."""
    broken: Any = Failing(OverflowError("Python int too large to convert to SQLite INTEGER"))
    faults: list[str] = []
    ports = Ports(send=lambda _: None, ledger=broken, fault=lambda reference, _: faults.append(reference))
    Host(Scripted([fx.LookUpAgreement("call-1", "a1")]), ports).deliver(QUERY, 1)
    assert faults == ["call-1"]
    with pytest.raises(OverflowError):
        Host(Scripted([fx.SweepOrders()]), ports).deliver(QUERY, 1)


def test_questions_to_a_plug_in_end_nobody() -> None:
    broken: Any = Failing(OverflowError("date value out of range"))
    party = Scripted([fx.QuoteSlots("c", (UNIT,)), fx.DescribeMachine("d", 10**18)])
    host = Host(party, Ports(send=lambda _: None, machine=machine_of(broken), fault=lambda *_: None))
    host.deliver(QUERY, 1)
    quoted, described = party.events[1:]
    assert quoted.answers[0].code is RefusalCode.PLUGIN_FAILED  # type: ignore[union-attr]
    assert isinstance(described, ev.MachineDescribed)
    assert "OverflowError" in described.snapshot


def test_a_message_that_cannot_be_sealed_is_answered_at_once_and_ends_nobody() -> None:
    """What a peer has invented may stand in it; the others of the same moment go out."""

    class Refusing(VirtualNotary):
        def seal(self, message: Message, now: int) -> Message:
            if message.conversation_id == "bad":
                raise SealInvalid("conversation-id contains a line break")
            return super().seal(message, now)

    sent: list[Message] = []
    unsent: list[Message] = []
    content = Cancelled("r1", "o1")
    good, bad = (Message(Performative.CANCEL, "me", "peer", name, content) for name in ("good", "bad"))
    ports = Ports(send=sent.append, notary=Refusing("me", Role.RESOURCE))
    ports.unsent = lambda message, _: unsent.append(message)
    party = Scripted([fx.Send(bad), fx.Send(good)])
    host = Host(party, ports)
    host.deliver(QUERY, 1)
    assert [each.conversation_id for each in sent] == ["good"]
    assert unsent == [bad]
    returned = party.events[-1]
    assert isinstance(returned, Message)
    assert (returned.sender, returned.conversation_id) == ("me", "bad")
    assert returned.content == c.NotUnderstood("conversation-id contains a line break")
