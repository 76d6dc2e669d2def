"""An auction rule of one's own: rounds go on as long as they make something cheaper, at most twenty of them.

ramp submit request.xml --rule examples/own_auction_rule.py:AsLongAsItFalls
"""

from __future__ import annotations

from collections.abc import Mapping

from ramp import AuctionRule, Bidding

MOST_ROUNDS = 20


class AsLongAsItFalls(AuctionRule):
    """Open bidding, whatever number of rounds the user wants; the price offered is paid."""

    about = "Rounds as long as they make something cheaper."

    def next_asks(self, bidding: Bidding) -> Mapping[int, int] | None:
        """Every unit's best price so far, until no price has fallen."""
        best = {each.unit.number: each.offers[0].cpu_hour_cost for each in bidding.units if each.offers}
        asked = {each.unit.number: each.asked for each in bidding.units}
        falling = any(price < asked[number] for number, price in best.items())
        return {**asked, **best} if falling and bidding.rounds_held < MOST_ROUNDS else None
