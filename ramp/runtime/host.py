"""Runs one party: events in, effects carried out in order.

This is the only thing between the pure machines and the world, and it is the same for SPADE agents and for the
simulator; they differ in the ports they give it. It knows no clock: every entry takes the present time.

The order of effects is kept without exception. A `Persist` returns only when the journal has it; so whatever a party
has sent, it remembers. A crash between two effects therefore loses at most messages that the protocol sends again.

Two kinds of failure are kept apart. An effect that cannot be carried out (a full disk) ends the host: what would follow
is not done, and every later call is refused, for the party's memory is ahead of what is durable. An exception inside a
machine is a bug of ours, and stays in its conversation: the party forgets that one and takes it up again from the
journal, as after a restart. Whatever had been carried out before is on record and stands; what had not been was
promised to nobody. Auctions and sales of the same party that go on beside it notice nothing, which building the whole
party anew would not give: a restarted user gives every auction up.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from ramp.errors import DocumentError, EffectFailed, RemoteProtocolError
from ramp.model.acl import SEALED, Message
from ramp.model.agreement import Signed
from ramp.model.contents import (
    Amended,
    Commitment,
    NotUnderstood,
    Settled,
)
from ramp.model.instant import Duration, Instant
from ramp.model.ports import Notary
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.amending.asking import ResizeSlot
from ramp.protocol.enrolment.authority import AskAuthority, JudgeRequest, KeepRevocations, ReadRevocations
from ramp.protocol.faults import Recoverable
from ramp.protocol.party import Party
from ramp.protocol.progress import Progress
from ramp.protocol.records import Record
from ramp.runtime.ledger.bank_ledger import BankLedger
from ramp.runtime.storage_errors import STORAGE_ERRORS, reason_of

Question = TypeVar("Question", contravariant=True)  # noqa: PLC0105 -- the word is what it is

SIGNATURES_MAX = 256
"""Signed documents at hand, one an agreement: those of the purchases that go on."""


class Journal(Protocol):
    """A party's durable memory."""

    def append(self, record: Record) -> None:
        """Add a record; it is durable when this returns."""
        ...

    def records(self) -> Sequence[Record]:
        """All records in the order of writing that are not archived."""
        ...

    def records_of(self, reference: str) -> Sequence[Record]:
        """Those of one reference (`records.reference_of`)."""
        ...

    def archive(self, references: Sequence[str]) -> None:
        """Move all records of these references to the archive; durable when this returns.

        What fails midway has lost nothing: records are in the archive before they leave the journal.
        """
        ...


class Guest(Protocol[Question]):
    """What answers a party's questions from outside the project: a machine's plug-in, a price strategy."""

    def ask(self, question: Question, now: Instant) -> ev.Answer | None:
        """The answer, or None if it will come later, through `Host.answer`.

        An answer must come in the end, if only that nobody knows (`MachineInDoubt`; a quote or price that is not known
        is a coded refusal): who asks has no time limit of its own and does not ask again before. So whoever runs the
        guest limits its time. Answers may overtake each other, also those about one key, and what was asked may be
        done in another order, or after it was answered in doubt. A hold or confirmation that was answered in doubt may
        be answered once more with what became of it, however late; nothing else is answered twice. After a restart no
        answer to a question of the life before may be given.

        Raises:
            StorageFailed: if a change cannot be written to memory that is the agent's own.
        """
        ...


@dataclass(slots=True)
class Ports:
    """The world as one party's host sees it.

    Attributes:
        send: gives a message to the network.
        notary: signs, seals and verifies in the party's name.
        journal: durable memory; None for parties that keep none (bank, directory).
        machine: what the resource sells; resources only.
        pricing: what names its prices; resources only.
        launcher: what runs jobs on its slots; resources that launch.
        ledger: the accounts; bank only.
        authority: the market's authority, for the enrolment office; its own keys, for a party at another site.
        keep_agreement: stores a signed agreement and the bank's word that it is paid for their owner.
        watch: is told the progress of conversations.
        before: called before every effect; the simulator crashes parties here.
        sealed: contents that leave with a seal.
        fault: told of a bug and the conversation it has happened in, which is then taken up again; None lets bugs
            raise, as simulator and tests want it.
        unsent: told of a message that cannot be sealed, for it quotes what a peer has invented; None lets that raise.
    """

    send: Callable[[Message], None]
    notary: Notary | None = None
    journal: Journal | None = None
    machine: Guest[fx.AskMachine] | None = None
    pricing: Guest[fx.PriceSlots] | None = None
    launcher: Guest[fx.AskLauncher] | None = None
    ledger: BankLedger | None = None
    authority: Guest[AskAuthority] | None = None
    keep_agreement: Callable[[str, Signed, str], None] | None = None
    watch: Callable[[Progress], None] | None = None
    before: Callable[[fx.Effect], None] | None = None
    sealed: frozenset[type] = SEALED
    fault: Callable[[str, Exception], None] | None = None
    unsent: Callable[[Message, DocumentError], None] | None = None


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
        self._signatures: OrderedDict[str, tuple[Signed, Signed]] = OrderedDict()
        self._taken_up: set[str] = set()
        self._failure: BaseException | None = None

    @property
    def name(self) -> str:
        """The party's name."""
        return self.party.name

    @property
    def deadline(self) -> Instant | None:
        """When `tick` wants to be called."""
        return self.party.deadline

    @property
    def failure(self) -> BaseException | None:
        """What ended the host, or None."""
        return self._failure

    def start(self, now: Instant) -> None:
        """Begin, or go on where the journal ends.

        Raises:
            EffectFailed: like every other entry, if an effect cannot be carried out; the host has ended then.
            StateDamaged: if the journal cannot be read.
        """
        records = self._records()
        effects = self.party.recover(records, now) if records else self.party.start(now)
        self._carry_out(effects, now)

    def deliver(self, message: Message, now: Instant) -> None:
        """Take a message from the network; one that has no place is answered NOT_UNDERSTOOD."""
        self._check_alive()
        try:
            effects = self.party.handle(ev.MessageReceived(message), now)
        except RemoteProtocolError as error:
            if isinstance(message.content, NotUnderstood):
                return
            effects = [fx.not_understood(message, error.reason)]
        except Exception as error:  # before any conversation was at work: the message is dropped
            effects = [fx.TakeUpAgain("", error)]
        self._carry_out(effects, now)

    def command(self, command: ev.Command, now: Instant) -> None:
        """Take a command of the party's owner."""
        self._check_alive()
        self._carry_out(self.party.handle(command, now), now)

    def tick(self, now: Instant) -> None:
        """Let the party act if its deadline has come."""
        self._check_alive()
        if self.party.deadline is not None and now >= self.party.deadline:
            self._carry_out(self.party.tick(now), now)

    def clock_set(self, by: Duration) -> None:
        """Tell the party that the wall clock has been set, before any entry that takes the time it shows now.

        Args:
            by: how much more, or less, it shows than it would have.
        """
        self._check_alive()
        self.party.clock_set(by)

    def perform(self, effects: Sequence[fx.Effect], now: Instant) -> None:
        """Carry out effects that the owner asked the party for directly (leaving the directory)."""
        self._check_alive()
        self._carry_out(effects, now)

    # -- effects -------------------------------------------------------------------------------------------------

    def _check_alive(self) -> None:
        if self._failure is not None:
            raise EffectFailed(self.name, "it has ended", str(self._failure)) from self._failure

    def _carry_out(self, effects: Sequence[fx.Effect], now: Instant) -> None:
        try:
            for effect in effects:
                if self.ports.before is not None:
                    self.ports.before(effect)
                try:
                    self._carry_out_one(effect, now)
                except STORAGE_ERRORS as error:
                    raise EffectFailed(self.name, type(effect).__name__, reason_of(error)) from error
            while self._answers:
                self._carry_out(self.party.handle(self._answers.popleft(), now), now)
        except BaseException as error:
            self._failure = self._failure or error
            raise

    def _carry_out_one(self, effect: fx.Effect, now: Instant) -> None:
        match effect:
            case fx.TakeUpAgain(reference, error):
                self._take_up_again(reference, error, now)
            case fx.Send(message, sealed):
                self._send(message, now, sealed=sealed)
            case fx.Persist(record):
                assert self.ports.journal is not None, f"{self.name} has no journal"
                self.ports.journal.append(record)
            case fx.Archive(references):
                assert self.ports.journal is not None, f"{self.name} has no journal"
                self.ports.journal.archive(references)
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
                | fx.ForgetSlots()
                | fx.TendSlots()
                | ResizeSlot()
            ):
                self._ask(self.ports.machine, effect, now)
            case fx.PriceSlots():
                self._ask(self.ports.pricing, effect, now)
            case JudgeRequest() | ReadRevocations() | KeepRevocations():
                self._ask(self.ports.authority, effect, now)
            case fx.SubmitJob() | fx.LookUpJob() | fx.CancelJob() | fx.ReadJobFile():
                self._ask(self.ports.launcher, effect, now)
            case _:
                self._ask_ledger(effect, now)

    def _send(self, message: Message, now: Instant, *, sealed: bool) -> None:
        try:
            signed = self._signed(message, now, sealed=sealed)
        except DocumentError as error:  # it can neither be sealed nor written: lost, as on the way
            if self.ports.unsent is None:
                raise
            self.ports.unsent(message, error)
            return
        self.ports.send(signed)

    def _ask_ledger(self, effect: fx.AskLedger, now: Instant) -> None:
        assert self.ports.ledger is not None, f"{self.name} has no ledger"
        try:
            self._answers.append(self.ports.ledger.answer(effect, now))
        except STORAGE_ERRORS:
            raise
        except Exception as error:
            if isinstance(effect, fx.SweepOrders):  # no conversation's: the bank does not know what is open
                raise
            self._take_up_again(effect.call_id, error, now)  # its transaction was rolled back, so nothing was done

    # -- bugs ----------------------------------------------------------------------------------------------------

    def _take_up_again(self, reference: str, error: Exception, now: Instant) -> None:
        """Let the party take one conversation up again; one that raises once more rests until the next start."""
        if self.ports.fault is None:
            raise error
        self.ports.fault(reference, error)
        if not isinstance(self.party, Recoverable):
            return
        if reference in self._taken_up:
            self.party.forget(reference)
            return
        self._taken_up.add(reference)
        try:
            records = self._records()
            try:
                effects = self.party.resume(reference, records, now)
            except Exception as again:
                self.ports.fault(reference, again)
                self.party.forget(reference)
            else:
                self._carry_out(effects, now)
        finally:
            self._taken_up.discard(reference)

    def _records(self) -> Sequence[Record]:
        return self.ports.journal.records() if self.ports.journal is not None else ()

    # -- signatures ----------------------------------------------------------------------------------------------

    def _signed(self, message: Message, now: Instant, *, sealed: bool) -> Message:
        """A signed document that leaves a party bears that party's signature, and what binds it its seal."""
        content = message.content
        if isinstance(content, Signed):
            message = replace(message, content=self._bearing_own_signature(content, now))
        elif isinstance(content, Settled | Commitment):
            document = self._bearing_own_signature(content.agreement, now)
            message = replace(message, content=replace(content, agreement=document))
        elif isinstance(content, Amended):
            document = self._bearing_own_signature(content.amendment, now)
            message = replace(message, content=replace(content, amendment=document))
        if not sealed and type(content) not in self.ports.sealed:
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

    # -- guests --------------------------------------------------------------------------------------------------

    def answer(self, answer: ev.Answer, now: Instant) -> None:
        """Take an answer that comes later than the question: of a machine that needs time."""
        self._check_alive()
        self._carry_out(self.party.handle(answer, now), now)

    def _ask(self, guest: Guest[Question] | None, question: Question, now: Instant) -> None:
        assert guest is not None, f"{self.name} has no party to ask {question}"
        answer = guest.ask(question, now)
        if answer is not None:
            self._answers.append(answer)
