"""What a resource asks for what would be added to a slot: by the machine's own quote and the strategy's price.

A call is answered like one of an auction: the machine says what is free over the time to come, the strategy names a
price for that load. Nothing is set aside or changed, for anybody may ask as often as he likes: whether the machine can
change what it has set aside shows only when the amendment is proposed. The price stands as long as an offer does, is
the answer to the same call again, and is forgotten by a restart.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ramp.model.acl import Message, Performative
from ramp.model.contents import AmendmentCall, AmendmentPriced, AmendmentRefused
from ramp.model.instant import Duration, Instant, iso
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.sizes.amended import SlotState, is_growth, mixed_problem
from ramp.model.sizes.moldable import as_offered
from ramp.model.slot import Slot
from ramp.protocol.effects import Effect, PriceSlots, QuoteSlots, Send, reply
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.recent import Recent
from ramp.protocol.timing import Timing

PENDING_MAX = 1_000
"""Calls whose answer machine or strategy are working out; the oldest go first, as if they had been lost on the way."""

PRICES_MAX = 10_000
"""Prices that stand."""

SMALLER_MAX = 6
"""So many smaller additions are looked at beside the one that is wanted, to tell the nearest that would pass."""

CALLS = "growth-"
"""How the names of these questions begin."""


@dataclass(frozen=True, slots=True)
class _Addition:
    """What is asked of the machine: one piece of what is wanted, or something smaller.

    Attributes:
        unit: as the machine is asked for it.
        nearest: what this would give the slot, in words; empty of what is wanted itself.
    """

    unit: RequestUnit
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A call that is being worked out."""

    message: Message
    call: AmendmentCall
    wanted: tuple[_Addition, ...]
    state: str


class GrowthPrices:
    """The prices that one resource names for what would be added to its slots.

    Args:
        timing: the protocol's limits.
        question: how the strategy is asked for what would be added: the most that is paid for a core hour, the buyer,
            and what the machine has for it.
    """

    def __init__(self, timing: Timing, question: Callable[[int, str, Slot], PriceQuestion]) -> None:
        self._timing = timing
        self._question = question
        self._pending: OrderedDict[str, _Pending] = OrderedDict()
        self._prices: Recent[tuple[str, int, Instant], int] = Recent(timing.offer_validity, PRICES_MAX)
        self._answers: Recent[tuple[AmendmentCall, str], AmendmentPriced] = Recent(timing.offer_validity, PRICES_MAX)
        self._calls = 0

    def price(self, state: str, cores: int, until: Instant, now: Instant) -> int | None:
        """The price that stands for a slot's growth to that size, credits per core hour; None where none does.

        Args:
            state: digest of the state of the slot that is added to.
            cores: then.
            until: its end then.
            now: the present.
        """
        return self._prices.standing((state, cores, until), now)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        self._prices.clock_set(by)
        self._answers.clock_set(by)

    def on_call(
        self, message: Message, call: AmendmentCall, participant: Participant, state: SlotState, now: Instant
    ) -> list[Effect]:
        """A buyer asks: see first what is free; nothing at the machine is changed by that.

        Args:
            message: as it came.
            call: what it says.
            participant: the sold slot.
            state: of the slot.
            now: the present.
        """
        if not is_growth(state, call.cores, call.until):
            return [refused(message, call, *mixed_problem(state))]
        begins = max(now + self._timing.amendment_notice, state.since)
        if begins >= state.until:
            return [refused(message, call, "too_late", f"the slot ends at {iso(state.until)}")]
        answered = self._answers.standing((call, state.digest), now)
        if answered is not None:
            return [reply(message, Performative.PROPOSE, answered)]
        if any(each.message == message for each in self._pending.values()):
            return []  # a copy; the machine is still at work on the first
        self._calls += 1
        additions = tuple(_additions(as_offered(participant.unit, participant.offer), call, state, begins))
        self._pending[f"{CALLS}{self._calls}"] = _Pending(message, call, additions, state.digest)
        if len(self._pending) > PENDING_MAX:
            self._pending.popitem(last=False)
        return [QuoteSlots(f"{CALLS}{self._calls}", tuple(each.unit for each in additions))]

    def on_quoted(self, call_id: str, answers: Sequence[Slot | Refusal], now: Instant) -> list[Effect]:
        """The machine says what is free: ask the strategy for a price of each piece, or say what would pass."""
        pending = self._pending.get(call_id)
        if pending is None:
            return []
        found = list(zip(pending.wanted, answers, strict=True))
        pieces = [answer for each, answer in found if not each.nearest]
        missing = next((answer for answer in pieces if isinstance(answer, Refusal)), None)
        if missing is not None:
            nearest = next((each.nearest for each, answer in found if each.nearest and isinstance(answer, Slot)), "")
            told = f"the addition is not free; {f'available: {nearest}' if nearest else 'no smaller one is available'}"
            return [self._refuse(call_id, str(missing.code), told)]
        slots = [answer for answer in pieces if isinstance(answer, Slot)]
        asking, user = pending.call.cpu_hour_cost, pending.message.sender
        return [PriceSlots(call_id, tuple(self._question(asking, user, slot) for slot in slots))]

    def on_priced(self, call_id: str, prices: Sequence[int | PriceRefusal], now: Instant) -> list[Effect]:
        """Answer the call: what is added in cores and in time costs the dearer of the two."""
        pending = self._pending.get(call_id)
        if pending is None:
            return []
        named: list[int] = []
        for price in prices:
            if isinstance(price, PriceRefusal):
                nearest = "" if price.nearest is None else f"acceptable price: {price.nearest} credits/core-hour"
                return [self._refuse(call_id, str(price.code), nearest or price.detail)]
            named.append(price)
        del self._pending[call_id]
        call = pending.call
        self._prices.put((pending.state, call.cores, call.until), max(named), now)
        asked = call.cores, call.until, pending.state
        priced = AmendmentPriced(call.agreement_id, call.number, max(named), self._timing.offer_validity, *asked)
        self._answers.put((call, pending.state), priced, now)
        return [reply(pending.message, Performative.PROPOSE, priced)]

    def _refuse(self, call_id: str, code: str, detail: str) -> Send:
        pending = self._pending.pop(call_id)
        return refused(pending.message, pending.call, code, detail)


def refused(message: Message, call: AmendmentCall, code: str, detail: str) -> Send:
    """The answer to a call for a price that none is named for."""
    return reply(message, Performative.REFUSE, AmendmentRefused(call.agreement_id, call.number, code, detail))


def _additions(unit: RequestUnit, call: AmendmentCall, state: SlotState, begins: Instant) -> list[_Addition]:
    """What the machine is asked for, the wanted first: more cores as long as the slot lasts, and more time."""

    def piece(cores: int, begin: Instant, end: Instant) -> RequestUnit:
        number = len(found) + 1
        fixed = replace(unit, number=number, cpu_hour_cost=call.cpu_hour_cost, cores=TotalCores(cores), torus=None)
        return replace(fixed, not_before=begin, deadline=end, wall_time=end - begin)

    found: list[_Addition] = []
    more, longer = call.cores - state.cores, call.until - state.until
    if more:
        found.append(_Addition(piece(more, begins, state.until)))
    if longer:
        found.append(_Addition(piece(call.cores, state.until, call.until)))
    for _ in range(0 if more and longer else SMALLER_MAX):
        more, longer = more // 2, longer // 2
        if more:
            found.append(_Addition(piece(more, begins, state.until), f"{state.cores + more} cores"))
        if longer:
            end = state.until + longer
            found.append(_Addition(piece(call.cores, state.until, end), f"an end at {iso(end)}"))
    return found
