"""The resource's side of the auction: evaluate a call, quote, price, and remember the offers made (section 6.2).

Evaluating takes the paper's two steps: the static terms against the configuration, then the machine's load from the
plug-in and a price by the strategy. Every unit is answered, with an offer or with a coded refusal. A call that comes
again gets the same answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ramp.model.acl import Message, Performative
from ramp.model.contents import CallForProposals, Proposal
from ramp.model.identifiers import IdSource
from ramp.model.instant import Instant
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Slot, StaticTerms
from ramp.protocol.effects import Effect, QuoteSlots, Report, Send
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, PricingStrategy
from ramp.protocol.progress import GuestFailed
from ramp.protocol.static_terms import check_static_terms
from ramp.protocol.timing import Timing

OFFERS_MAX = 50_000
"""Open offers remembered; the oldest go first. At 25 units and 10 rounds that is 200 auctions at once."""

ANSWERS_MAX = 5_000
"""Answers remembered for repeated calls; a call is repeated within seconds."""


PRICE_MAX = 10**9
"""Highest price that a strategy may name, in credits per core hour; far above any that makes sense."""


def _price_problem(priced: Any) -> str:
    """What is impossible about a strategy's answer, or the empty string."""
    if isinstance(priced, PriceRefusal):
        code: Any = priced.code
        right = isinstance(code, RefusalCode) and (priced.nearest is None or type(priced.nearest) is int)
        return "" if right else f"{priced!r:.200} is no refusal with a RefusalCode and a whole number"
    if type(priced) is int and 0 < priced <= PRICE_MAX:
        return ""
    return f"a price of {priced!r:.100}; right would be a whole number of credits from 1 to {PRICE_MAX}"


@dataclass(frozen=True, slots=True)
class PriceRange:
    """What the administrator sets (section 6.2.3): whole credits per core hour, and the rounds expected."""

    start_price: int
    minimum_price: int
    rounds_expected: int = 4


@dataclass(frozen=True, slots=True)
class OpenOffer:
    """An offer made, with what is needed to hold its slot."""

    offer: Offer
    unit: RequestUnit
    slot: Slot
    user: str
    expires: Instant


@dataclass(frozen=True, slots=True)
class _Pending:
    """A call whose quotes the plug-in is working out."""

    message: Message
    call: CallForProposals
    asked: tuple[RequestUnit, ...]
    refused: tuple[Refusal, ...]


class Seller:
    """All the bidding of one resource.

    Args:
        resource: name of the selling agent.
        terms: the machine's static terms.
        prices: the administrator's prices.
        strategy: the pricing strategy.
        source: what drives the machine's queue (`log`, `synthetic`, `live`).
        ids: where offer ids come from.
        timing: the protocol's limits.
    """

    def __init__(
        self,
        resource: str,
        *,
        terms: StaticTerms,
        prices: PriceRange,
        strategy: PricingStrategy,
        source: str,
        ids: IdSource,
        timing: Timing,
    ) -> None:
        self._resource = resource
        self._terms = terms
        self._prices = prices
        self._strategy = strategy
        self._source = source
        self._ids = ids
        self._timing = timing
        self._offers: OrderedDict[str, OpenOffer] = OrderedDict()
        self._last_bids: OrderedDict[tuple[str, str, int], int] = OrderedDict()
        self._answers: OrderedDict[tuple[str, str, int], Message] = OrderedDict()
        self._pending: dict[str, _Pending] = {}
        self._being_quoted: set[tuple[str, str, int]] = set()
        self._calls = 0
        self._strategy_failed = False
        self._told: list[Effect] = []

    @property
    def cores(self) -> int:
        """Cores of the machine."""
        return self._terms.cores

    def on_call(self, message: Message, call: CallForProposals, now: Instant) -> list[Effect]:
        """Step one: the static terms; then ask the plug-in for what is left."""
        answered = self._answers.get((message.sender, call.request_id, call.round_number))
        if answered is not None:
            return [Send(answered)]
        if (message.sender, call.request_id, call.round_number) in self._being_quoted:
            return []  # a copy; the machine is still at work on the first
        asked: list[RequestUnit] = []
        refused: list[Refusal] = []
        for unit in call.request.units:
            refusal = check_static_terms(unit, self._terms)
            if refusal is None:
                asked.append(unit)
            else:
                refused.append(refusal)
        self._calls += 1
        call_id = f"quote-{self._calls}"
        self._pending[call_id] = _Pending(message, call, tuple(asked), tuple(refused))
        self._being_quoted.add((message.sender, call.request_id, call.round_number))
        if not asked:
            return self.on_quoted(call_id, (), now)
        return [QuoteSlots(call_id, tuple(asked))]

    def on_quoted(self, call_id: str, answers: Sequence[Slot | Refusal], now: Instant) -> list[Effect]:
        """Step two: price each slot and answer the call."""
        pending = self._pending.pop(call_id, None)
        if pending is None:
            return []
        message, call = pending.message, pending.call
        self._being_quoted.discard((message.sender, call.request_id, call.round_number))
        offers: list[Offer] = []
        refusals = list(pending.refused)
        for unit, answer in zip(pending.asked, answers, strict=True):
            made = answer if isinstance(answer, Refusal) else self._price(unit, answer, message.sender, call)
            if isinstance(made, Refusal):
                refusals.append(made)
            else:
                offers.append(made)
                assert isinstance(answer, Slot)
                self._remember(OpenOffer(made, unit, answer, message.sender, now + made.valid_for), now)
        reply = Message(
            Performative.PROPOSE if offers else Performative.REFUSE,
            self._resource,
            message.sender,
            message.conversation_id,
            Proposal(call.request_id, call.round_number, tuple(offers), tuple(refusals)),
            in_reply_to=message.reply_with,
        )
        self._answers[(message.sender, call.request_id, call.round_number)] = reply
        if len(self._answers) > ANSWERS_MAX:
            self._answers.popitem(last=False)
        told, self._told = self._told, []
        return [*told, Send(reply)]

    def offer(self, offer_id: str, now: Instant) -> OpenOffer | None:
        """An offer that still stands."""
        found = self._offers.get(offer_id)
        return found if found is not None and found.expires > now else None

    def rejected(self, offer_id: str, user: str) -> None:
        """A user does not want an offer; nobody else's is forgotten."""
        found = self._offers.get(offer_id)
        if found is not None and found.user == user:
            self.forget(offer_id)

    def forget(self, offer_id: str) -> None:
        """The offer was rejected or has been accepted."""
        self._offers.pop(offer_id, None)

    def _price(self, unit: RequestUnit, slot: Slot, user: str, call: CallForProposals) -> Offer | Refusal:
        key = (user, call.request_id, unit.number)
        question = PriceQuestion(
            asking=unit.cpu_hour_cost,
            start_price=self._prices.start_price,
            minimum_price=self._prices.minimum_price,
            load=slot.load,
            rounds_expected=self._prices.rounds_expected,
            own_last=self._last_bids.get(key),
            round_number=call.round_number,
            best_offer=call.best_offer,
            user=user,
            cores=slot.cores,
            fragmentation=slot.fragmentation,
            links_taken=slot.links_taken,
        )
        priced = self._asked_price(question)
        if isinstance(priced, str):
            return Refusal(unit.number, RefusalCode.PLUGIN_FAILED, detail=priced)
        if isinstance(priced, PriceRefusal):
            nearest = "" if priced.nearest is None else f"{priced.nearest} credits/core-hour"
            return Refusal(unit.number, priced.code, nearest)
        if not call.best_offer and slot.end > unit.deadline:
            return Refusal(unit.number, RefusalCode.WINDOW_TOO_SHORT)
        self._last_bids[key] = priced
        if len(self._last_bids) > OFFERS_MAX:
            self._last_bids.popitem(last=False)
        return Offer(
            offer_id=self._ids.new("offer"),
            request_id=call.request_id,
            unit=unit.number,
            resource=self._resource,
            cpu_hour_cost=priced,
            start=slot.start,
            end=slot.end,
            cores=slot.cores,
            load=slot.load,
            valid_for=self._timing.offer_validity,
            source=self._source,
            placement=slot.placement,
        )

    def _asked_price(self, question: PriceQuestion) -> int | PriceRefusal | str:
        """What the strategy says, or what is wrong with that: it is a guest, and its failures stay where they are."""
        priced: Any = None
        try:
            priced = self._strategy(question)
            problem = _price_problem(priced)
        except Exception as error:  # whatever a guest raises
            problem = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        if problem or self._strategy_failed:
            self._told.append(Report(GuestFailed("price strategy", problem)))
        self._strategy_failed = bool(problem)
        answer: int | PriceRefusal | str = f"the price strategy failed: {problem}" if problem else priced
        return answer

    def _remember(self, open_offer: OpenOffer, now: Instant) -> None:
        self._offers[open_offer.offer.offer_id] = open_offer
        while self._offers:
            oldest = next(iter(self._offers.values()))
            if oldest.expires > now and len(self._offers) <= OFFERS_MAX:
                return
            self._offers.popitem(last=False)
