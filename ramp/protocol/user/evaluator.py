"""Ranking and total cost of offers on the user's side (paper section 6.1), and the rule's choice among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter

from ramp.model.contents import Bid
from ramp.model.instant import Instant
from ramp.model.money import credits_text
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.model.seal import Seal
from ramp.model.shortcoming import cost_problem
from ramp.model.sizes.moldable import price_for, size_problem
from ramp.protocol.events import Preference
from ramp.protocol.rules.auction_rule import UnitBids
from ramp.protocol.rules.checked_rule import CheckedRule, PaidPrices, Priced

BIDS_SHOWN = 5
"""Lowest bids of a unit that the next call shows; with all, traffic would grow with the square of the resources."""

BIDS_MAX = 400
"""Maximum bids shown in one call; keeps a call of many units within the size limit."""


class Ranking:
    """The ranked offers for one unit: at most one from each resource, its best.

    The order is cost, end of the slot, arrival; with the preference for soonest, end comes before cost.
    """

    def __init__(self, preference: Preference) -> None:
        self._preference = preference
        self._best: dict[str, tuple[tuple[int, int], Offer]] = {}  # ranked, by resource, in order of arrival

    def add(self, offer: Offer) -> None:
        """Take an offer that meets the request, unless the resource already has a better one."""
        ranked = rank(offer, self._preference), offer
        known = self._best.get(offer.resource)
        if known is not None:
            if ranked[0] >= known[0]:
                return
            del self._best[offer.resource]
        self._best[offer.resource] = ranked

    @property
    def offers(self) -> tuple[Offer, ...]:
        return tuple([offer for _, offer in sorted(self._best.values(), key=itemgetter(0))])

    def __bool__(self) -> bool:
        return bool(self._best)


def rank(offer: Offer, preference: Preference) -> tuple[int, int]:
    """Return the place of an offer among others: the best is lowest."""
    return (offer.end, offer.cost) if preference is Preference.SOONEST else (offer.cost, offer.end)


def lowest_bids(bids: Sequence[Bid]) -> tuple[Bid, ...]:
    """Return the lowest bids of a round for each unit, in order of arrival, as the next call shows them."""
    units = {bid.unit for bid in bids}
    share = max(1, min(BIDS_SHOWN, BIDS_MAX // max(1, len(units))))
    ranked = sorted((bid.unit, bid.cpu_hour_cost, index) for index, bid in enumerate(bids))
    shown = [index for _, of_unit in groupby(ranked, itemgetter(0)) for _, _, index in islice(of_unit, share)]
    return tuple(bids[index] for index in sorted(shown[:BIDS_MAX]))


def over_limit(costs: Iterable[int], max_cost: int | None) -> str:
    """Return why the total cost is too high, or the empty string.

    Args:
        costs: of each unit, in minor units.
        max_cost: maximum total in minor units, or None.
    """
    cost = sum(costs)
    if max_cost is None or cost <= max_cost:
        return ""
    return f"the offers cost {credits_text(cost)} credits together, more than the limit of {credits_text(max_cost)}"


def misfit(offer: Offer, unit: RequestUnit, *, best_offers: bool) -> Refusal | None:
    """Return a refusal of an offer whose size violates the speed-up law, or whose cost is above the unit's maximum.

    Args:
        offer: of a resource.
        unit: as called for.
        best_offers: whether this is the best-offer round, in which offers may cost more.
    """
    if problem := size_problem(unit, offer.cores, offer.end - offer.start):
        return Refusal(offer.unit, RefusalCode.SIZE_AGAINST_LAW, detail=problem)
    if not best_offers and (dear := cost_problem(unit, offer, offer.cost)):
        return Refusal(offer.unit, RefusalCode.BAD_PRICE, detail=dear)
    return None


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
        return bool(self._meeting[number])

    def unmet(self) -> list[int]:
        return [number for number in self._meeting if not self.is_met(number)]

    def hopeless(self) -> list[int]:
        """Return the units without any offer."""
        return [number for number in self.unmet() if not self._closest[number]]

    def best(self) -> tuple[tuple[int, Bid], ...]:
        """Return the best offer that meets the request, with the number of its unit."""
        return tuple(
            (unit.number, Bid(unit.number, offer.resource, price_for(unit, offer, offer.cpu_hour_cost)))
            for unit in self._request.units
            for offer in self._meeting[unit.number].offers[:1]
        )

    def bids(self, asked: Mapping[int, RequestUnit]) -> tuple[UnitBids, ...]:
        """Return the offers that meet the request; `asked` are the units as last called for, by number."""
        return tuple(
            UnitBids(unit, asked[unit.number].cpu_hour_cost, self._meeting[unit.number].offers)
            for unit in self._request.units
        )

    def all(self) -> dict[int, tuple[Offer, ...]]:
        """Return all offers of each unit, best first: those that meet the request, else the closest."""
        return {number: (ranking or self._closest[number]).offers for number, ranking in self._meeting.items()}

    def choose(self, asked: Mapping[int, RequestUnit]) -> None:
        """Let the rule choose the winners; units without a sufficient offer keep all for the owner to judge.

        Raises:
            RuleFailed: if the rule's answer is invalid.
        """
        bids = {each.unit.number: each for each in self.bids(asked) if each.offers}
        self.chosen = self.all() | {number: self._rule.winners(each) for number, each in bids.items()}
        self.prices = PaidPrices(self._rule, bids, self._seals)

    def best_prices(self, now: Instant) -> list[Priced]:
        """Return the price of each unit's best offer at present; `RuleFailed` if the rule's answer is invalid."""
        return [self.prices.of(number, offers[0], offers[1:], now) for number, offers in self.chosen.items()]
