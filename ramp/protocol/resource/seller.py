"""The resource's side of the auction: evaluate calls, quote, price, and remember offers (section 6.2).

Evaluation has the paper's two steps: the static terms against the configuration, then the machine's load from the
plug-in and a price from the strategy. A moldable unit is quoted and priced at several sizes, and the cheapest is
offered. Every unit is answered by an offer or a coded refusal. A repeated call gets the same answer.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import floor

from ramp.fast_dataclass import fast_dataclass
from ramp.model.acl import Message, Performative
from ramp.model.called_terms import bound
from ramp.model.contents import CallForProposals, Proposal
from ramp.model.instant import Instant, iso
from ramp.model.machine_terms import check_static_terms, with_whole_nodes
from ramp.model.money import cost, grouped
from ramp.model.offer import Offer, Refusal, RefusalCode, ease
from ramp.model.ports import IdSource
from ramp.model.probable_start import QUEUE_WAIT_MAX, RefundRule
from ramp.model.request import RequestUnit
from ramp.model.shortcoming import site_refusal
from ramp.model.sizes.moldable import candidates, price_for, price_with
from ramp.model.slot import Slot, StaticTerms
from ramp.protocol.conversations import Recent
from ramp.protocol.effects import Effect, PriceSlots, QuoteSlots, Send
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from ramp.protocol.resource.jobs.launching import LaunchTerms, application_refusal, titles
from ramp.protocol.timing import Timing

OFFERS_MAX = 50_000
"""Maximum open offers; the oldest are dropped. With 25 units and 10 rounds this is 200 auctions at once."""

BIDDINGS_MAX = 5_000
"""Maximum requests whose answers and prices are remembered; the oldest are dropped."""

PENDING_MAX = 5_000
"""Maximum calls that wait for machine or strategy; the oldest are dropped, as if lost on the way."""


DRAINING_DETAIL = "draining: the resource keeps its reservations and makes no new sales"


def _start_refusal(unit: RequestUnit, slot: Slot, offered: float, soonest: Instant, latest: Instant) -> Refusal | None:
    """Return why a queued job is not sold for a unit, with the nearest acceptable terms, or None.

    Args:
        unit: as called for.
        slot: of the machine.
        offered: probability of its start.
        soonest: earliest start after a purchase.
        latest: until when the bank reserves money.
    """
    asked = unit.start_probability
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
    """The administrator's prices in whole credits per core hour, and the expected rounds (section 6.2.3).

    Attributes:
        gpu_price: whole credits per hour of a GPU. The price of a slot's core hours contains it.
    """

    start_price: int
    minimum_price: int
    rounds_expected: int = 4
    gpu_price: int = 0


@fast_dataclass(frozen=True, slots=True)
class OpenOffer:
    """An offer made, with the data to hold its slot and check its price."""

    offer: Offer
    unit: RequestUnit
    slot: Slot
    user: str
    rule: str = ""


@dataclass(slots=True)
class _Bidding:
    """The bids for one buyer's request.

    Attributes:
        answer: the latest one, for copies of its call.
        answered: its round.
        last: the round of the last bid for each unit, and its offer; without rejected ones.
    """

    answer: Message | None = None
    answered: int = 0
    last: dict[int, tuple[int, Offer]] = field(default_factory=dict)


@dataclass(slots=True)
class _Pending:
    """A call that waits for the plug-in's quotes, then for the strategy's prices.

    Attributes:
        asked: the unit and, of one size, what is asked of the machine.
        slots: quoted, with their units and the prices asked for.
    """

    message: Message
    call: CallForProposals
    asked: list[tuple[RequestUnit, RequestUnit]]
    refused: list[Refusal]
    slots: list[tuple[RequestUnit, Slot, int]] = field(default_factory=list)


class Seller:
    """The bidding of one resource.

    Args:
        source: what drives the machine's queue (`log`, `synthetic`, `live`), as far as known.
        draining: whether it starts without new sales.
        launching: how the resource launches jobs; None if it does not, so that any buyer may buy.
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
        self.offers: Recent[str, OpenOffer] = Recent(timing.offer_validity, OFFERS_MAX)
        # kept as long as an offer is valid: no auction lasts longer
        self.biddings: Recent[tuple[str, str], _Bidding] = Recent(timing.offer_validity, BIDDINGS_MAX)
        self._pending: OrderedDict[str, _Pending] = OrderedDict()

    @property
    def cores(self) -> int:
        return self.terms.cores

    def set_selling(self, prices: PriceRange, *, draining: bool) -> None:
        """Set prices and draining from the next call on; open offers keep their prices."""
        self._prices = prices
        self.draining = draining

    def described(self, snapshot: str) -> str:
        """Add system, architecture and start price to a machine's snapshot, a JSON object as text."""
        stated = {
            "operating_system": self.terms.operating_system,
            "architecture": self.terms.architecture,
            "start_price": self._prices.start_price,
            **({"gpus": self.terms.gpus, "gpu_price": self._prices.gpu_price} if self.terms.gpus else {}),
            **({"applications": titles(self._launching.applications, "")} if self._launching is not None else {}),
            **({"draining": True} if self.draining else {}),
        }
        return json.dumps({**json.loads(snapshot), **stated}, separators=(",", ":"))

    def on_call(self, message: Message, call: CallForProposals, now: Instant) -> list[Effect]:
        """Check the static terms (step one), then ask the plug-in."""
        bidding = self.biddings.get((message.sender, call.request_id))
        if bidding is not None and bidding.answer is not None and bidding.answered == call.round_number:
            return [Send(bidding.answer, sealed=bool(call.rule))]
        call_id = f"quote-{call.round_number} {message.sender} {call.request_id}"
        if call_id in self._pending:
            return []  # a copy; the machine is still at work on the first
        asked: list[tuple[RequestUnit, RequestUnit]] = []
        refused: list[Refusal] = []
        catalogue = self._launching.applications if self._launching is not None else ()
        unmapped = self._launching.problem(message.sender) if self._launching is not None else ""
        for unit in call.request.units:
            if unmapped:
                refused.append(Refusal(unit.number, RefusalCode.NO_ACCOUNT, detail=unmapped))
                continue
            for size in (unit,) if unit.moldable is None else candidates(unit):
                refusal = None if unit.sites is None else site_refusal(unit, self._resource)
                refusal = refusal or check_static_terms(size, self.terms)
                if refusal is None and unit.application is not None:
                    refusal = application_refusal(unit, catalogue)
                if refusal is None and self.draining:
                    refusal = Refusal(unit.number, RefusalCode.DRAINING, detail=DRAINING_DETAIL)
                if refusal is None:
                    asked.append((unit, size if size.gpus_per_node is None else with_whole_nodes(size, self.terms)))
                else:
                    refused.append(refusal)
        self._pending[call_id] = _Pending(message, call, asked, refused)
        if len(self._pending) > PENDING_MAX:
            self._pending.popitem(last=False)
        if not asked:
            return self.on_quoted(call_id, (), now)
        return [QuoteSlots(call_id, tuple(size for _, size in asked))]

    def on_quoted(self, call_id: str, answers: Sequence[Slot | Refusal], now: Instant) -> list[Effect]:
        """Ask the strategy for a price of each slot (step two)."""
        pending = self._pending.get(call_id)
        if pending is None:
            return []
        pending.slots, user, questions = [], pending.message.sender, []
        for (unit, _), answer in zip(pending.asked, answers, strict=True):
            if isinstance(answer, Refusal):
                pending.refused.append(answer)
                continue
            question = self.price_question(unit, user, answer, pending.call)
            questions.append(question)
            pending.slots.append((unit, answer, question.asking))
        if not questions:
            return self.on_priced(call_id, (), now)
        return [PriceSlots(call_id, tuple(questions))]

    def on_priced(self, call_id: str, prices: Sequence[int | PriceRefusal], now: Instant) -> list[Effect]:
        """Answer the call with an offer for each priced slot and a refusal of every other unit."""
        pending = self._pending.pop(call_id, None)
        if pending is None:
            return []
        message, call = pending.message, pending.call
        priced: dict[int, tuple[RequestUnit, list[tuple[Slot, int]]]] = {}
        for (unit, slot, asking), price in zip(pending.slots, prices, strict=True):
            refusal, offered = None, slot.start_probability
            if offered is not None:
                soonest, latest = now + self._timing.agreement_validity, now + QUEUE_WAIT_MAX
                refusal = _start_refusal(unit, slot, offered, soonest, latest)
            refusal = refusal or _refused_at(price, asking, unit, slot, call)
            if refusal is not None:
                pending.refused.append(refusal)
            elif not isinstance(price, PriceRefusal):
                priced.setdefault(unit.number, (unit, []))[1].append((slot, price))
        offers = tuple(self._bid(pending, unit, sizes, now) for unit, sizes in priced.values())
        told = tuple(_one_for_each(pending.refused, priced)) if pending.refused else ()
        reply = Message(
            Performative.PROPOSE if offers else Performative.REFUSE,
            self._resource,
            message.sender,
            message.conversation_id,
            Proposal(call.request_id, call.round_number, offers, told),
            in_reply_to=message.reply_with,
        )
        # kept for copies of the call, and for the prices of the next round
        bidding = self.biddings.get((message.sender, call.request_id)) or _Bidding()
        if bidding.answered <= call.round_number:  # else a slow quote is older than a later round's
            bidding.answer, bidding.answered = reply, call.round_number
        for offer in offers:
            last = bidding.last.get(offer.unit)
            if last is None or last[0] <= call.round_number:
                bidding.last[offer.unit] = call.round_number, offer
        self.biddings.put((message.sender, call.request_id), bidding, now)
        return [Send(reply, sealed=bool(call.rule))]  # the winner may be shown this offer

    def next_offer(self, taken: Offer, unit: RequestUnit, answer: Slot, user: str, now: Instant) -> tuple[Offer, ...]:
        """Offer the machine's next slot at the price of an accepted offer whose slot was taken.

        Returns:
            The offer; empty if the slot has another size or is not in the unit's window.
        """
        if self.draining or answer.end > unit.deadline:
            return ()
        if (answer.cores, answer.end - answer.start) != (taken.cores, taken.end - taken.start):
            return ()
        offer = replace(
            taken,
            offer_id=self._ids.new("offer"),
            start=answer.start,
            end=answer.end,
            load=answer.load,
            placement=answer.placement,
        )
        self.offers.put(offer.offer_id, OpenOffer(offer, unit, answer, user), now)
        return (offer,)

    def drop(self, call_id: str) -> None:
        """Forget an unanswered call; a copy of it is answered afresh."""
        self._pending.pop(call_id, None)

    def offer(self, offer_id: str, now: Instant) -> OpenOffer | None:
        """Return an offer that is still valid, or None."""
        return self.offers.standing(offer_id, now)

    def rejected(self, offer_id: str, user: str) -> None:
        """Forget an offer that its user rejects: it does not stand, and need not be sent again."""
        found = self.offers.get(offer_id)
        if found is None or found.user != user:
            return
        self.forget(offer_id)
        bidding = self.biddings.get((user, found.offer.request_id))
        if bidding is None:
            return
        last = bidding.last.get(found.offer.unit)
        if last is not None and last[1].offer_id == offer_id:
            bidding.answer = None
            del bidding.last[found.offer.unit]
        if bidding.answer is None and not bidding.last:
            self.biddings.forget((user, found.offer.request_id))

    def forget(self, offer_id: str) -> None:
        self.offers.forget(offer_id)

    def price_question(
        self, unit: RequestUnit, user: str, slot: Slot, call: CallForProposals | None = None
    ) -> PriceQuestion:
        """Return the strategy's question for a slot, as quoted by the machine.

        Args:
            unit: as called for; or an addition at the buyer's maximum price: with GPUs, its core hours contain their
                price.
            user: the buyer.
            slot: for the unit.
            call: of the auction; None for an addition, which is priced as in a first round.
        """
        prices, length, asking, own_last = self._prices, slot.end - slot.start, unit.cpu_hour_cost, None
        if call is not None:
            asking = price_with(unit, slot.cores, length)
            bidding = self.biddings.get((user, call.request_id))
            last = None if bidding is None else bidding.last.get(unit.number)
            if last is not None and last[0] < call.round_number:
                own_last = price_with(unit, slot.cores, length, price_for(unit, last[1], last[1].cpu_hour_cost))
        of_gpus = -(-prices.gpu_price * (unit.gpus_per_node or 0) // self.terms.cores_per_node)
        return PriceQuestion(
            asking=asking,
            start_price=prices.start_price + of_gpus,
            minimum_price=prices.minimum_price + of_gpus,
            load=slot.load,
            rounds_expected=prices.rounds_expected,
            own_last=own_last,
            round_number=1 if call is None else call.round_number,
            best_offer=call is not None and call.best_offer,
            user=user,
            cores=slot.cores,
            fragmentation=slot.fragmentation,
            links_taken=slot.links_taken,
        )

    def _bid(self, pending: _Pending, unit: RequestUnit, sizes: Sequence[tuple[Slot, int]], now: Instant) -> Offer:
        """Offer the unit at the cheapest size, or of equal ones the one that ends first; remember the offer."""
        call, user = pending.call, pending.message.sender
        slot, price = sizes[0]
        if len(sizes) > 1:
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
        self.offers.put(offer.offer_id, OpenOffer(offer, unit, slot, user, call.rule), now)
        return offer


def _refused_at(
    price: int | PriceRefusal, asking: int, unit: RequestUnit, slot: Slot, call: CallForProposals
) -> Refusal | None:
    """Return why a slot is not offered, or None; a price that would pass is stated per core-hour asked."""
    if isinstance(price, int) and price > asking and not call.best_offer:
        price = PriceRefusal(RefusalCode.PRICE, price)  # of a strategy that ignores the asking price
    if isinstance(price, PriceRefusal):
        if price.nearest is None:
            return Refusal(unit.number, price.code, detail=price.detail)
        nearest = f"{price_for(unit, slot, price.nearest)} credits/core-hour"
        return Refusal(unit.number, price.code, nearest, price.detail or _charged(unit, slot, price.nearest))
    if not call.best_offer and slot.end > unit.deadline:
        return Refusal(unit.number, RefusalCode.WINDOW_TOO_SHORT)
    return None


def _charged(unit: RequestUnit, slot: Slot, price: int) -> str:
    """Return which cores a machine charges if they are more than a unit asks, and how to ask for all of them."""
    if unit.moldable is not None or slot.cores == unit.cores.total:
        return ""
    at = f" at {price} credits/core-hour" if price > unit.cpu_hour_cost else ""
    return f"charges {grouped(slot.cores)} cores; or ask for {grouped(slot.cores)} cores{at}"


def _one_for_each(refusals: Sequence[Refusal], offered: Container[int]) -> Iterator[Refusal]:
    """Yield one refusal of each unit without an offer: the one that most nearly passed."""
    for number in dict.fromkeys(each.unit for each in refusals):
        if number not in offered:
            yield min((each for each in refusals if each.unit == number), key=_far_from_passing)


def _far_from_passing(refusal: Refusal) -> tuple[int, tuple[float, str]]:
    """Order refusals for price or time before final ones of machine and terms."""
    order = (RefusalCode.OWN_OFFER_STANDS, RefusalCode.PRICE, RefusalCode.CORES_TAKEN, RefusalCode.WINDOW_TOO_SHORT)
    place = order.index(refusal.code) if refusal.code in order else len(order)
    return place, ease(refusal.code, refusal.nearest)
