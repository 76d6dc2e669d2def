"""Two auction rules of one's own: one goes on while prices fall, at most twenty rounds; one has a price of its own.

ramp submit request.xml --rule examples/own_auction_rule.py:AsLongAsItFalls
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ramp import AuctionRule, Bidding, Offer, Price, UnitBids

MOST_ROUNDS = 20


class AsLongAsItFalls(AuctionRule):
    """Open bidding, whatever number of rounds the user wants; the price offered is paid."""

    about = "Rounds as long as they make something cheaper."

    def next_asks(self, bidding: Bidding) -> Mapping[int, int] | None:
        """Every unit's best price so far, until no price has fallen."""
        falling = any(each.best_price < each.asked for each in bidding.units)
        if not falling or bidding.rounds_held >= MOST_ROUNDS:
            return None
        return {each.unit.number: each.best_price for each in bidding.units}


class HalfWay(AuctionRule):
    """One sealed round; the cheapest offer is paid half of what the next one costs more."""

    about = "One sealed round; paid is the mean of the two cheapest offers."
    sealed = True
    pays_offer = False

    def price(self, bids: UnitBids, winner: Offer, remaining: Sequence[Offer]) -> Price:
        """A lone bidder is paid its offer; costs are in hundredths of a credit."""
        if not remaining:
            return Price(winner.cost)
        return Price((winner.cost + remaining[0].cost) // 2, set_by=remaining[0])
