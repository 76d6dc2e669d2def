"""What has been offered in an auction, ranked; and what its rule makes of it when the bidding is over."""

from __future__ import annotations

from collections.abc import Mapping

from ramp.model.instant import Instant
from ramp.model.offer import Offer
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.model.seal import Seal
from ramp.protocol.events import Preference
from ramp.protocol.rules.auction_rule import UnitBids
from ramp.protocol.rules.checked_rule import CheckedRule
from ramp.protocol.rules.paid_prices import PaidPrices, Priced
from ramp.protocol.user.evaluator import Ranking


class OffersMade:
    """The offers of one auction.

    Args:
        request: the units wanted.
        preference: how offers are ranked.
        rule: the auction's.

    Attributes:
        chosen: of each unit, the offers to try, best first; empty until `choose`.
        prices: say what is paid for them.
    """

    def __init__(self, request: RequestForQuotation, preference: Preference, rule: CheckedRule) -> None:
        self.chosen: dict[int, tuple[Offer, ...]] = {}
        self.prices = PaidPrices(rule, {}, {})
        self._request = request
        self._rule = rule
        self._meeting = {unit.number: Ranking(preference) for unit in request.units}
        self._closest = {unit.number: Ranking(preference) for unit in request.units}
        self._seals: dict[str, Seal] = {}

    def add(self, offer: Offer, seal: Seal | None) -> None:
        """Take an offer that meets the request.

        Args:
            offer: what is offered.
            seal: on its proposal, where there is one.
        """
        self._meeting[offer.unit].add(offer)
        if seal is not None:
            self._seals[offer.offer_id] = seal

    def add_closest(self, offer: Offer) -> None:
        """Take an offer that does not meet the request, for a unit that no other offer meets."""
        self._closest[offer.unit].add(offer)

    def is_met(self, number: int) -> bool:
        """Whether a unit has an offer that meets the request."""
        return self._meeting[number].best is not None

    def unmet(self) -> list[int]:
        """The units that have none."""
        return [number for number in self._meeting if not self.is_met(number)]

    def hopeless(self) -> list[int]:
        """The units that have no offer at all."""
        return [number for number in self.unmet() if self._closest[number].best is None]

    def best(self) -> tuple[tuple[int, Offer], ...]:
        """The best offer of each unit that has one which meets the request, with the unit's number."""
        return tuple((number, each.best) for number, each in self._meeting.items() if each.best is not None)

    def bids(self, asked: Mapping[int, RequestUnit]) -> tuple[UnitBids, ...]:
        """What has been offered for every unit that meets the request.

        Args:
            asked: the units as they were called for last, by number.
        """
        return tuple(
            UnitBids(unit, asked[unit.number].cpu_hour_cost, self._meeting[unit.number].offers)
            for unit in self._request.units
        )

    def all(self) -> dict[int, tuple[Offer, ...]]:
        """Of each unit all offers, best first: those that meet the request, or the closest where none does."""
        return {
            number: ranking.offers if ranking.best is not None else self._closest[number].offers
            for number, ranking in self._meeting.items()
        }

    def choose(self, asked: Mapping[int, RequestUnit]) -> None:
        """Let the rule say who wins where offers meet the request; the others are the owner's to judge.

        Args:
            asked: the units as they were called for last, by number.

        Raises:
            RuleFailed: if the rule does not say what can be.
        """
        bids = {each.unit.number: each for each in self.bids(asked) if each.offers}
        self.chosen = self.all() | {number: self._rule.winners(each) for number, each in bids.items()}
        self.prices = PaidPrices(self._rule, bids, self._seals)

    def best_prices(self, now: Instant) -> list[Priced]:
        """What is paid for the best of each unit, as things stand.

        Raises:
            RuleFailed: if the rule does not say what can be.
        """
        return [self.prices.of(number, offers[0], offers[1:], now) for number, offers in self.chosen.items()]
