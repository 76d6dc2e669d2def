"""All changes of a resource's sold slots, with what it takes back by right beside what buyers propose.

One change of a slot is open at a time. Of two that cross the buyer's goes first: while the buyer has not said that it
has heard of a reclamation, its proposal of the same state ends that. Only one in a row gives way, so that nobody can
put a reclamation off for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Amendment, Reclamation, Signed
from ramp.model.contents import (
    NotUnderstood,
    Reclaimed,
    ReclamationHeard,
    ReclamationNoticed,
    ReclamationPosted,
    ReclamationRefused,
)
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.money import credits_text
from ramp.model.seal import Role, Seal
from ramp.model.sizes.amended import refund_owed
from ramp.model.sizes.reclaimed import CHANGES_MAX, TOO_MANY_CHANGES, compensation_owed, reclaimed, reclamation_problem
from ramp.protocol.amending.memory import SizeRecord
from ramp.protocol.belief import sealed_by
from ramp.protocol.effects import Effect, Report, Send
from ramp.protocol.progress import ReclamationAdvanced
from ramp.protocol.reclaiming.asking import GAVE_WAY
from ramp.protocol.reclaiming.memory import (
    ReclaimingRecord,
    ReclamationDrawn,
    ReclamationDropped,
    ReclamationSettled,
)
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.quotas import Unpaid
from ramp.protocol.resource.reclaiming.policy import ON_THE_WAY, taking_lasts
from ramp.protocol.resource.reclaiming.taking import BEFORE_TIME, MakeRoom, Taking
from ramp.protocol.resource.reclaiming.words import Words
from ramp.protocol.resource.seller import Seller
from ramp.protocol.resource.slots.size_desk import KeptSlot, SizeDesk
from ramp.protocol.tables import ParticipantState, SizeChangeState
from ramp.protocol.timing import Pace, earliest

TOO_EXPENSIVE: Final = "too_expensive"
"""Code of what an administrator would have taken back at more than the resource pays, or than it may cost."""

PAUSE: Duration = MINUTE
"""So long after a reclamation has come to nothing its slot is left alone by the machine's own wish; twice as long after
the next one in a row."""

PAUSE_MAX: Duration = 15 * MINUTE
"""The longest that it is left alone: a cause that stands uses a thousand numbers up in ten days, no sooner."""


@dataclass(frozen=True, slots=True)
class Reclaimable:
    """A sold slot of which cores could be taken back.

    Attributes:
        offer_id: the slot.
        start: of the slot; of two the one that started later gives first.
        spare: how many cores could go.
    """

    offer_id: str
    start: Instant
    spare: int


class ReclaimDesk(SizeDesk):
    """All changes of one resource's slots.

    Args:
        resource: the agent's name.
        pace: of the selling agent.
        in_the_way: as in `SizeDesk`.
        seller: as in `SizeDesk`.
        unpaid: as in `SizeDesk`.
        make_room: see `JobDesk.make_room`.
    """

    def __init__(
        self,
        resource: str,
        pace: Pace,
        in_the_way: Callable[[str, int, Instant], str],
        *,
        seller: Seller,
        unpaid: Unpaid,
        make_room: MakeRoom,
    ) -> None:
        super().__init__(pace, in_the_way, seller=seller, unpaid=unpaid)
        self._words = Words(resource, pace)
        self._make_room = make_room
        self._left_alone: dict[str, Instant] = {}
        self._in_vain: dict[str, int] = {}  # by offer id, reclamations in a row that have come to nothing

    @property
    def deadline(self) -> Instant | None:
        """When `tick` wants to be called, or None."""
        return earliest(super().deadline, self._words.deadline)

    @property
    def being_taken(self) -> int:
        """Cores that are on their way back."""
        return sum(
            self._slots[offer_id].state.cores - change.body.cores
            for offer_id, change in self._open.items()
            if isinstance(change, Taking)
        )

    @property
    def awaited(self) -> tuple[str, ...]:
        """Buyers who were told of what was posted and have not said that they know."""
        return self._words.awaited

    # -- the journal ---------------------------------------------------------------------------------------------

    def replay(self, record: SizeRecord | ReclaimingRecord, participant: Participant) -> None:
        """Take one record of the journal; its slot is known by then."""
        if not isinstance(record, ReclaimingRecord):
            super().replay(record, participant)
            return
        slot = self._slot(participant)
        if isinstance(record, ReclamationDrawn):
            slot.change = self._taking(slot, record.reclamation, record.step)
            self._count(slot, slot.change)
            return
        change = slot.change
        assert isinstance(change, Taking), "it was drawn up first"
        if isinstance(record, ReclamationSettled):
            self._settled(slot, change.body, Reclaimed(change.document, record.posted, record.seal))
        elif isinstance(record, ReclamationDropped):
            body = change.body
            word = ReclamationRefused(body.agreement_id, body.number, record.code, record.detail)
            self._ended(slot, body, word)
        else:
            change.replay(record)
        self._show(slot)

    def recover(self, offer_id: str, now: Instant) -> list[Effect]:
        """Go on with a slot's change after a restart, and tell its buyer once more what was taken."""
        effects = super().recover(offer_id, now)
        slot = self._slots.get(offer_id)
        if slot is None or slot.participant.state is ParticipantState.RELEASED:
            return effects
        if now < slot.state.until:
            for word in slot.taken.values():
                if isinstance(word, Reclaimed):
                    effects += self._words.tell(offer_id, _conversation(slot), word, slot.state.until, now)
        if isinstance(slot.change, Taking):
            effects += self._announced(slot, slot.change, now)
        return effects

    def forget(self, offer_id: str) -> None:
        """Let a slot go."""
        super().forget(offer_id)
        self._words.forget(offer_id)
        self._left_alone.pop(offer_id, None)
        self._in_vain.pop(offer_id, None)

    def kept(self, participant: Participant) -> None:
        """A participant has moved; one that is released has nothing to change any more."""
        super().kept(participant)
        if participant.state is ParticipantState.RELEASED:
            self._words.forget(participant.offer.offer_id)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        super().clock_set(by)
        self._words.clock_set(by)
        self._left_alone = {offer_id: until + by for offer_id, until in self._left_alone.items()}

    # -- taking back ---------------------------------------------------------------------------------------------

    def reclaimable(self, participants: Iterable[Participant], now: Instant) -> list[Reclaimable]:
        """The running slots of which `take_back` would take cores now, the one that started last first.

        That is FPSMA's order of shrinking (CoreGRID TR-0092, section 4).
        """
        found = []
        for participant in participants:
            offer_id, start = participant.offer.offer_id, participant.offer.start
            if not start <= now or now < self._left_alone.get(offer_id, 0):
                continue
            body, _ = self._to_take(participant, None, None, now)
            if body is None:
                continue
            right, state = participant.agreed.request.reclaim, self._slot(participant).state
            assert right is not None, "it is by right"
            if now + taking_lasts(right, self._pace.timing) < state.until:
                found.append(Reclaimable(offer_id, start, state.cores - body.cores))
        return sorted(found, key=lambda each: (-each.start, each.offer_id))

    def leave_alone(self, offer_id: str, now: Instant) -> None:
        """Pass a slot over for a while, so that others are asked for what it does not give."""
        self._left_alone[offer_id] = now + PAUSE

    def take_back(
        self, participant: Participant, cores: int | None, max_cost: int | None, now: Instant
    ) -> tuple[list[Effect], str]:
        """Begin to take cores of a slot back.

        Args:
            participant: the slot.
            cores: how many; None for all that the agreement allows.
            max_cost: the most that refund and compensation may be together, minor units; None for whatever they are,
                at a compensation that the resource pays by itself.
            now: the present.

        Returns:
            What is to be done, or why nothing is, as a sentence.
        """
        body, problem = self._to_take(participant, cores, max_cost, now)
        if body is None:
            return [], problem
        slot = self._slot(participant)
        change = slot.change = self._taking(slot, body, slot.next_step)
        return self._kept(slot, change.start()), ""

    def _to_take(
        self, participant: Participant, cores: int | None, max_cost: int | None, now: Instant
    ) -> tuple[Reclamation | None, str]:
        """What a reclamation would say, or why there can be none, as a sentence; see `take_back`."""
        if participant.state is not ParticipantState.SOLD or participant.agreement is None:
            return None, f"the slot is {participant.state}; right would be sold"
        slot = self._slot(participant)
        if slot.change is not None:
            kind = "reclamation" if isinstance(slot.change, Taking) else "amendment"
            return None, f"another_open: {kind} {slot.change.body.number} of it is open"
        if len(slot.changes) > CHANGES_MAX:
            changed = f"the slot was changed {len(slot.changes)} times; right would be {CHANGES_MAX}"
            return None, f"{TOO_MANY_CHANGES}: {changed}"
        body = self._drawn_up(slot, cores, now)
        if body is None:
            return None, "no_right: the agreement gives its seller no right to take cores back"
        problem = reclamation_problem(participant.agreed, slot.state, body)
        problem = problem or self._cost_problem(participant.agreed, body, max_cost)
        return (body, "") if problem is None else (None, f"{problem[0]}: {problem[1]}")

    def _cost_problem(self, agreement: Agreement, body: Reclamation, max_cost: int | None) -> tuple[str, str] | None:
        """Why a reclamation costs too much, as code and sentence."""
        right = agreement.request.reclaim
        assert right is not None, "it is by right"
        total, most = body.refund + body.compensation, self._seller.compensation_max
        told = (
            f"it would cost {credits_text(total)} credits, {credits_text(body.refund)} back and "
            f"{credits_text(body.compensation)} on top"
        )
        if max_cost is not None:
            return (
                (TOO_EXPENSIVE, f"{told}; at most {credits_text(max_cost)} may be paid") if total > max_cost else None
            )
        if right.compensation <= most:
            return None
        asked = f"{right.compensation} credits/core-hour; right would be at most {most}, or to name that sum"
        return TOO_EXPENSIVE, f"{told} at {asked} as the most that it may cost"

    def _drawn_up(self, slot: KeptSlot, cores: int | None, now: Instant) -> Reclamation | None:
        agreement, state = slot.participant.agreed, slot.state
        right = agreement.request.reclaim
        if right is None:
            return None
        left = right.least if cores is None else state.cores - cores
        effective_at = now + right.notice + ON_THE_WAY
        return Reclamation(
            agreement_id=agreement.agreement_id,
            number=max(slot.taken, default=0) + 1,
            previous=state.digest,
            offer_id=agreement.offer.offer_id,
            user=agreement.user,
            resource=agreement.resource,
            bank=agreement.bank,
            cores=left,
            until=state.until,
            effective_at=effective_at,
            refund=refund_owed(agreement, state, left, state.until, effective_at),
            compensation=compensation_owed(right, state, left, effective_at),
            issued_at=now,
            valid_until=min(effective_at + self._pace.timing.amendment_window, state.until),
        )

    # -- messages and answers ------------------------------------------------------------------------------------

    def on_amendment(
        self, message: Message, signed: Signed, participant: Participant | None, now: Instant
    ) -> list[Effect]:
        """Take a buyer's proposal; a reclamation of which the buyer has not heard gives way to it, once."""
        given_way: list[Effect] = []
        body = signed.body
        assert isinstance(body, Amendment)
        own = participant is not None and participant.agreement is not None and signed.signers == (participant.user,)
        slot = self._slots.get(body.offer_id) if own else None
        if slot is not None and isinstance(slot.change, Taking) and self._crosses(slot, slot.change, body, now):
            given_way = self._kept(slot, slot.change.give_way(now))
        return given_way + super().on_amendment(message, signed, participant, now)

    def _crosses(self, slot: KeptSlot, change: Taking, body: Amendment, now: Instant) -> bool:
        """Whether a proposal has been made without knowing of a reclamation, and would be agreed to without it."""
        if change.heard or slot.gave_way or change.state not in BEFORE_TIME or body.number in slot.said:
            return False
        slot.change = None
        fits = self._problem(slot, body, now) is None
        slot.change = change
        return fits

    def on_heard(
        self, message: Message, word: ReclamationHeard, participant: Participant, now: Instant
    ) -> list[Effect]:
        """A buyer knows that cores go, or have gone.

        Raises:
            RemoteProtocolError: if it is not its own word.
        """
        sealed_by(message, Role.USER)
        if message.sender != participant.user:
            raise RemoteProtocolError("the slot is sold to another user")
        offer_id = participant.offer.offer_id
        self._words.heard(offer_id, word, now)
        change = self._open.get(offer_id)
        if isinstance(change, Taking) and change.body.number == word.number:
            return change.on_heard(now)
        return []

    def answered(self, message: Message) -> None:
        """An answer to what somebody was told: who has not understood it is told no more."""
        if isinstance(message.content, NotUnderstood):
            self._words.not_understood(message)

    def on_reclamation(
        self,
        content: ReclamationNoticed | ReclamationPosted | ReclamationRefused,
        seal: Seal,
        participant: Participant,
        now: Instant,
    ) -> list[Effect]:
        """The bank's word on a reclamation, with its seal.

        Raises:
            RemoteProtocolError: if it has posted something else.
        """
        offer_id = participant.offer.offer_id
        change = self._open.get(offer_id)
        if not isinstance(change, Taking) or change.body.number != content.number:
            return []
        slot, noticed = self._slots[offer_id], change.announcement
        effects = self._kept(slot, change.on_bank(content, seal, now))
        if noticed is None and change.announcement is not None:
            effects += [Report(ReclamationAdvanced(change.body, "noticed")), *self._announced(slot, change, now)]
        if isinstance(change.last_word, Reclaimed):
            until = slot.state.until
            effects += self._words.tell(offer_id, _conversation(slot), change.last_word, until, now)
        return effects

    def tick(self, now: Instant) -> list[Effect]:
        """Let every change act whose deadline has come, and tell again what was not heard."""
        return super().tick(now) + self._words.tick(now)

    # -- common --------------------------------------------------------------------------------------------------

    def _taking(self, slot: KeptSlot, body: Reclamation, first_step: int) -> Taking:
        agreement = slot.participant.agreement
        assert agreement is not None, "it is sold"
        return Taking(body, agreement, tuple(slot.changes), slot.state, first_step, self._pace, self._make_room)

    def _announced(self, slot: KeptSlot, change: Taking, now: Instant) -> list[Effect]:
        if change.announcement is None or change.heard:
            return []
        offer_id = slot.participant.offer.offer_id
        return self._words.tell(offer_id, _conversation(slot), change.announcement, change.body.valid_until, now)

    def _kept(self, slot: KeptSlot, effects: list[Effect]) -> list[Effect]:
        """Keep what a change has come to."""
        change = slot.change
        if not isinstance(change, Taking):
            return super()._kept(slot, effects)
        offer_id = slot.participant.offer.offer_id
        self._open[offer_id] = change
        if change.on_record:
            self._count(slot, change)
        if change.state is SizeChangeState.ENDED:
            del self._open[offer_id]
            effects = effects + self._over(slot, change)
        self._show(slot)
        return effects

    def _over(self, slot: KeptSlot, change: Taking) -> list[Effect]:
        """A reclamation has ended: it holds, or it comes to nothing and its buyer is told so."""
        offer_id, word = slot.participant.offer.offer_id, change.last_word
        slot.ended(change)
        self._words.over(offer_id, change.body.number)
        if change.stranded:
            self._stranded.append((offer_id, change.stranded))
        if isinstance(word, Reclaimed):
            self._settled(slot, change.body, word)
            self._in_vain.pop(offer_id, None)
            return [Report(ReclamationAdvanced(change.body, "posted"))]
        in_vain = self._in_vain[offer_id] = self._in_vain.get(offer_id, 0) + 1
        self._left_alone[offer_id] = change.ended_at + min(PAUSE << (in_vain - 1), PAUSE_MAX)
        if word is None:
            slot.gave_way = slot.gave_way or change.why[0] == GAVE_WAY
            return [Report(ReclamationAdvanced(change.body, "dropped", *change.why))]
        self._ended(slot, change.body, word)
        told = Message(
            Performative.REFUSE,
            change.body.resource,
            change.body.user,
            change.conversation_id,
            word,
            in_reply_to=f"{word.agreement_id}#r{word.number}",
        )
        return [Send(told), Report(ReclamationAdvanced(change.body, "dropped", word.code, word.detail))]

    def _settled(self, slot: KeptSlot, body: Reclamation, word: Reclaimed) -> None:
        self._ended(slot, body, word)
        slot.state = reclaimed(slot.state, body)
        slot.changes.append(word.reclamation)
        slot.gave_way = False

    def _ended(self, slot: KeptSlot, body: Reclamation, word: Reclaimed | ReclamationRefused) -> None:
        slot.change = None
        slot.taken[body.number] = word
        if isinstance(word, ReclamationRefused) and word.code == GAVE_WAY:
            slot.gave_way = True


def _conversation(slot: KeptSlot) -> str:
    return slot.participant.agreed.request_id
