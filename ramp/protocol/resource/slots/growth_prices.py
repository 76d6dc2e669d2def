"""A resource's price for an addition to a slot, from the machine's quote and the pricing strategy.

A call is answered as in an auction: the machine quotes the free capacity and the strategy prices it. Nothing is
reserved, so any number of calls is harmless; whether the machine can resize the slot shows when the amendment is
proposed. A price is valid as long as an offer, answers repeated calls, and is forgotten by a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ramp.model.acl import Message, Performative
from ramp.model.agreement import ContractChange
from ramp.model.contents import ChangeCall, ChangePriced, ChangeRefused
from ramp.model.instant import Instant, iso
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.sizes.amended import SlotState, is_growth, mixed_problem
from ramp.model.sizes.moldable import as_offered
from ramp.model.slot import Slot
from ramp.protocol.conversations import Recent, Waiting
from ramp.protocol.effects import Effect, PriceSlots, QuoteSlots, Send, reply
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from ramp.protocol.resource.participant import Participant
from ramp.protocol.timing import Timing

PENDING_MAX = 1_000
"""Maximum calls that wait for machine or strategy; the oldest are dropped, as if lost on the way."""

PRICES_MAX = 10_000
"""Maximum valid prices."""

SMALLER_MAX = 6
"""Number of smaller additions that are also quoted, to suggest the nearest available one."""


@dataclass(frozen=True, slots=True)
class _Addition:
    """One piece of the addition, or a smaller alternative, as the machine is asked for it.

    `nearest` describes the slot with a smaller alternative; it is empty for a piece of the addition itself.
    """

    unit: RequestUnit
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class _Pending:
    message: Message
    call: ChangeCall
    wanted: tuple[_Addition, ...]
    state: str


class GrowthPrices:
    """The prices of one resource for additions.

    Args:
        question: returns the strategy's question for an addition, the buyer and the quoted slot.

    Attributes:
        pending: calls that wait for machine or strategy.
    """

    def __init__(self, timing: Timing, question: Callable[[RequestUnit, str, Slot], PriceQuestion]) -> None:
        self._timing = timing
        self._question = question
        self.pending: Waiting[_Pending] = Waiting(PENDING_MAX)
        self.answers: Recent[tuple[str, int, Instant], tuple[ChangeCall, ChangePriced]] = Recent(
            timing.offer_validity, PRICES_MAX
        )

    def price(self, state: str, cores: int, until: Instant, now: Instant) -> int | None:
        """Return the valid price of a slot's growth to a size, credits per core hour, or None.

        Args:
            state: digest of the slot's present state.
            cores: new number of cores.
            until: new end.
            now: the present.
        """
        answered = self.answers.standing((state, cores, until), now)
        return None if answered is None else answered[1].cpu_hour_cost

    def on_call(
        self, message: Message, call: ChangeCall, participant: Participant, state: SlotState, now: Instant
    ) -> list[Effect]:
        """Ask the machine what is free for a buyer's call; nothing is changed there."""
        if not is_growth(state, call.cores, call.until):
            return [refused(message, call, *mixed_problem(state))]
        if participant.unit.gpus_per_node is not None and call.cores > state.cores:
            detail = f"a slot with GPUs keeps its nodes: expected {state.cores} cores; buy another slot for more"
            return [refused(message, call, "whole_nodes", detail)]
        begins = max(now + self._timing.amendment_notice, state.since)
        if begins >= state.until:
            return [refused(message, call, "too_late", f"the slot ends at {iso(state.until)}")]
        answered = self.answers.standing((state.digest, call.cores, call.until), now)
        if answered is not None and answered[0] == call:
            return [reply(message, Performative.PROPOSE, answered[1])]
        if any(each.message == message for each in self.pending.values()):
            return []  # a copy; the machine is still at work on the first
        additions = tuple(_additions(as_offered(participant.unit, participant.offer), call, state, begins))
        call_id = self.pending.put(_Pending(message, call, additions, state.digest))
        return [QuoteSlots(call_id, tuple(each.unit for each in additions))]

    def on_quoted(self, call_id: str, answers: Sequence[Slot | Refusal], now: Instant) -> list[Effect]:
        """Ask the strategy for a price of each piece, or refuse with the nearest available size."""
        pending = self.pending.get(call_id)
        if pending is None:
            return []
        found = list(zip(pending.wanted, answers, strict=True))
        pieces = [answer for each, answer in found if not each.nearest]
        missing = next((answer for answer in pieces if isinstance(answer, Refusal)), None)
        if missing is not None:
            smallest = found[-1][0].nearest
            least = f"nothing down to {smallest}" if smallest else "unknown"
            nearest = next((each.nearest for each, answer in found if each.nearest and isinstance(answer, Slot)), least)
            return [self._refuse(call_id, str(missing.code), f"the addition is not free; available: {nearest}")]
        user = pending.message.sender
        slots = [(each.unit, slot) for each, slot in found if not each.nearest and isinstance(slot, Slot)]
        return [PriceSlots(call_id, tuple(self._question(unit, user, slot) for unit, slot in slots))]

    def on_priced(self, call_id: str, prices: Sequence[int | PriceRefusal], now: Instant) -> list[Effect]:
        """Answer the call; added cores and added time both cost the higher of their prices."""
        pending = self.pending.get(call_id)
        if pending is None:
            return []
        named: list[int] = []
        for price in prices:
            if isinstance(price, PriceRefusal):
                nearest = "" if price.nearest is None else f"acceptable price: {price.nearest} credits/core-hour"
                return [self._refuse(call_id, str(price.code), nearest or price.detail)]
            named.append(price)
        del self.pending[call_id]
        call = pending.call
        asked = call.cores, call.until, pending.state
        priced = ChangePriced(call.agreement_id, call.number, max(named), self._timing.offer_validity, *asked)
        self.answers.put((pending.state, call.cores, call.until), (call, priced), now)
        return [reply(pending.message, Performative.PROPOSE, priced)]

    def _refuse(self, call_id: str, code: str, detail: str) -> Send:
        pending = self.pending.pop(call_id)
        return refused(pending.message, pending.call, code, detail)


def refused(message: Message, change: ChangeCall | ContractChange, code: str, detail: str) -> Send:
    """Return a refusal of an amendment, or of a price inquiry for one."""
    return reply(message, Performative.REFUSE, ChangeRefused(change.agreement_id, change.number, code, detail))


def _additions(unit: RequestUnit, call: ChangeCall, state: SlotState, begins: Instant) -> list[_Addition]:
    """Return the questions for the machine: the wanted pieces (more cores, more time), then smaller ones."""

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
