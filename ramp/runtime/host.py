"""Runs one party: accepts events and carries out effects in order.

The host connects the pure machines with the world, in SPADE agents and in the simulator; these give it different ports.
It has no clock: every entry takes the current time.

Effects keep their order. A `Persist` returns only when the journal has the record, so a party remembers everything that
it has sent. A crash between two effects loses at most messages that the protocol sends again.

The host separates two kinds of failure. An effect that cannot be carried out (a full disk) ends the host. It skips the
remaining effects and refuses all later calls, because the party's memory is ahead of the journal. An exception in a
machine is a bug of RAMP and stays in its conversation: the party restores that conversation from the journal, as after
a restart. Earlier effects are in the journal; later ones were promised to no peer. Other auctions and sales continue,
whereas a restart of the whole party would give up all auctions of a user.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar, cast, get_args

from ramp.errors import DocumentError, EffectFailed, RemoteProtocolError
from ramp.model.acl import SEALED, Message, Performative
from ramp.model.agreement import Signed
from ramp.model.contents import (
    ChangeDone,
    Commitment,
    NotUnderstood,
    Settled,
)
from ramp.model.instant import Duration, Instant
from ramp.model.ports import Notary
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.enrolment.authority import AskAuthority
from ramp.protocol.party import Party
from ramp.protocol.progress import Progress
from ramp.protocol.records import Record
from ramp.runtime.journal import Journal
from ramp.runtime.ledger.bank_ledger import BankLedger
from ramp.runtime.storage_errors import STORAGE_ERRORS, reason_of

Question = TypeVar("Question", contravariant=True)  # noqa: PLC0105 -- the word is what it is

PORT_OF: Final[Mapping[type, str]] = {
    **dict.fromkeys(get_args(fx.AskMachine), "machine"),
    fx.PriceSlots: "pricing",
    **dict.fromkeys(get_args(AskAuthority), "authority"),
    **dict.fromkeys(get_args(fx.AskLauncher), "launcher"),
}
"""The port of each question to a guest."""

SIGNED: Final = frozenset((Signed, Settled, Commitment, ChangeDone))
"""Contents with a document that their sender signs."""

SIGNATURES_MAX = 256
"""Maximum number of signed agreements in memory, for purchases under way."""


class Guest(Protocol[Question]):
    """Answers a party's questions from outside the project: a machine's plug-in or a price strategy."""

    def ask(self, question: Question, now: Instant) -> ev.Answer | None:
        """Return the answer, or None if it comes later through `Host.take`.

        Every question must get an answer, if necessary `MachineInDoubt` or a coded refusal: the caller has no timeout
        and does not repeat the question. Answers and work may change their order, also for one key. A hold or
        confirmation answered in doubt may get a second answer with the result. After a restart no answer to an earlier
        question is allowed.

        Raises:
            StorageFailed: a change cannot be written to the agent's own memory.
        """
        ...


@dataclass(slots=True)
class Ports:
    """The world as one party's host sees it.

    Attributes:
        send: passes a message to the network.
        notary: signs, seals and verifies in the party's name.
        journal: durable memory; None for bank and directory.
        machine: the machine of a resource.
        pricing: the price strategy of a resource.
        launcher: runs jobs on the slots of a resource.
        ledger: the accounts of the bank.
        authority: the market's authority for the enrolment office; its own keys for a party at another site.
        keep_agreement: stores a signed agreement and the bank's payment notice for their owner.
        watch: called with progress of conversations.
        before: called before every effect; the simulator crashes parties here.
        sealed: types of contents that are sealed.
        fault: called with a bug and its conversation, which then restarts; None raises the error, for tests.
        unsent: called with a message that cannot be written or sealed; None raises the error.
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
    """A running party with its world.

    Attributes:
        failure: error that ended the host, or None.
    """

    def __init__(self, party: Party, ports: Ports) -> None:
        self.party = party
        self.ports = ports
        self._answers: list[ev.Event] = []
        self._returned: list[tuple[Message, str]] = []
        self._signatures: OrderedDict[str, tuple[Signed, Signed]] = OrderedDict()
        self._taken_up: set[str] = set()
        self.failure: BaseException | None = None

    @property
    def name(self) -> str:
        return self.party.name

    @property
    def deadline(self) -> Instant | None:
        """Next time to call `tick`."""
        return self.party.deadline

    def start(self, now: Instant) -> None:
        """Begin, or continue where the journal ends.

        Raises:
            EffectFailed: as in every other entry, an effect cannot be carried out; the host has ended.
            StateDamaged: the journal cannot be read.
        """
        records = self._records()
        effects = self.party.recover(records, now) if records else self.party.start(now)
        self._carry_out(effects, now)

    def deliver(self, message: Message, now: Instant) -> None:
        """Accept a message from the network; answer one without a place with NOT_UNDERSTOOD."""
        if self.failure is not None:
            raise self._ended(self.failure)
        try:
            effects = self.party.handle(message, now)
        except RemoteProtocolError as error:
            if isinstance(message.content, NotUnderstood):
                return
            effects = [fx.not_understood(message, error.reason)]
        except Exception as error:  # before any conversation was at work: the message is dropped
            effects = [fx.TakeUpAgain("", error)]
        self._carry_out(effects, now)

    def not_sent(self, message: Message, reason: str, now: Instant) -> None:
        """Answer an own message that cannot travel, in the party's own name; only an owner's question heeds it."""
        if message.performative is not Performative.NOT_UNDERSTOOD:
            self.deliver(replace(fx.not_understood(message, reason).message, sender=self.name), now)

    def take(self, event: ev.Command | ev.Answer, now: Instant) -> None:
        """Accept a command of the owner, or a later answer of a guest."""
        if self.failure is not None:
            raise self._ended(self.failure)
        self._carry_out(self.party.handle(event, now), now)

    def tick(self, now: Instant) -> None:
        """Let the party act after its deadline."""
        if self.failure is not None:
            raise self._ended(self.failure)
        deadline = self.party.deadline
        if deadline is not None and now >= deadline:
            self._carry_out(self.party.tick(now), now)

    def clock_set(self, by: Duration) -> None:
        """Tell the party that the wall clock was set forward by `by`, before any call with the new time."""
        if self.failure is not None:
            raise self._ended(self.failure)
        self.party.clock_set(by)

    def perform(self, effects: Sequence[fx.Effect], now: Instant) -> None:
        """Carry out effects that the owner requested directly (leaving the directory)."""
        if self.failure is not None:
            raise self._ended(self.failure)
        self._carry_out(effects, now)

    # -- effects -------------------------------------------------------------------------------------------------

    def _ended(self, failure: BaseException) -> EffectFailed:
        error = EffectFailed(self.name, "it has ended", str(failure))
        error.__cause__ = failure
        return error

    def _carry_out(self, effects: Sequence[fx.Effect], now: Instant) -> None:
        ports, before = self.ports, self.ports.before
        try:
            while True:
                for effect in effects:
                    if before is not None:
                        before(effect)
                    try:
                        if isinstance(effect, fx.Send):
                            message, kind = effect.message, type(effect.message.content)
                            if effect.sealed or kind in SIGNED or kind in ports.sealed:
                                message = self._signed(message, now, sealed=effect.sealed)
                            ports.send(message)
                        elif (port := PORT_OF.get(type(effect))) is not None:
                            answer = getattr(ports, port).ask(effect, now)
                            if answer is not None:
                                self._answers.append(answer)
                        else:
                            self._carry_out_one(effect, now)
                    except DocumentError as error:  # the message can neither be sealed nor written
                        if not isinstance(effect, fx.Send) or ports.unsent is None:
                            raise
                        ports.unsent(effect.message, error)
                        self._returned.append((effect.message, str(error)))
                    except STORAGE_ERRORS as error:
                        raise EffectFailed(self.name, type(effect).__name__, reason_of(error)) from error
                if not self._answers:
                    break
                effects = self.party.handle(self._answers.pop(0), now)
            while self._returned:
                self.not_sent(*self._returned.pop(0), now)
        except BaseException as error:
            self.failure = self.failure or error
            raise

    def _carry_out_one(self, effect: fx.Effect, now: Instant) -> None:
        match effect:
            case fx.TakeUpAgain(reference, error):
                self._take_up_again(reference, error, now)
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
            case _:
                self._ask_ledger(cast("fx.AskLedger", effect), now)

    def _ask_ledger(self, effect: fx.AskLedger, now: Instant) -> None:
        assert self.ports.ledger is not None, f"{self.name} has no ledger"
        try:
            self._answers.append(self.ports.ledger.answer(effect, now))
        except STORAGE_ERRORS:
            raise
        except Exception as error:
            if isinstance(effect, fx.SweepOrders):  # of no conversation: the bank cannot know the open orders
                raise
            # its transaction was rolled back, so nothing was done
            self._take_up_again(effect.message.conversation_id, error, now)

    # -- bugs ----------------------------------------------------------------------------------------------------

    def _take_up_again(self, reference: str, error: Exception, now: Instant) -> None:
        """Let the party restart a conversation; a second failure pauses it until the next start."""
        if self.ports.fault is None:
            raise error
        self.ports.fault(reference, error)
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
        content = message.content
        if isinstance(content, Signed):
            message = replace(message, content=self._bearing_own_signature(content, now))
        elif isinstance(content, Settled | Commitment):
            document = self._bearing_own_signature(content.agreement, now)
            message = replace(message, content=replace(content, agreement=document))
        elif isinstance(content, ChangeDone):
            document = self._bearing_own_signature(content.change, now)
            message = replace(message, content=replace(content, change=document))
        if not sealed and type(content) not in self.ports.sealed:
            return message
        assert self.ports.notary is not None, f"{self.name} has no notary"
        return self.ports.notary.seal(message, now)

    def _bearing_own_signature(self, signed: Signed, now: Instant) -> Signed:
        if self.name in signed.signers or not signed.next_signer:
            return signed
        known = self._signatures.get(signed.body.agreement_id)
        if known is not None and known[0] == signed:
            return known[1]  # sent to the bank and to the buyer; XML signatures are expensive
        assert self.ports.notary is not None, f"{self.name} has no notary"
        done = self.ports.notary.sign(signed, now)
        self._signatures[signed.body.agreement_id] = signed, done
        if len(self._signatures) > SIGNATURES_MAX:
            self._signatures.popitem(last=False)
        return done
