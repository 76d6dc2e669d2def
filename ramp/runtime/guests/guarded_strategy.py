"""A price strategy as the host asks it: a guest, whose failures stay where they are and whose bids are checked."""

from __future__ import annotations

from ramp.errors import plain
from ramp.model.instant import Instant
from ramp.model.offer import RefusalCode
from ramp.protocol.effects import PriceSlots
from ramp.protocol.events import SlotsPriced
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, PricingStrategy
from ramp.runtime.guests.answers import price_problem, raised
from ramp.runtime.guests.health import Health

FAILED = "the price strategy failed: "
"""How the sentence begins that refused callers are told."""


class GuardedStrategy:
    """A strategy that names no impossible price and raises nothing: what is wrong becomes a coded refusal.

    Args:
        strategy: the guest.
        health: is told how its calls end.
    """

    def __init__(self, strategy: PricingStrategy, health: Health) -> None:
        self._strategy = strategy
        self._health = health

    def ask(self, question: PriceSlots, now: Instant) -> SlotsPriced:
        """A bid for each slot, or a coded refusal; for a while after a failure it is not asked."""
        return SlotsPriced(question.call_id, tuple(self._price(each, now) for each in question.questions))

    def _price(self, question: PriceQuestion, now: Instant) -> int | PriceRefusal:
        resting = self._health.resting("price", now)
        if resting:
            return PriceRefusal(RefusalCode.PLUGIN_FAILED, detail=FAILED + resting)
        try:
            priced = self._strategy(question)
            problem = price_problem(priced)
        except Exception as error:  # whatever a guest raises
            problem = raised(error)
        else:
            if not problem:
                self._health.answered("price")
                return priced
        sentence = plain(problem)
        self._health.failed("price", sentence, now)
        return PriceRefusal(RefusalCode.PLUGIN_FAILED, detail=FAILED + sentence)
