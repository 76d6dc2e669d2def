"""Sealed second price (W. Vickrey, Journal of Finance 16, 1961): the cheapest wins and is paid what the next asks.

Who offers what it really needs then does best, whatever the others do, as long as they are not its own. The winner is
shown the runner-up's signed offer. A single bidder is paid the cap, and after a refused hold the next offer that
remains sets the price. What sham bidders can do is in docs/rule-of-your-own.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from ramp.model.offer import Offer
from ramp.model.price_paid import second_price
from ramp.protocol.rules.auction_rule import AuctionRule, Price, UnitBids


class SecondPrice(AuctionRule):
    """One sealed round; the user's preference only decides between offers of one cost."""

    about: ClassVar[str] = "One sealed round; the cheapest offer is paid what the next cheapest asks (Vickrey)."
    sealed: ClassVar[bool] = True
    pays_offer: ClassVar[bool] = False

    def winners(self, bids: UnitBids) -> Sequence[Offer]:
        """By cost, for the next one must not be cheaper than the winner."""
        return sorted(bids.offers, key=lambda offer: offer.cost)

    def price(self, bids: UnitBids, winner: Offer, remaining: Sequence[Offer]) -> Price:
        """The cost of the next offer, or the cap."""
        runner_up = remaining[0] if remaining else None
        return Price(second_price(bids.unit, winner, runner_up), runner_up)


RULE: Final = SecondPrice()
