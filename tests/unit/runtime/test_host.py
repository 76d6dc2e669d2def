"""The host: order of effects, signatures, faults of peers, plug-in and ledger."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from ramp.errors import EffectFailed, LedgerUnavailable, PluginError, RemoteProtocolError, SealInvalid, StorageFailed
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Signed
from ramp.model.contents import DirectoryQuery, NotUnderstood
from ramp.model.contents import HoldCancelled as Cancelled
from ramp.model.instant import HOUR
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.slot import Slot
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.records import SlotReleased
from ramp.runtime.host import Host, Ports
from ramp.runtime.journal import MemoryJournal
from simulation.market.virtual_notary import VirtualNotary

UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
OFFER = Offer("o1", "r1", 1, "res", 60, HOUR, 2 * HOUR, 16, 0.5, HOUR)
RECORD = SlotReleased("o1", "", RefusalCode.CANCELLED, "", 0, None, 1)


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
    return Agreement(agreement_id, "r1", 1, "alice", "res", "bank", UNIT, offer, "R1", cost, 0, "order-1", 10**12)


def test_what_leaves_is_signed_once_by_the_sender() -> None:
    sent: list[Message] = []
    first = fx.Send(message(Signed(agreement(), ("alice",)), Performative.REQUEST))
    own = fx.Send(message(Signed(agreement(), ("alice", "me")), Performative.REQUEST))
    host = Host(Scripted([first, own]), Ports(send=sent.append, notary=VirtualNotary("me", Role.RESOURCE)))
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


# -- effects that fail -----------------------------------------------------------------------------------------------


class FullDisk(MemoryJournal):
    """A journal on a disk that is full."""

    def append(self, record: Any) -> None:
        raise StorageFailed("disk full", path="/state/journals/me.sqlite")


ENTRIES = {
    "message": lambda host: host.deliver(QUERY, 1),
    "command": lambda host: host.command(ev.RequestWithdrawn("r1"), 1),
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
    with pytest.raises(EffectFailed, match=r"me cannot go on \(Persist\): disk full: /state/journals/me.sqlite"):
        ENTRIES[entry](host)
    before = list(sent)
    assert len(before) == (0 if entry == "perform" else 1)  # what came before the record
    for again in ENTRIES.values():
        with pytest.raises(EffectFailed, match="it has ended"):
            again(host)
    assert sent == before


class Failing:
    """A ledger, a plug-in and a shelf of agreements that raise what they were given."""

    source = "live"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any) -> Any:
            raise self.error

        return fail


SLOT = Slot(HOUR, 2 * HOUR, 16, 0.5)
WRITES: dict[str, fx.Effect] = {
    "agreement": fx.SaveAgreement("a1", Signed(agreement(), ("me",)), "paid"),
    "hold": fx.HoldSlot("o1", UNIT, SLOT, 9),
    "confirm": fx.ConfirmSlot("o1"),
    "release": fx.ReleaseSlot("o1"),
    "ledger": fx.SweepOrders(),
}


@pytest.mark.parametrize("what", WRITES)
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), StorageFailed("disk full"), sqlite3.OperationalError("disk full")]
)
def test_every_write_that_fails_ends_the_host(what: str, error: Exception) -> None:
    sent: list[Message] = []
    broken: Any = Failing(error)
    ports = Ports(send=sent.append, plugin=broken, ledger=broken, keep_agreement=broken.keep, fault=lambda *_: None)
    host = Host(Scripted([WRITES[what], fx.Send(QUERY)]), ports)
    with pytest.raises(EffectFailed, match="disk full"):
        host.deliver(QUERY, 1)
    assert sent == []


def test_a_ledger_that_does_not_answer_ends_the_host() -> None:
    broken: Any = Failing(LedgerUnavailable("the ledger's database does not answer: disk full"))
    host = Host(Scripted([fx.SweepOrders()]), Ports(send=lambda _: None, ledger=broken))
    with pytest.raises(EffectFailed, match="does not answer"):
        host.deliver(QUERY, 1)


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
    one, two, three = (message(DirectoryQuery(name, "resource-trader")) for name in ("one", "two", "three"))
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
    host = Host(party, Ports(send=lambda _: None, plugin=broken, fault=lambda *_: None))
    host.deliver(QUERY, 1)
    quoted, described = party.events[1:]
    assert quoted.answers[0].code is RefusalCode.PLUGIN_FAILED  # type: ignore[union-attr]
    assert described == ev.MachineDescribed("d", "")


def test_a_message_that_cannot_be_sealed_is_lost_and_ends_nobody() -> None:
    """What a peer has invented may stand in it; the others of the same moment go out."""

    class Refusing(VirtualNotary):
        def seal(self, message: Message, now: int) -> Message:
            if message.conversation_id == "bad":
                raise SealInvalid("conversation-id holds a line break")
            return super().seal(message, now)

    sent: list[Message] = []
    unsent: list[Message] = []
    content = Cancelled("r1", "o1")
    good, bad = (Message(Performative.CANCEL, "me", "peer", name, content) for name in ("good", "bad"))
    ports = Ports(send=sent.append, notary=Refusing("me", Role.RESOURCE))
    ports.unsent = lambda message, _: unsent.append(message)
    host = Host(Scripted([fx.Send(bad), fx.Send(good)]), ports)
    host.deliver(QUERY, 1)
    assert [each.conversation_id for each in sent] == ["good"]
    assert unsent == [bad]
