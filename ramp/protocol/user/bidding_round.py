"""One round of bidding: resources called, and their answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ramp.model.contents import Bid, CallForProposals
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.sizes.moldable import reference_price
from ramp.protocol.outcome import ResourceRefusal, RoundRecord
from ramp.protocol.timing import Pace
from ramp.protocol.user.calls import Calls


class BiddingRound:
    """An open round.

    Attributes:
        call: one content for all resources, so that the host serialises it once.
        called: names of the resources.
        calls: decides which calls to repeat, and when.
        offers: received so far.
        answers: time that each answer took.
        silent: names of the resources that have not answered, in their order.
    """

    def __init__(self, call: CallForProposals, called: Sequence[str], pace: Pace, now: Instant) -> None:
        self.call = call
        self.called = frozenset(called)
        self.calls = Calls(pace, called, now)
        self.offers: list[Offer] = []
        self.answers: dict[str, Duration] = {}
        self.silent = dict.fromkeys(called)
        self._begun = now
        self._refusals: list[ResourceRefusal] = []

    @property
    def asking_prices(self) -> tuple[tuple[int, int], ...]:
        return tuple((unit.number, unit.cpu_hour_cost) for unit in self.call.request.units)

    def answered(self, sender: str, refusals: Iterable[Refusal], now: Instant) -> list[str]:
        """Record an answer; return the resources to call again now."""
        self._refusals.extend(ResourceRefusal(sender, refusal) for refusal in refusals)
        self.answers.setdefault(sender, now - self._begun)
        self.silent.pop(sender, None)
        return self.calls.answered(sender, now)

    def clock_set(self, by: Duration) -> None:
        self._begun += by
        self.calls.clock_set(by)

    def closed(self, not_called: Iterable[ResourceRefusal], now: Instant) -> RoundRecord:
        """Return the record of the round.

        Args:
            not_called: known refusals of the resources that were not called.
            now: the present.
        """
        nobody = [
            ResourceRefusal(name, Refusal(number, RefusalCode.NO_ANSWER))
            for name in self.silent
            for number, _ in self.asking_prices
        ]
        units = {unit.number: unit for unit in self.call.request.units}
        return RoundRecord(
            self.call.round_number,
            self.asking_prices,
            tuple(self.offers),
            tuple(Bid(each.unit, each.resource, reference_price(units[each.unit], each)) for each in self.offers),
            (*self._refusals, *not_called, *nobody),
            now - self._begun,
            self.call.best_offer,
        )
