"""Sealed second price (W. Vickrey, Journal of Finance 16, 1961): the cheapest offer wins at the next one's price.

A seller then does best by offering its true price, whatever the others do, unless they are its own. The winner is shown
the runner-up's signed offer. A single bidder is paid the cap. After a refused hold the next remaining offer sets the
price. See docs/rule-of-your-own.md for sham bidders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from ramp.model.offer import Offer
from ramp.model.price_paid import second_price
from ramp.protocol.rules.auction_rule import AuctionRule, Price, UnitBids


class SecondPrice(AuctionRule):
    """One sealed round; the user's preference decides only between offers of the same cost."""

    about: ClassVar[str] = "One sealed round; the cheapest offer is paid what the next cheapest asks (Vickrey)."
    sealed: ClassVar[bool] = True
    pays_offer: ClassVar[bool] = False

    def winners(self, bids: UnitBids) -> Sequence[Offer]:
        """Sort by cost, as the price-setting offer must not be cheaper than the winner."""
        return sorted(bids.offers, key=lambda offer: offer.cost)

    def price(self, bids: UnitBids, winner: Offer, remaining: Sequence[Offer]) -> Price:
        """Return the cost of the next offer, or the cap."""
        runner_up = remaining[0] if remaining else None
        return Price(second_price(bids.unit, winner, runner_up), runner_up)


RULE: Final = SecondPrice()
