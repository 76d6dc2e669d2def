"""The Resource Agent's whole protocol: bidding, holding, selling, cancelling, registration (section 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import TERMINAL, Agreement, ContractChange, Signed
from ramp.model.instant import Instant
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.seal import Role
from ramp.protocol import events as ev
from ramp.protocol.belief import said_by, sealed_by, sealed_lately
from ramp.protocol.clock_comparison import ClockComparison
from ramp.protocol.conversations import Waiting, guarded
from ramp.protocol.effects import Archive, DescribeMachine, Effect, ForgetSlots, Send, TakeUpAgain, reply
from ramp.protocol.party import Party
from ramp.protocol.progress import ClockCompared
from ramp.protocol.questions import Questions
from ramp.protocol.records import HoldIntended, ParticipantRecord, Record, SlotJobRecord, SoldChangeRecord, reference_of
from ramp.protocol.resource.directory_entry import DirectoryEntry
from ramp.protocol.resource.jobs.job_desk import JobWord
from ramp.protocol.resource.jobs.launching import NONE, LaunchTerms
from ramp.protocol.resource.participant import NEXT, Participant
from ramp.protocol.resource.quotas import Quotas
from ramp.protocol.resource.seller import DRAINING_DETAIL, PriceRange, Seller
from ramp.protocol.resource.slots.kept_participants import KeptParticipants
from ramp.protocol.resource.slots.size_desk import GrowthWord
from ramp.protocol.timing import Pace, Timing

DESCRIBING_MAX: Final = 1_000
"""Maximum waiting questions; the oldest are dropped, and repeated by their sender."""


BankWord = c.PaymentMade | c.PaymentRefused | c.ChangePosted | c.ChangeRefused
"""Messages of the bank about what the resource has sold."""

Quoted = ev.SlotsQuoted | ev.SlotsPriced
"""Answers of machine and price strategy about slots that are not held yet."""


class ResourceParty(Party):
    """Everything one Resource Agent does.

    Args:
        bank: name of the bank that the resource trusts.
        seller: the bidding side.
        quotas: limits of one buyer's unpaid slots.
        launching: how it launches jobs; None if it does not.
    """

    def __init__(
        self,
        name: str,
        *,
        directories: Sequence[str],
        bank: str,
        seller: Seller,
        timing: Timing,
        quotas: Quotas | None = None,
        launching: LaunchTerms | None = None,
    ) -> None:
        super().__init__(name)
        pace = Pace(timing)
        self._launching = launching or LaunchTerms(NONE)
        self._kept = kept = KeptParticipants(name, seller, pace, self, quotas or Quotas(), self._launching)
        self.participants = kept.participants
        self.jobs = kept.jobs
        self.sizes = kept.sizes
        self.releases = kept.releases
        self._tending = kept.tending
        self._entry = DirectoryEntry(name, directories, timing, terms=seller.terms, draining=seller.draining)
        self._bank = bank
        self._seller = seller
        self._timing = timing
        self._pace = pace
        self._clock = ClockComparison(name, bank)
        self._queries: Waiting[Message] = Waiting(DESCRIBING_MAX)
        self._questions = Questions(name, pace, self)
        self.task(self._entry, lambda now: self._entry.renew(now) + self._tending.look(now))
        self.task(self._tending, self._tending.on_timer)
        self.task(kept.over, self._let_go)
        self.follow(seller.offers)
        self.follow(seller.biddings)
        self.follow(self._clock)

    @property
    def clock(self) -> ClockCompared | None:
        return self._clock.known

    @property
    def source(self) -> str:
        return self._seller.source

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        return self._entry.renew(now)

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Resume every hold and sale from the journal, and register."""
        self._replay(records)
        effects = self.start(now)
        for participant in list(self.participants.values()):
            effects += self._kept.act(participant, partial(self._recovered, participant, now), now)
        return effects

    def _recovered(self, participant: Participant, now: Instant) -> list[Effect]:
        offer_id = participant.offer.offer_id
        return participant.recover(now) + self.jobs.recover(participant, now) + self.sizes.recover(offer_id, now)

    def resume(self, reference: str, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Resume one accepted offer after a bug in it."""
        self.forget(reference)
        self._replay([each for each in records if reference_of(each) == reference])
        participant = self.participants.get(reference)
        if participant is None:  # without records nothing was promised or held
            return []
        return self._kept.act(participant, partial(self._recovered, participant, now), now)

    def forget(self, reference: str) -> None:
        if not self._kept.forget(reference):
            self._seller.drop(reference)

    def _replay(self, records: Sequence[Record]) -> None:
        for record in records:
            if isinstance(record, HoldIntended):
                self.participants.add(record.offer.offer_id, self._new_participant(record))
            elif isinstance(record, SlotJobRecord):
                self.jobs.replay(record, self.participants[record.offer_id])
            elif isinstance(record, SoldChangeRecord) and record.number != TERMINAL:
                self.sizes.replay(record, self.participants[record.offer_id])
            elif isinstance(record, ParticipantRecord | SoldChangeRecord):
                self.participants[record.offer_id].replay(record)

    def handle(self, event: ev.Event, now: Instant) -> list[Effect]:
        """Take a message or the plug-in's answer; `RemoteProtocolError` if a message is not for a resource."""
        if isinstance(event, Message):
            if isinstance(event.content, c.CallForProposals):
                return self._seller.on_call(event, event.content, now)
            return self._on_message(event, now)
        if not isinstance(event, Quoted):
            return self._on_event(event, now)
        try:
            if event.call_id.startswith(NEXT):
                return self._on_next(event, now)
            asked = self.sizes.prices if event.call_id in self.sizes.prices.pending else self._seller
            if isinstance(event, ev.SlotsQuoted):
                return asked.on_quoted(event.call_id, event.answers, now)
            return asked.on_priced(event.call_id, event.prices, now)
        except Exception as error:  # a bug stays in its call
            return [TakeUpAgain(event.call_id, error)]

    def _on_event(self, event: ev.Event, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        match event:
            case ev.MachineDescribed(call_id, snapshot):
                effects = self._described(self._queries.pop(call_id, None), snapshot)
            case ev.SlotHeld(key) | ev.SlotConfirmed(key) | ev.SlotLookedUp(key) if (
                participant := self.participants.get(key)
            ):
                effects = self._kept.act(participant, partial(participant.on_answer, event, now), now)
                if isinstance(event, ev.SlotLookedUp):
                    effects += self.jobs.follow(participant, now)
            case ev.SlotFreed(key, answer):
                effects = self._kept.on_freed(key, now, in_doubt=answer is not None)
            case ev.JobSeen():
                effects = self.jobs.on_seen(event, now)
            case ev.JobFileRead():
                effects = self.jobs.on_read(event)
            case ev.SlotResized():
                effects = self.sizes.on_resized(event, now)
            case ev.SlotsTended(moved=moved):
                effects = self._kept.tended(event, now) + self._tending.moved(moved, now)
            case ev.MachineOpened(source, tended):
                self._seller.source = source
                self._tending.opened(tended=tended)
            case ev.AccountAsked():
                effects = self._questions.ask_account(event, self._bank, now)
            case ev.ClockAsked(query_id):
                effects = self._clock.ask(query_id, now)
        return effects

    def _on_next(self, event: Quoted, now: Instant) -> list[Effect]:
        """Hand a quote to an offer whose slot was taken."""
        participant = self.participants.get(event.call_id.removeprefix(NEXT))
        if participant is None or not isinstance(event, ev.SlotsQuoted):
            return []
        answer, taken = event.answers[0], participant.offer
        if isinstance(answer, Refusal) or self.sizes.booked.problem(answer.start, answer.end, answer.cores):
            return participant.on_next(())
        return participant.on_next(self._seller.next_offer(taken, participant.unit, answer, participant.user, now))

    def _let_go(self, now: Instant) -> list[Effect]:
        """Archive offers whose retention is over."""
        keys: list[str] = []
        for offer_id in self._kept.over.due(now):
            participant = self.participants.get(offer_id)
            if offer_id in self.releases or (participant is not None and participant.deadline is not None):
                self._kept.over.keep(offer_id, now)  # machine or bank has not answered yet
                continue
            ends = participant.size[1] if participant is not None and participant.released is None else 0
            if offer_id in self.sizes.open or now < ends + self._timing.retention:
                self._kept.over.keep(offer_id, max(ends, now))
                continue
            self.forget(offer_id)
            keys.append(offer_id)
        return [ForgetSlots(tuple(keys)), Archive(tuple(keys))] if keys else []

    def leave(self, now: Instant) -> list[Effect]:
        return self._entry.leave(now)

    def set_selling(self, prices: PriceRange, *, draining: bool, now: Instant) -> list[Effect]:
        """Set prices from the next call on, and whether to stop new sales."""
        self._seller.set_selling(prices, draining=draining)
        return self._entry.drain(draining, now)

    # -- messages ------------------------------------------------------------------------------------------------

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        content = message.content
        if isinstance(content, BankWord):
            return self._on_bank(message, content, now)
        if isinstance(content, JobWord):
            return self._on_job(message, content, now)
        match content:
            case c.Rejection(offer_id=offer_id):
                self._seller.rejected(offer_id, message.sender)
                return []
            case c.Acceptance():
                return self._on_acceptance(message, content, now)
            case c.HoldCancelled(offer_id=offer_id):
                return self._on_hold_cancelled(message, offer_id, now)
            case c.Commitment():
                return self._on_commitment(message, content, now)
            case Signed(body=ContractChange()) | c.ChangeCall() | c.ChangeAgreed() | c.ChangeWithdrawal():
                return self._on_sold(message, content, now)
            case c.MachineQuery():
                return self._describe(message, content)
            case c.AccountStatement(nonce=query_id) | c.RequestRefused(reference=query_id):
                return self._questions.answered(query_id, message, content, now)
            case c.ClockReading():
                return self._clock.answered(message, content, now)
            case c.Registered(number=number):
                self._entry.entered(message, number)
                return []
            case c.SlotMoveHeard() | c.NotUnderstood():
                self._tending.answered(message, content, now)
                return []
            case c.Unverified():
                raise RemoteProtocolError(
                    f"invalid {content.kind} {content.reference}: {content.code}: {content.detail}"
                )
            case _:
                raise RemoteProtocolError(f"{type(content).__name__} is not a message for a resource")

    def _on_acceptance(self, message: Message, acceptance: c.Acceptance, now: Instant) -> list[Effect]:
        seal = sealed_lately(message, Role.USER, now, self._timing)
        participant = self.participants.get(acceptance.offer_id)
        if participant is not None:
            self._check_user(participant, message)
            return self._kept.act(participant, partial(participant.on_acceptance, now), now)
        found = self._seller.offer(acceptance.offer_id, now)
        if found is None or found.user != message.sender:
            return [self._hold_refused(message, acceptance, RefusalCode.UNKNOWN_OFFER)]
        if self._seller.draining:
            return [self._hold_refused(message, acceptance, RefusalCode.DRAINING, DRAINING_DETAIL)]
        too_much = self._kept.unpaid.problem(message.sender, found.offer.cores)
        if too_much:
            return [self._hold_refused(message, acceptance, RefusalCode.QUOTA, too_much)]
        self._seller.forget(acceptance.offer_id)
        until = now + self._timing.hold_time
        intended = HoldIntended(found.offer, found.unit, found.slot, found.user, until, seal, now, found.rule)
        participant = self._new_participant(intended)
        self.participants.add(acceptance.offer_id, participant)
        offer = found.offer
        full = "" if offer.in_queue else self.sizes.booked.problem(offer.start, offer.end, offer.cores)
        return self._kept.act(participant, partial(participant.start, now, full), now)

    def _hold_refused(self, message: Message, of: c.Acceptance | Offer, code: RefusalCode, detail: str = "") -> Send:
        return reply(message, Performative.REFUSE, c.HoldRefused(of.request_id, of.offer_id, code, detail))

    def _on_hold_cancelled(self, message: Message, offer_id: str, now: Instant) -> list[Effect]:
        seal = sealed_lately(message, Role.USER, now, self._timing)
        participant = self.participants.get(offer_id)
        if participant is not None:
            self._check_user(participant, message)
            return self._kept.act(participant, partial(participant.on_hold_cancelled, seal, now), now)
        self._seller.rejected(offer_id, message.sender)
        return [reply(message, Performative.INFORM, c.HoldCancelled(message.conversation_id, offer_id))]

    def _on_commitment(self, message: Message, commitment: c.Commitment, now: Instant) -> list[Effect]:
        sealed_by(message, Role.USER)
        body = commitment.agreement.body
        assert isinstance(body, Agreement)
        participant = self.participants.get(body.offer.offer_id)
        sold = self._kept.by_agreement.get(body.agreement_id)
        if sold is not None and sold is not participant:  # the bank pays an agreement id once
            detail = "another slot is already sold under this agreement id"
            return [self._hold_refused(message, body.offer, RefusalCode.BAD_AGREEMENT, detail)]
        if participant is not None:
            self._check_user(participant, message)
            return self._kept.act(participant, partial(participant.on_commitment, commitment, now), now)
        return [self._hold_refused(message, body.offer, RefusalCode.UNKNOWN_OFFER, "no slot is held for this offer")]

    def _on_sold(self, message: Message, content: Signed | GrowthWord, now: Instant) -> list[Effect]:
        """Take a buyer's cancellation or resize of a sold slot."""
        if not isinstance(content, Signed):
            sold = self._kept.by_agreement.get(content.agreement_id)
            act = partial(self.sizes.on_growth, message, content, sold, now)
            return act() if sold is None else guarded(sold.offer.offer_id, act)
        return self._kept.on_change(message, content, now)

    def _on_bank(self, message: Message, content: BankWord, now: Instant) -> list[Effect]:
        seal = said_by(message, self._bank, Role.BANK)
        participant = self._kept.by_agreement.get(content.agreement_id)
        if participant is None:
            return []
        if isinstance(content, c.ChangePosted | c.ChangeRefused) and content.number != TERMINAL:
            return self.sizes.on_bank(content, seal, participant, now)
        act = partial(participant.on_bank, content, seal, now)
        return self._kept.act(participant, act, now) + self.jobs.follow(participant, now)

    def _on_job(self, message: Message, word: JobWord, now: Instant) -> list[Effect]:
        participant = self._kept.by_agreement.get(word.agreement_id)
        act = partial(self.jobs.on_message, message, word, participant, now)
        return act() if participant is None else guarded(participant.offer.offer_id, act)

    # -- questions about the machine -----------------------------------------------------------------------------

    def _describe(self, message: Message, query: c.MachineQuery) -> list[Effect]:
        """Ask the machine under an id of our own, as two buyers may use the same."""
        if any((each.sender, each.content) == (message.sender, query) for each in self._queries.values()):
            return []  # a copy; the machine is still at work on the first
        return [DescribeMachine(self._queries.put(message), query.horizon)]

    def _described(self, asked: Message | None, snapshot: str) -> list[Effect]:
        """Send the machine's answer to the buyer, unless the question was dropped."""
        if asked is None:
            return []
        assert isinstance(asked.content, c.MachineQuery)
        status = c.MachineStatus(asked.content.query_id, self._seller.described(snapshot))
        return [reply(asked, Performative.INFORM, status)]

    # -- common --------------------------------------------------------------------------------------------------

    def _check_user(self, participant: Participant, message: Message) -> None:
        if message.sender != participant.user:
            raise RemoteProtocolError("the offer was made to another user")

    def _new_participant(self, intended: HoldIntended) -> Participant:
        own = {"resource": self.name, "bank": self._bank, "account": self._launching.account(intended.user)}
        return Participant(intended, pace=self._pace, **own)
