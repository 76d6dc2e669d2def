"""The ranked offers of an auction, and the rule's choice among them."""

from __future__ import annotations

from collections.abc import Mapping

from ramp.model.contents import Bid
from ramp.model.instant import Instant
from ramp.model.offer import Offer
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.model.seal import Seal
from ramp.model.sizes.moldable import reference_price
from ramp.protocol.events import Preference
from ramp.protocol.rules.auction_rule import UnitBids
from ramp.protocol.rules.checked_rule import CheckedRule
from ramp.protocol.rules.paid_prices import PaidPrices, Priced
from ramp.protocol.user.evaluator import Ranking


class OffersMade:
    """The offers of one auction.

    Attributes:
        chosen: offers to try for each unit, best first; empty until `choose`.
        prices: computes the price paid for each.
    """

    def __init__(self, request: RequestForQuotation, preference: Preference, rule: CheckedRule) -> None:
        self.chosen: dict[int, tuple[Offer, ...]] = {}
        self.prices = PaidPrices(rule, {}, {})
        self._request = request
        self._rule = rule
        self._meeting = {unit.number: Ranking(preference) for unit in request.units}
        self._closest = {unit.number: Ranking(preference) for unit in request.units}
        self._seals: dict[tuple[str, str], Seal] = {}

    def add(self, offer: Offer, seal: Seal | None) -> None:
        """Take an offer that meets the request, with the seal of its proposal."""
        self._meeting[offer.unit].add(offer)
        if seal is not None:
            self._seals[offer.resource, offer.offer_id] = seal  # another may call its offer the same

    def add_closest(self, offer: Offer) -> None:
        """Take an offer below the request, for a unit without a better one."""
        self._closest[offer.unit].add(offer)

    def is_met(self, number: int) -> bool:
        return self._meeting[number].best is not None

    def unmet(self) -> list[int]:
        return [number for number in self._meeting if not self.is_met(number)]

    def hopeless(self) -> list[int]:
        """Return the units without any offer."""
        return [number for number in self.unmet() if self._closest[number].best is None]

    def best(self) -> tuple[tuple[int, Bid], ...]:
        """Return the best offer that meets the request, with the number of its unit."""
        best = ((unit, self._meeting[unit.number].best) for unit in self._request.units)
        return tuple(
            (unit.number, Bid(unit.number, offer.resource, reference_price(unit, offer)))
            for unit, offer in best
            if offer is not None
        )

    def bids(self, asked: Mapping[int, RequestUnit]) -> tuple[UnitBids, ...]:
        """Return the offers that meet the request; `asked` are the units as last called for, by number."""
        return tuple(
            UnitBids(unit, asked[unit.number].cpu_hour_cost, self._meeting[unit.number].offers)
            for unit in self._request.units
        )

    def all(self) -> dict[int, tuple[Offer, ...]]:
        """Return all offers of each unit, best first: those that meet the request, else the closest."""
        return {
            number: ranking.offers if ranking.best is not None else self._closest[number].offers
            for number, ranking in self._meeting.items()
        }

    def choose(self, asked: Mapping[int, RequestUnit]) -> None:
        """Let the rule choose the winners; units without a sufficient offer keep all for the owner to judge.

        Raises:
            RuleFailed: if the rule's answer is invalid.
        """
        bids = {each.unit.number: each for each in self.bids(asked) if each.offers}
        self.chosen = self.all() | {number: self._rule.winners(each) for number, each in bids.items()}
        self.prices = PaidPrices(self._rule, bids, self._seals)

    def best_prices(self, now: Instant) -> list[Priced]:
        """Return the price of each unit's best offer at present.

        Raises:
            RuleFailed: if the rule's answer is invalid.
        """
        return [self.prices.of(number, offers[0], offers[1:], now) for number, offers in self.chosen.items()]
