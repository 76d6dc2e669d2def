"""Runs one party: events in, effects carried out in order.

This is the only thing between the pure machines and the world, and it is the same for SPADE agents and for the
simulator; they differ in the ports they give it. It knows no clock: every entry takes the present time.

The order of effects is kept without exception. A `Persist` returns only when the journal has it; so whatever a party
has sent, it remembers. A crash between two effects therefore loses at most messages that the protocol sends again.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ramp.errors import RemoteProtocolError
from ramp.model.acl import SEALED, Message, Performative
from ramp.model.agreement import Signed
from ramp.model.contents import Commitment, NotUnderstood, Settled
from ramp.model.instant import Instant
from ramp.model.ports import Notary
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.party import Party
from ramp.protocol.progress import GuestFailed, Progress
from ramp.protocol.records import Record
from ramp.runtime.bank_ledger import BankLedger
from ramp.runtime.guarded_plugin import GuardedPlugin

SIGNATURES_MAX = 256
"""Signed documents at hand, one an agreement: those of the purchases that go on."""


class Journal(Protocol):
    """A party's durable memory."""

    def append(self, record: Record) -> None:
        """Add a record; it is durable when this returns."""
        ...

    def records(self) -> Sequence[Record]:
        """All records in the order of writing."""
        ...


@dataclass(slots=True)
class Ports:
    """The world as one party's host sees it.

    Attributes:
        send: gives a message to the network.
        notary: signs, seals and verifies in the party's name.
        journal: durable memory; None for parties that keep none (bank, directory).
        plugin: the machine; resources only.
        ledger: the accounts; bank only.
        keep_agreement: stores a signed agreement and the bank's word that it is paid for their owner.
        watch: is told the progress of conversations.
        before: called before every effect; the simulator crashes parties here.
        sealed: contents that leave with a seal.
    """

    send: Callable[[Message], None]
    notary: Notary | None = None
    journal: Journal | None = None
    plugin: ResourcePlugin | None = None
    ledger: BankLedger | None = None
    keep_agreement: Callable[[str, Signed, str], None] | None = None
    watch: Callable[[Progress], None] | None = None
    before: Callable[[fx.Effect], None] | None = None
    sealed: frozenset[type] = SEALED


class Host:
    """One running party.

    Args:
        party: its protocol.
        ports: its world.
    """

    def __init__(self, party: Party, ports: Ports) -> None:
        self.party = party
        self.ports = ports
        self._answers: deque[ev.Event] = deque()
        self._guest_failed = False
        self._signatures: OrderedDict[str, tuple[Signed, Signed]] = OrderedDict()

    @property
    def name(self) -> str:
        """The party's name."""
        return self.party.name

    @property
    def deadline(self) -> Instant | None:
        """When `tick` wants to be called."""
        return self.party.deadline

    def start(self, now: Instant) -> None:
        """Begin, or go on where the journal ends."""
        records = self.ports.journal.records() if self.ports.journal is not None else ()
        recover = getattr(self.party, "recover", None)
        effects = recover(records, now) if records and recover is not None else self.party.start(now)
        self._carry_out(effects, now)

    def deliver(self, message: Message, now: Instant) -> None:
        """Take a message from the network; one that has no place is answered NOT_UNDERSTOOD."""
        try:
            effects = self.party.handle(ev.MessageReceived(message), now)
        except RemoteProtocolError as error:
            if not isinstance(message.content, NotUnderstood):
                self._carry_out([self.not_understood(message, error.reason)], now)
            return
        self._carry_out(effects, now)

    def command(self, command: ev.Command, now: Instant) -> None:
        """Take a command of the party's owner."""
        self._carry_out(self.party.handle(command, now), now)

    def tick(self, now: Instant) -> None:
        """Let the party act if its deadline has come."""
        if self.party.deadline is not None and now >= self.party.deadline:
            self._carry_out(self.party.tick(now), now)

    def perform(self, effects: Sequence[fx.Effect], now: Instant) -> None:
        """Carry out effects that the owner asked the party for directly (leaving the directory)."""
        self._carry_out(effects, now)

    def not_understood(self, message: Message, reason: str) -> fx.Send:
        """The answer to a message that broke the protocol."""
        return fx.Send(
            Message(
                Performative.NOT_UNDERSTOOD,
                self.name,
                message.sender,
                message.conversation_id,
                NotUnderstood(reason),
                in_reply_to=message.reply_with,
            )
        )

    # -- effects -------------------------------------------------------------------------------------------------

    def _carry_out(self, effects: Sequence[fx.Effect], now: Instant) -> None:
        for effect in effects:
            if self.ports.before is not None:
                self.ports.before(effect)
            self._carry_out_one(effect, now)
        while self._answers:
            self._carry_out(self.party.handle(self._answers.popleft(), now), now)

    def _carry_out_one(self, effect: fx.Effect, now: Instant) -> None:
        match effect:
            case fx.Send(message):
                self.ports.send(self._signed(message, now))
            case fx.Persist(record):
                assert self.ports.journal is not None, f"{self.name} has no journal"
                self.ports.journal.append(record)
            case fx.Report(progress):
                if self.ports.watch is not None:
                    self.ports.watch(progress)
            case fx.SaveAgreement(agreement_id, signed, payment):
                if self.ports.keep_agreement is not None:
                    self.ports.keep_agreement(agreement_id, self._bearing_own_signature(signed, now), payment)
            case (
                fx.QuoteSlots()
                | fx.HoldSlot()
                | fx.ConfirmSlot()
                | fx.ReleaseSlot()
                | fx.LookUpSlot()
                | fx.DescribeMachine()
            ):
                self._ask_plugin(effect, now)
            case _:
                assert self.ports.ledger is not None, f"{self.name} has no ledger"
                self._answers.append(self.ports.ledger.answer(effect, now))

    # -- signatures ----------------------------------------------------------------------------------------------

    def _signed(self, message: Message, now: Instant) -> Message:
        """A signed document that leaves a party bears that party's signature, and what binds it its seal."""
        content = message.content
        if isinstance(content, Signed):
            message = replace(message, content=self._bearing_own_signature(content, now))
        elif isinstance(content, Settled | Commitment):
            document = self._bearing_own_signature(content.agreement, now)
            message = replace(message, content=replace(content, agreement=document))
        if type(content) not in self.ports.sealed:
            return message
        assert self.ports.notary is not None, f"{self.name} has no notary"
        return self.ports.notary.seal(message, now)

    def _bearing_own_signature(self, signed: Signed, now: Instant) -> Signed:
        if self.name in signed.signers:
            return signed
        known = self._signatures.get(signed.body.agreement_id)
        if known is not None and known[0] == signed:
            return known[1]  # it goes out several times, to the bank and to the buyer; XML signatures are dear
        assert self.ports.notary is not None, f"{self.name} has no notary"
        done = self.ports.notary.sign(signed, now)
        self._signatures[signed.body.agreement_id] = signed, done
        if len(self._signatures) > SIGNATURES_MAX:
            self._signatures.popitem(last=False)
        return done

    # -- the plug-in ---------------------------------------------------------------------------------------------

    def answer(self, answer: ev.Answer, now: Instant) -> None:
        """Take an answer that comes later than the question: of a machine that needs time."""
        self._carry_out(self.party.handle(answer, now), now)

    def _ask_plugin(self, effect: fx.AskPlugin, now: Instant) -> None:
        assert self.ports.plugin is not None, f"{self.name} has no plug-in"
        machine = GuardedPlugin(self.ports.plugin, self._guest_told)
        match effect:
            case fx.QuoteSlots(call_id, units):
                self._answers.append(ev.SlotsQuoted(call_id, tuple(machine.quote(unit, now) for unit in units)))
            case fx.HoldSlot(key, unit, slot, until):
                self._answers.append(ev.SlotHeld(key, machine.hold(key, unit, slot, until, now)))
            case fx.ConfirmSlot(key):
                self._answers.append(ev.SlotConfirmed(key, machine.confirm(key, now)))
            case fx.ReleaseSlot(key):
                self._answers.append(ev.SlotFreed(key, machine.release(key, now)))
            case fx.LookUpSlot(key):
                self._answers.append(ev.SlotLookedUp(key, machine.look_up(key, now)))
            case fx.DescribeMachine(call_id, horizon):
                self._answers.append(ev.MachineDescribed(call_id, machine.snapshot(now, horizon)))

    def _guest_told(self, reason: str) -> None:
        """Say that a guest has failed, or once that it is well again."""
        if self.ports.watch is not None and (reason or self._guest_failed):
            self.ports.watch(GuestFailed("plug-in", reason))
        self._guest_failed = bool(reason)
