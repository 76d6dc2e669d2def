"""Ranking offers on the user's side: which is best (paper section 6.1), and what all of them cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter

from ramp.model.contents import Bid
from ramp.model.money import credits_text
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.sizes.moldable import cost_cap, reference_price, size_problem
from ramp.protocol.events import Preference

BIDS_SHOWN = 5
"""Bids of a round that the next call shows of each unit, the lowest: so a call does not grow with the resources, whose
calls together would grow with their square."""

BIDS_MAX = 400
"""Bids shown in all; keeps a call of many units within the size limit."""


@dataclass(slots=True)
class Ranking:
    """The user's ranked list of offers for one unit: at most one a resource, its best.

    Order: cost, then end of the slot, then order of arrival; with the preference for soonest, end before cost.
    """

    preference: Preference
    _ranked: list[tuple[tuple[int, int], Offer]]

    def __init__(self, preference: Preference) -> None:
        self.preference = preference
        self._ranked = []

    def add(self, offer: Offer) -> None:
        """Take an offer that meets the request; a resource's earlier offer gives way to a better one."""
        key = (offer.end, offer.cost) if self.preference is Preference.SOONEST else (offer.cost, offer.end)
        for index, (its_key, known) in enumerate(self._ranked):
            if known.resource == offer.resource:
                if key >= its_key:
                    return
                del self._ranked[index]
                break
        self._ranked.append((key, offer))
        self._ranked.sort(key=itemgetter(0))  # which keeps the order of arrival where keys are the same

    @property
    def offers(self) -> tuple[Offer, ...]:
        """Best first."""
        return tuple(offer for _, offer in self._ranked)

    @property
    def best(self) -> Offer | None:
        """The best offer so far."""
        return self._ranked[0][1] if self._ranked else None


def lowest_bids(offers: Sequence[Offer], asked: Mapping[int, RequestUnit]) -> tuple[Bid, ...]:
    """The bids of a round as the next call shows them: the lowest of each unit, in the order of their coming.

    Args:
        offers: what was offered.
        asked: the units as called for, by number; bids for a range of sizes are told at the reference one.
    """
    bids = [Bid(offer.unit, offer.resource, reference_price(asked[offer.unit], offer)) for offer in offers]
    units = {bid.unit for bid in bids}
    share = max(1, min(BIDS_SHOWN, BIDS_MAX // max(1, len(units))))
    ranked = sorted(range(len(bids)), key=lambda index: (bids[index].unit, bids[index].cpu_hour_cost))
    shown = [
        index for _, of_unit in groupby(ranked, key=lambda index: bids[index].unit) for index in islice(of_unit, share)
    ]
    return tuple(bids[index] for index in sorted(shown[:BIDS_MAX]))


def over_limit(costs: Iterable[int], max_cost: int | None) -> str:
    """Why prices are too high together, or the empty string.

    Args:
        costs: what is to be paid for each unit, in minor units.
        max_cost: most that they may cost together, in minor units, or None.
    """
    cost = sum(costs)
    if max_cost is None or cost <= max_cost:
        return ""
    return f"the offers cost {credits_text(cost)} credits together, more than the limit of {credits_text(max_cost)}"


def misfits(offers: Iterable[Offer], units: Mapping[int, RequestUnit], *, best_offers: bool) -> tuple[Refusal, ...]:
    """Coded refusals of the offers for moldable units that no size allows.

    Their size and time do not go together by the speed-up law, or they cost more than the run may at any size.

    Args:
        offers: what a resource has offered.
        units: as called for, by number.
        best_offers: whether sellers were asked for their best, which may cost more.
    """
    found = []
    for offer in offers:
        unit = units.get(offer.unit)
        if unit is None or unit.moldable is None:
            continue
        length = offer.end - offer.start
        if problem := size_problem(unit, offer.cores, length):
            found.append(Refusal(offer.unit, RefusalCode.SIZE_AGAINST_LAW, detail=problem))
        elif not best_offers and offer.cost > (cap := cost_cap(unit, offer.cores, length)):
            asked = f"{credits_text(offer.cost)} credits with {offer.cores} cores"
            dear = f"{asked}; expected at most {credits_text(cap)} at any size"
            found.append(Refusal(offer.unit, RefusalCode.BAD_PRICE, detail=dear))
    return tuple(found)
