"""The resource's side of the auction: evaluate a call, quote, price, and remember the offers made (section 6.2).

Evaluating takes the paper's two steps: the static terms against the configuration, then the machine's load from the
plug-in and a price by the strategy. A unit whose size the seller may choose is quoted and priced at several sizes, of
which the cheapest is offered. Every unit is answered, with an offer or with a coded refusal. A call that comes
again gets the same answer.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor

from ramp.model.acl import Message, Performative
from ramp.model.called_terms import bound
from ramp.model.contents import CallForProposals, Proposal
from ramp.model.instant import Duration, Instant, iso
from ramp.model.machine_terms.static_terms import check_static_terms
from ramp.model.money import cost
from ramp.model.offer import Offer, Refusal, RefusalCode, ease
from ramp.model.ports import IdSource
from ramp.model.probable_start import QUEUE_WAIT_MAX, RefundRule
from ramp.model.request import RequestUnit
from ramp.model.shortcoming import site_refusal
from ramp.model.sizes.moldable import candidates, price_for, price_with, reference_price
from ramp.model.slot import Slot, StaticTerms
from ramp.protocol.effects import Effect, PriceSlots, QuoteSlots, Send
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.recent import Recent
from ramp.protocol.timing import Timing

OFFERS_MAX = 50_000
"""Open offers remembered; the oldest go first. At 25 units and 10 rounds that is 200 auctions at once."""

ANSWERS_MAX = 5_000
"""Answers remembered for repeated calls; a call is repeated within seconds."""

PENDING_MAX = 5_000
"""Calls that wait for machine or strategy; the oldest go first, as if they had been lost on the way."""


DRAINING_DETAIL = "draining: the resource keeps its reservations and makes no new sales"


def _start_refusal(unit: RequestUnit, slot: Slot, soonest: Instant, latest: Instant) -> Refusal | None:
    """Why a job is not sold in place of a slot, with what would pass; None where it is, and for what is reserved.

    Args:
        unit: as it is called for.
        slot: what the machine can give.
        soonest: a purchase may take so long.
        latest: until when the bank keeps money aside.
    """
    offered, asked = slot.start_probability, unit.start_probability
    if offered is None:
        return None
    if asked is not None and not soonest <= slot.start <= latest:
        by = min(max(slot.start, soonest), latest)
        nearest = iso(by + slot.end - slot.start)
        detail = f"the latest start {iso(slot.start)} is out of range; the nearest allowed is {iso(by)}"
        return Refusal(unit.number, RefusalCode.WINDOW_TOO_SHORT, nearest, detail)
    if asked is not None and asked <= offered:
        return None
    nearest = f"{floor(offered * 10**6) / 10**6:g} StartProbability"
    detail = "this machine has no reservations, so the start is only probable"
    return Refusal(unit.number, RefusalCode.START_PROBABILITY, nearest, detail)


@dataclass(frozen=True, slots=True)
class PriceRange:
    """What the administrator sets (section 6.2.3): whole credits per core hour, and the rounds expected."""

    start_price: int
    minimum_price: int
    rounds_expected: int = 4


@dataclass(frozen=True, slots=True)
class OpenOffer:
    """An offer made, with what is needed to hold its slot and to know what it is owed."""

    offer: Offer
    unit: RequestUnit
    slot: Slot
    user: str
    expires: Instant
    rule: str = ""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A call whose quotes the plug-in, and then whose prices the strategy is working out."""

    message: Message
    call: CallForProposals
    asked: tuple[RequestUnit, ...]  # as the machine is asked: of one size each
    refused: tuple[Refusal, ...]
    slots: tuple[tuple[RequestUnit, Slot], ...] = ()

    def unit(self, number: int) -> RequestUnit:
        """A unit as it was called for."""
        return self.call.request.unit(number)

    @property
    def key(self) -> tuple[str, str, int]:
        """What copies of the call have in common."""
        return self.message.sender, self.call.request_id, self.call.round_number


class Seller:
    """All the bidding of one resource.

    Args:
        resource: name of the selling agent.
        terms: the machine's static terms.
        prices: the administrator's prices.
        source: what drives the machine's queue (`log`, `synthetic`, `live`), as far as that is known yet.
        ids: where offer ids come from.
        timing: the protocol's limits.
        draining: whether it begins so.
        launching: how the resource launches jobs; None where it does not, and so needs to know no buyer.

    Attributes:
        terms: as above.
        draining: whether nothing new is sold; every unit of a call is refused then.
    """

    def __init__(
        self,
        resource: str,
        *,
        terms: StaticTerms,
        prices: PriceRange,
        source: str,
        ids: IdSource,
        timing: Timing,
        draining: bool = False,
        launching: LaunchTerms | None = None,
    ) -> None:
        self._resource = resource
        self.terms = terms
        self._prices = prices
        self.source = source
        self._ids = ids
        self._timing = timing
        self.draining = draining
        self._launching = launching
        self._offers: OrderedDict[str, OpenOffer] = OrderedDict()
        # as long as an offer stands: what is older belongs to no auction that goes on
        self._last_bids: Recent[tuple[str, str, int], tuple[int, int]] = Recent(timing.offer_validity, OFFERS_MAX)
        self._answers: Recent[tuple[str, str, int], Message] = Recent(timing.offer_validity, ANSWERS_MAX)
        self._pending: OrderedDict[str, _Pending] = OrderedDict()
        self._being_quoted: set[tuple[str, str, int]] = set()
        self._calls = 0

    @property
    def cores(self) -> int:
        """Cores of the machine."""
        return self.terms.cores

    def set_selling(self, prices: PriceRange, *, draining: bool) -> None:
        """What the administrator asks from the next call on, and whether at all; offers that stand keep their price."""
        self._prices = prices
        self.draining = draining

    def described(self, snapshot: str) -> str:
        """A machine's snapshot with what the seller adds for buyers: system, architecture, and its first price.

        Args:
            snapshot: a JSON object as text.
        """
        stated = {
            "operating_system": self.terms.operating_system,
            "architecture": self.terms.architecture,
            "start_price": self._prices.start_price,
            **({"draining": True} if self.draining else {}),
        }
        return json.dumps({**json.loads(snapshot), **stated}, separators=(",", ":"))

    def on_call(self, message: Message, call: CallForProposals, now: Instant) -> list[Effect]:
        """Step one: the static terms; then ask the plug-in for what is left."""
        answered = self._answers.get((message.sender, call.request_id, call.round_number))
        if answered is not None:
            return [Send(answered, sealed=bool(call.rule))]
        if (message.sender, call.request_id, call.round_number) in self._being_quoted:
            return []  # a copy; the machine is still at work on the first
        asked: list[RequestUnit] = []
        refused: list[Refusal] = []
        unmapped = self._launching.problem(message.sender) if self._launching is not None else ""
        for unit in call.request.units:
            if unmapped:
                refused.append(Refusal(unit.number, RefusalCode.NO_ACCOUNT, detail=unmapped))
                continue
            for size in candidates(unit):
                refusal = site_refusal(unit, self._resource) or check_static_terms(size, self.terms)
                refusal = refusal or self._draining_refusal(unit, message)
                if refusal is None:
                    asked.append(size)
                else:
                    refused.append(refusal)
        self._calls += 1
        call_id = f"quote-{self._calls}"
        pending = self._pending[call_id] = _Pending(message, call, tuple(asked), tuple(refused))
        self._being_quoted.add(pending.key)
        if len(self._pending) > PENDING_MAX:
            self.drop(next(iter(self._pending)))
        if not asked:
            return self.on_quoted(call_id, (), now)
        return [QuoteSlots(call_id, tuple(asked))]

    def on_quoted(self, call_id: str, answers: Sequence[Slot | Refusal], now: Instant) -> list[Effect]:
        """Step two: ask the strategy for a price for each slot."""
        pending = self._pending.get(call_id)
        if pending is None:
            return []
        refused = [answer for answer in answers if isinstance(answer, Refusal)]
        slots = [(unit, got) for unit, got in zip(pending.asked, answers, strict=True) if isinstance(got, Slot)]
        self._pending[call_id] = replace(pending, refused=(*pending.refused, *refused), slots=tuple(slots))
        if not slots:
            return self.on_priced(call_id, (), now)
        questions = [self._price_question(unit, slot, pending) for unit, slot in slots]
        return [PriceSlots(call_id, tuple(questions))]

    def on_priced(self, call_id: str, prices: Sequence[int | PriceRefusal], now: Instant) -> list[Effect]:
        """Answer the call: an offer for each slot that has a price, and a coded refusal of every other unit."""
        pending = self.drop(call_id)
        if pending is None:
            return []
        message, call = pending.message, pending.call
        refusals = list(pending.refused)
        priced: dict[int, list[tuple[Slot, int]]] = {}
        for (size, slot), price in zip(pending.slots, prices, strict=True):
            unit = pending.unit(size.number)
            uncertain = _start_refusal(unit, slot, now + self._timing.agreement_validity, now + QUEUE_WAIT_MAX)
            refusal = uncertain or _refused_at(price, unit, slot, call)
            if refusal is not None:
                refusals.append(refusal)
            elif not isinstance(price, PriceRefusal):
                priced.setdefault(unit.number, []).append((slot, price))
        offers = [self._bid(pending, pending.unit(number), sizes, now) for number, sizes in priced.items()]
        told = tuple(_one_for_each(refusals, priced))
        reply = Message(
            Performative.PROPOSE if offers else Performative.REFUSE,
            self._resource,
            message.sender,
            message.conversation_id,
            Proposal(call.request_id, call.round_number, tuple(offers), told),
            in_reply_to=message.reply_with,
        )
        self._answers.put(pending.key, reply, now)
        return [Send(reply, sealed=bool(call.rule))]  # the winner is shown the runner-up's offer

    def drop(self, call_id: str) -> _Pending | None:
        """Forget a call that has not been answered; a copy of it is answered from the start."""
        pending = self._pending.pop(call_id, None)
        if pending is not None:
            self._being_quoted.discard(pending.key)
        return pending

    def offer(self, offer_id: str, now: Instant) -> OpenOffer | None:
        """An offer that still stands."""
        found = self._offers.get(offer_id)
        return found if found is not None and found.expires > now else None

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`; an offer stands as long as it said."""
        for offer_id, each in self._offers.items():
            self._offers[offer_id] = replace(each, expires=each.expires + by)
        self._last_bids.clock_set(by)
        self._answers.clock_set(by)

    def rejected(self, offer_id: str, user: str) -> None:
        """A user does not want an offer; nobody else's is forgotten."""
        found = self._offers.get(offer_id)
        if found is not None and found.user == user:
            self.forget(offer_id)

    def forget(self, offer_id: str) -> None:
        """The offer was rejected or has been accepted."""
        self._offers.pop(offer_id, None)

    def _draining_refusal(self, unit: RequestUnit, message: Message) -> Refusal | None:
        if not self.draining:
            return None
        return Refusal(unit.number, RefusalCode.DRAINING, detail=DRAINING_DETAIL)

    def _price_question(self, size: RequestUnit, slot: Slot, pending: _Pending) -> PriceQuestion:
        user, call, unit = pending.message.sender, pending.call, pending.unit(size.number)
        last_round, own_last = self._last_bids.get((user, call.request_id, unit.number)) or (0, None)
        if own_last is not None:
            own_last = price_with(replace(unit, cpu_hour_cost=own_last), slot.cores, slot.end - slot.start)
        return PriceQuestion(
            asking=price_with(unit, slot.cores, slot.end - slot.start),
            start_price=self._prices.start_price,
            minimum_price=self._prices.minimum_price,
            load=slot.load,
            rounds_expected=self._prices.rounds_expected,
            own_last=own_last if last_round < call.round_number else None,
            round_number=call.round_number,
            best_offer=call.best_offer,
            user=user,
            cores=slot.cores,
            fragmentation=slot.fragmentation,
            links_taken=slot.links_taken,
        )

    def question_for_growth(self, asking: int, user: str, slot: Slot) -> PriceQuestion:
        """What the strategy is asked for what would be added to a slot: as in the first round of an auction.

        Args:
            asking: what its buyer would pay at most, credits per core hour.
            user: the buyer.
            slot: what would be added, as the machine has it.
        """
        return PriceQuestion(
            asking=asking,
            start_price=self._prices.start_price,
            minimum_price=self._prices.minimum_price,
            load=slot.load,
            rounds_expected=self._prices.rounds_expected,
            user=user,
            cores=slot.cores,
            fragmentation=slot.fragmentation,
            links_taken=slot.links_taken,
        )

    def _bid(self, pending: _Pending, unit: RequestUnit, sizes: Sequence[tuple[Slot, int]], now: Instant) -> Offer:
        """Offer the unit at the size that costs least, of several the one that ends first; and remember the offer."""
        call, user = pending.call, pending.message.sender
        slot, price = min(
            sizes, key=lambda each: (cost(each[1], each[0].cores, each[0].end - each[0].start), each[0].end)
        )
        offer = Offer(
            offer_id=self._ids.new("offer"),
            request_id=call.request_id,
            unit=unit.number,
            resource=self._resource,
            cpu_hour_cost=price,
            start=slot.start,
            end=slot.end,
            cores=slot.cores,
            load=slot.load,
            valid_for=self._timing.offer_validity,
            source=self.source,
            placement=slot.placement,
            start_probability=slot.start_probability,
            if_late="" if slot.start_probability is None else RefundRule.WHOLE,
        )
        if call.rule:
            offer = bound(offer, unit, call.rule)
        bidding = user, call.request_id, unit.number
        last = self._last_bids.get(bidding)
        if last is None or last[0] < call.round_number:  # else a slow quote comes after a later round's
            self._last_bids.put(bidding, (call.round_number, reference_price(unit, offer)), now)
        self._remember(OpenOffer(offer, unit, slot, user, now + offer.valid_for, call.rule), now)
        return offer

    def _remember(self, open_offer: OpenOffer, now: Instant) -> None:
        self._offers[open_offer.offer.offer_id] = open_offer
        while self._offers:
            oldest = next(iter(self._offers.values()))
            if oldest.expires > now and len(self._offers) <= OFFERS_MAX:
                return
            self._offers.popitem(last=False)


def _refused_at(price: int | PriceRefusal, unit: RequestUnit, slot: Slot, call: CallForProposals) -> Refusal | None:
    """Why a slot is not offered; prices are told at the unit's reference size. None where it is."""
    if isinstance(price, PriceRefusal):
        at = None if price.nearest is None else price_for(unit, price.nearest, slot.cores, slot.end - slot.start)
        return Refusal(unit.number, price.code, "" if at is None else f"{at} credits/core-hour", price.detail)
    if not call.best_offer and slot.end > unit.deadline:
        return Refusal(unit.number, RefusalCode.WINDOW_TOO_SHORT)
    return None


def _one_for_each(refusals: Sequence[Refusal], offered: Container[int]) -> Iterator[Refusal]:
    """Of each unit that is offered at no size one refusal: of its sizes the one that most nearly passed."""
    for number in dict.fromkeys(each.unit for each in refusals):
        if number not in offered:
            yield min((each for each in refusals if each.unit == number), key=_far_from_passing)


def _far_from_passing(refusal: Refusal) -> tuple[int, tuple[float, str]]:
    """Refusals for the sake of price or time come before those of machine and terms, which stand for good."""
    order = (RefusalCode.OWN_OFFER_STANDS, RefusalCode.PRICE, RefusalCode.CORES_TAKEN, RefusalCode.WINDOW_TOO_SHORT)
    place = order.index(refusal.code) if refusal.code in order else len(order)
    return place, ease(refusal.code, refusal.nearest)
