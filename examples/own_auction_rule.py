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
        falling = any(each.best_price < each.asked for each in bidding.units)
        if not falling or bidding.rounds_held >= MOST_ROUNDS:
            return None
        return {each.unit.number: each.best_price for each in bidding.units}
