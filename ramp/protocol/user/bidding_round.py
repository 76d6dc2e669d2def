"""One round of bidding: resources called, their answers, which calls to repeat, and whom the next rounds still call.

A lost call must be repeated. A call whose answer is only late must not, or a busy market gets busier. The rules are
those of TCP:

- every answer restarts the time-out (RFC 6298, 5.3);
- when it passes, a few calls are repeated and the pause doubles (5.4 and 5.5);
- an answer to a repeated call, while no other call is answered, shows that calls were lost: two more are repeated, and
  two for each answer to those (slow start, RFC 5681, 3.1);
- an answer to a call that was sent once shows that answers are late: nothing more is repeated (F-RTO, RFC 5682).

A resource is not called again for units that it refused for good. The original system calls every resource in every
round. A machine that is too small stays too small, and asking prices only fall, so such calls cost both sides a message
and the round a wait. Final refusals appear in every later round as if repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ramp.model.contents import Bid, CallForProposals
from ramp.model.instant import Duration, Instant
from ramp.model.machine_terms import TERMS, static_refusal
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.shortcoming import site_refusal
from ramp.model.sizes.moldable import price_for
from ramp.model.slot import StaticTerms
from ramp.protocol.outcome import ResourceRefusal, RoundRecord
from ramp.protocol.timing import Pace

FEW: Final = 2
"""Calls repeated at the first time-out, and for every answer that shows a loss."""


class BiddingRound:
    """An open round.

    Attributes:
        call: one content for all resources, so that the host serialises it once.
        called: names of the resources.
        missing: how often each resource that has not answered was called, in their order.
        due: when the time-out passes; of no meaning once all have answered.
        sent_again: number of repeated calls.
        offers: received so far.
        answers: time that each answer took.
    """

    def __init__(self, call: CallForProposals, called: Sequence[str], pace: Pace, now: Instant) -> None:
        self.call = call
        self.called = frozenset(called)
        self.missing = dict.fromkeys(called, 1)
        self.sent_again = 0
        self.offers: list[Offer] = []
        self.answers: dict[str, Duration] = {}
        self._refusals: list[ResourceRefusal] = []
        self._pace = pace
        self._begun = now
        self._lost = False
        self._few = FEW
        self._pause = pace.pause
        self.due = now + self._pause

    @property
    def asking_prices(self) -> tuple[tuple[int, int], ...]:
        return tuple((unit.number, unit.cpu_hour_cost) for unit in self.call.request.units)

    def answered(self, sender: str, refusals: Iterable[Refusal], now: Instant) -> list[str]:
        """Record an answer; return the resources to call again now."""
        self._refusals.extend(ResourceRefusal(sender, refusal) for refusal in refusals)
        self.answers.setdefault(sender, now - self._begun)
        times = self.missing.pop(sender, None)
        if times is None:
            return []
        again: list[str] = []
        if times == 1:
            self._pace.observe(now - self._begun)
            self._pause, self._few, self._lost = self._pace.pause, FEW, False
        elif self._lost:
            self._pause = self._pace.pause
            again = self._next([each for each, called in self.missing.items() if called == 1], FEW)
        self.due = now + self._pause
        return again

    def time_out(self, now: Instant) -> list[str]:
        """Return the resources to call again after the time-out."""
        self._lost = True
        self._pause = self._pace.back_off(self._pause)
        again = self._next(list(self.missing), self._few)
        self._few *= 2
        self.due = now + self._pause
        return again

    def _next(self, names: list[str], most: int) -> list[str]:
        """Choose the resources called least often, the last of the round first, as their answers are due last."""
        last_first = names[::-1]
        chosen = sorted(last_first, key=self.missing.__getitem__)[:most]
        for name in chosen:
            self.missing[name] += 1
        self.sent_again += len(chosen)
        return chosen

    def clock_set(self, by: Duration) -> None:
        self.due += by
        self._begun += by

    def closed(self, not_called: Iterable[ResourceRefusal], now: Instant) -> RoundRecord:
        """Return the record of the round."""
        nobody = [
            ResourceRefusal(name, Refusal(number, RefusalCode.NO_ANSWER))
            for name in self.missing
            for number, _ in self.asking_prices
        ]
        units = {unit.number: unit for unit in self.call.request.units}
        return RoundRecord(
            self.call.round_number,
            self.asking_prices,
            tuple(self.offers),
            tuple(
                Bid(each.unit, each.resource, price_for(units[each.unit], each, each.cpu_hour_cost))
                for each in self.offers
            ),
            (*self._refusals, *not_called, *nobody),
            now - self._begun,
            self.call.best_offer,
        )


FOR_GOOD: Final = frozenset(
    {
        RefusalCode.MACHINE_TOO_SMALL,
        RefusalCode.WINDOW_PASSED,
        *(term.code for term in TERMS),
        RefusalCode.APPLICATION,
        RefusalCode.NODE_CORES,
        RefusalCode.TORUS,
        RefusalCode.DRAINING,
        RefusalCode.NO_ACCOUNT,
        RefusalCode.START_PROBABILITY,
        RefusalCode.OTHER_SITE,
    }
)
"""Refusals that neither a lower asking price nor a few seconds change; taken cores may become free."""


class FinalRefusals:
    """The final refusals of one auction."""

    def __init__(self) -> None:
        self._for_good: dict[str, dict[int, Refusal]] = {}
        self._at_price: dict[str, dict[int, Refusal]] = {}

    def foresee(self, units: Sequence[RequestUnit], resources: Iterable[str], unfit: Mapping[str, StaticTerms]) -> None:
        """Add the final refusals that are known without asking."""
        sited = any(unit.sites is not None for unit in units)
        for name in resources if sited else unfit:
            terms = unfit.get(name)
            for unit in units:
                refusal = site_refusal(unit, name) or (None if terms is None else static_refusal(unit, terms))
                self.add(name, () if refusal is None else (refusal,))

    def add(self, resource: str, refusals: Iterable[Refusal]) -> None:
        for refusal in refusals:
            if refusal.code in FOR_GOOD:
                self._for_good.setdefault(resource, {})[refusal.unit] = refusal
            elif refusal.code is RefusalCode.PRICE:
                self._at_price.setdefault(resource, {})[refusal.unit] = refusal

    def callable(self, resources: Iterable[str], units: Iterable[int], *, best_offers: bool) -> tuple[str, ...]:
        """Return the resources that may still bid for some of the units, in their order.

        Args:
            resources: names of all sellers.
            units: numbers of the units called for.
            best_offers: whether resources that refused the price may bid again.
        """
        asked, nothing = frozenset(units), dict[int, Refusal]()
        for_good, at_price = self._for_good, {} if best_offers else self._at_price
        return tuple(
            each
            for each in resources
            if not asked <= for_good.get(each, nothing).keys() | at_price.get(each, nothing).keys()
        )

    def of(self, resource: str, units: Iterable[int]) -> list[ResourceRefusal]:
        """Return the refusals of a resource that is not called: one of each of the units."""
        refused = {**self._at_price.get(resource, {}), **self._for_good.get(resource, {})}
        return [ResourceRefusal(resource, refused[number]) for number in units]

    def hopeless(self, resources: Iterable[str], units: Iterable[int]) -> list[int]:
        """Return the units that every resource has refused for good."""
        everybody = [self._for_good.get(each, {}).keys() for each in resources]
        return [number for number in units if all(number in refused for refused in everybody)]
