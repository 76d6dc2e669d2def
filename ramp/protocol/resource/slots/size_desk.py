"""The resizes of a resource's sold slots: proposals, states of slots, and answers.

One resize of a slot is open at a time; the resource refuses others meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.instant import MINUTE, Duration, Instant, iso, seconds
from ramp.model.offer import RefusalCode
from ramp.model.seal import Role, Seal
from ramp.model.sizes import amended
from ramp.protocol.belief import sealed_lately
from ramp.protocol.conversations import Conversations, Registry
from ramp.protocol.effects import Effect, Send, reply
from ramp.protocol.events import SlotResized
from ramp.protocol.records import ChangeDropped, ChangeReceived, ChangeSettled, SoldChangeRecord
from ramp.protocol.resource.jobs.job_desk import Lose
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.quotas import Booked, Unpaid
from ramp.protocol.resource.seller import DRAINING_DETAIL, Seller
from ramp.protocol.resource.slots.growth_prices import GrowthPrices, refused
from ramp.protocol.resource.slots.seller_change import SellerChange
from ramp.protocol.timing import Pace
from ramp.protocol.transition_tables import ParticipantState, SellerChangeState

EFFECT_SLACK: Final[Duration] = MINUTE
"""Maximum delay of an addition after its notice, by the seller's clock; until it begins it is reserved without pay."""

GrowthWord = c.ChangeCall | c.ChangeAgreed | c.ChangeWithdrawal
"""A buyer's messages about an addition, other than the amendment itself."""


@dataclass(slots=True)
class KeptSlot:
    """One sold slot with proposed resizes.

    Attributes:
        participant: the accepted offer.
        state: present state of the slot.
        said: final answer to each ended amendment, by number.
    """

    participant: Participant
    state: amended.SlotState
    said: dict[int, c.ChangeDone | c.ChangeRefused] = field(default_factory=dict)

    @property
    def posted(self) -> list[c.ChangePosted]:
        """The bank's answers about posted amendments."""
        return [each.posted for each in self.said.values() if isinstance(each, c.ChangeDone)]

    def added(self, cores: int, until: Instant) -> int:
        """Return the cores that the machine reserves for an addition."""
        return cores if until > self.state.until else cores - self.state.cores

    def amended(self, body: ContractChange) -> None:
        """Apply a posted amendment."""
        before, self.state = self.state, amended.after(self.state, body)
        if self.state.cores > before.cores:
            self.participant.not_before += ((self.state.since, before.cores),)


UNBOOKED = (ParticipantState.NEW, ParticipantState.RELEASED)
"""States of a slot that takes no cores of the machine; a failed one takes none either."""


class SizeDesk:
    """The resizes of one resource.

    Args:
        in_the_way: returns why a slot (an offer's id) cannot have these cores and this end, or the empty string.
        lose: reports a slot (an offer's id) as failed that has neither its new nor its old size.
        seller: prices additions, unless it is draining.

    Attributes:
        booked: held and sold slots in their largest size.
        prices: of additions.
    """

    def __init__(
        self,
        pace: Pace,
        in_the_way: Callable[[str, int, Instant], str],
        lose: Lose,
        *,
        seller: Seller,
        unpaid: Unpaid,
        registry: Registry,
    ) -> None:
        self.booked = Booked(seller.cores)
        self.prices = GrowthPrices(pace.timing, seller.price_question)
        registry.follow(self.prices.answers)
        self._seller = seller
        self._unpaid = unpaid
        self._pace = pace
        self._in_the_way = in_the_way
        self._slots: dict[str, KeptSlot] = {}
        self._open: Conversations[SellerChange] = Conversations(registry, followed=self._followed)
        self._lose = lose

    @property
    def open(self) -> tuple[str, ...]:
        """Offer ids of the slots with an open resize."""
        return tuple(self._open)

    def given_back(self, offer_id: str) -> int:
        """Return the refunds of a slot's resizes less their charges, in minor units."""
        slot = self._slots.get(offer_id)
        return 0 if slot is None else -sum(each.amount for each in slot.posted)

    # -- the journal ---------------------------------------------------------------------------------------------

    def replay(self, record: SoldChangeRecord, participant: Participant) -> None:
        slot = self._slot(participant)
        if isinstance(record, ChangeReceived):
            self._begun(record.signed, slot).on_record = True
            return
        change = self._open[record.offer_id]
        if isinstance(record, ChangeSettled):
            slot.amended(change.body)
            slot.said[change.body.number] = c.ChangeDone(change.signed, record.posted, record.seal)
            self._close(record.offer_id)
        elif isinstance(record, ChangeDropped):
            body = change.body
            slot.said[body.number] = c.ChangeRefused(body.agreement_id, body.number, record.code, record.detail)
            self._close(record.offer_id)
        else:
            change.replay(record)
        self._show(slot)

    def recover(self, offer_id: str, now: Instant) -> list[Effect]:
        change = self._open.get(offer_id)
        if change is None or self._slots[offer_id].participant.state is ParticipantState.RELEASED:
            return []
        return self._open.act(offer_id, partial(change.recover, now), now)

    def forget(self, offer_id: str) -> None:
        self._slots.pop(offer_id, None)
        self.booked.remove(offer_id)
        self._close(offer_id)

    def _close(self, offer_id: str) -> None:
        change = self._open.drop(offer_id)
        if change is not None:
            self._unpaid.remove(change.body.user, change.body.key)

    def kept(self, participant: Participant) -> None:
        """Follow a participant's state: book its slot, or drop the resize of a released one."""
        self._book(participant)
        if participant.state is ParticipantState.RELEASED:
            self._close(participant.offer.offer_id)

    # -- messages and answers ------------------------------------------------------------------------------------

    def on_change(self, message: Message, signed: Signed, participant: Participant, now: Instant) -> list[Effect]:
        """Take a buyer's proposal about its sold slot, for the first time or again."""
        body = signed.change
        slot, change = self._slot(participant), self._open.get(body.offer_id)
        if change is not None and change.body == body:
            return change.on_proposed()
        said = slot.said.get(body.number)
        if said is not None:
            return [_say(message, said)]
        problem = self._problem(slot, body, now)
        if problem is not None:
            return [refused(message, body, *problem)]
        change = self._begun(signed, slot)
        return self._open.act(body.offer_id, partial(change.start, now), now)

    def on_growth(
        self, message: Message, word: GrowthWord, participant: Participant | None, now: Instant
    ) -> list[Effect]:
        """Take a buyer's message about an addition, other than the amendment itself.

        Raises:
            RemoteProtocolError: if the seal is missing, old or another's.
        """
        sealed_lately(message, Role.USER, now, self._pace.timing)
        if participant is None or participant.user != message.sender:
            detail = "no slot is sold to the sender under this agreement"
            return [refused(message, word, "unknown_agreement", detail)] if isinstance(word, c.ChangeCall) else []
        slot = self._slot(participant)
        change = self._open.get(participant.offer.offer_id)
        is_open = change is not None and change.body.number == word.number
        if isinstance(word, c.ChangeCall):
            if is_open:
                return []  # a late copy of the call
            problem = self._standing_problem(slot) or self._selling_problem(slot, word.cores, word.until)
            if problem is not None:
                return [refused(message, word, *problem)]
            return self.prices.on_call(message, word, participant, slot.state, now)
        if change is not None and is_open and change.body.grows:
            heard = change.on_funded if isinstance(word, c.ChangeAgreed) else change.on_withdrawn
            return self._open.act(change.body.offer_id, partial(heard, now), now)
        said = slot.said.get(word.number)
        return [] if said is None or isinstance(word, c.ChangeWithdrawal) else [_say(message, said)]

    def on_resized(self, resized: SlotResized, now: Instant) -> list[Effect]:
        change = self._open.get(resized.key)
        if change is None:
            return []
        return self._open.act(resized.key, partial(change.on_resized, resized, now), now)

    def on_bank(
        self, content: c.ChangePosted | c.ChangeRefused, seal: Seal, participant: Participant, now: Instant
    ) -> list[Effect]:
        """Take the bank's answer about an amendment; `RemoteProtocolError` if it has posted another amount."""
        change = self._open.get(participant.offer.offer_id)
        if change is None or change.body.number != content.number:
            return []
        return self._open.act(change.body.offer_id, partial(change.on_bank, content, seal, now), now)

    # -- common --------------------------------------------------------------------------------------------------

    def _problem(self, slot: KeptSlot, body: ContractChange, now: Instant) -> tuple[str, str] | None:
        participant, timing = slot.participant, self._pace.timing
        standing = self._standing_problem(slot)
        if standing is not None:
            return standing
        if abs(now - body.issued_at) > timing.message_age:
            age = f"issued at {iso(body.issued_at)}, but the clock here says {iso(now)}"
            return "too_old", f"{age}; expected at most {seconds(timing.message_age):g} s apart, check both clocks"
        if now >= body.effective_at:
            return "too_late", f"the effective time {iso(body.effective_at)} is in the past"
        problem = amended.change_problem(participant.agreed, slot.state, body)
        if problem is not None:
            return problem
        if short := amended.notice_problem(body, timing.amendment_notice):
            return "short_notice", short
        if body.grows:
            latest = now + timing.amendment_notice + EFFECT_SLACK
            if body.effective_at > latest:
                told = f"the amendment takes effect at {iso(body.effective_at)}"
                return "long_notice", f"{told}, expected {iso(latest)} or earlier"
            if unsold := self._selling_problem(slot, body.cores, body.until):
                return unsold
            if full := self.booked.problem(now, body.until, body.cores, without=body.offer_id):
                return RefusalCode.SLOT_TAKEN, full
            return self._price_problem(body, now)
        if busy := self._in_the_way(body.offer_id, body.cores, body.until):
            return "job_in_the_way", busy
        return None

    def _standing_problem(self, slot: KeptSlot) -> tuple[str, str] | None:
        if slot.participant.state is not ParticipantState.SOLD:
            return "not_active", f"the slot is {slot.participant.state}, expected sold"
        change = self._open.get(slot.participant.offer.offer_id)
        if change is not None:
            return "another_open", f"amendment {change.body.number} of the slot is still open"
        return amended.number_problem(len(slot.posted))

    def _selling_problem(self, slot: KeptSlot, cores: int, until: Instant) -> tuple[str, str] | None:
        if self._seller.draining:
            return "draining", DRAINING_DETAIL
        too_much = self._unpaid.problem(slot.participant.user, slot.added(cores, until))
        return ("quota", too_much) if too_much else None

    def _price_problem(self, body: ContractChange, now: Instant) -> tuple[str, str] | None:
        price = self.prices.price(body.previous, body.cores, body.until, now)
        if price is None:
            return "no_price", "this change has no valid price; ask for a price first"
        if body.cpu_hour_cost < price:
            return "price", f"the price must be at least {price} credits/core-hour, got {body.cpu_hour_cost}"
        return None

    def _begun(self, signed: Signed, slot: KeptSlot) -> SellerChange:
        change = SellerChange(signed, slot.participant, slot.state, self._pace)
        return self._open.add(change.body.offer_id, change)

    def _slot(self, participant: Participant) -> KeptSlot:
        offer_id = participant.offer.offer_id
        if offer_id not in self._slots:
            self._slots[offer_id] = KeptSlot(participant, amended.first_state(participant.agreed))
        return self._slots[offer_id]

    def _followed(self, change: SellerChange, effects: list[Effect], now: Instant) -> list[Effect]:
        """Follow the state of a change after its action."""
        offer_id = change.body.offer_id
        slot = self._slots[offer_id]
        if change.body.grows:
            added = slot.added(change.body.cores, change.body.until)
            self._unpaid.add(change.body.user, change.body.key, added)
        if change.state is SellerChangeState.ENDED:
            assert change.last_word is not None
            self._close(offer_id)
            slot.said[change.body.number] = change.last_word
            if isinstance(change.last_word, c.ChangeDone):
                slot.amended(change.body)
        self._show(slot)
        if change.stranded:  # after a crash between the two the resize is still open, and ends once more
            return [*self._lose(offer_id, RefusalCode.NOT_DELIVERED, change.stranded, now), *effects]
        return effects

    def _show(self, slot: KeptSlot) -> None:
        """Set the usable size of the participant."""
        change = self._open.get(slot.participant.offer.offer_id)
        if change is not None and change.is_binding:
            slot.participant.size = change.body.cores, change.body.until
        else:
            slot.participant.size = slot.state.cores, slot.state.until
        self._book(slot.participant)

    def _book(self, participant: Participant) -> None:
        offer, change = participant.offer, self._open.get(participant.offer.offer_id)
        # a queue holds more than the machine can run at once
        if participant.state in UNBOOKED or participant.failed or offer.in_queue:
            self.booked.remove(offer.offer_id)
            return
        cores, until = participant.size
        if change is not None and change.body.grows:
            cores, until = max(cores, change.body.cores), max(until, change.body.until)
        self.booked.put(offer.offer_id, offer.start, until, cores)


def _say(message: Message, content: c.ChangeDone | c.ChangeRefused) -> Send:
    performative = Performative.INFORM if isinstance(content, c.ChangeDone) else Performative.REFUSE
    return reply(message, performative, content)
