"""The interface of auction rules: the asking prices of the next round, the winner, and the price paid.

A rule is pure and keeps no state: each call has all it needs about one auction. Shipped rules are one file each in
`ramp.protocol.rules.shipped`, with a constant `RULE`; others come by the entry point group `ramp.auction_rules` or by
path. Every answer of a rule is checked (`ramp.protocol.rules.checked_rule`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from ramp.model.offer import Offer
from ramp.model.request import RequestUnit
from ramp.model.sizes.moldable import price_for

PAPER_RULE: Final = "open-rounds"
"""Name of the paper's rule (section 5.1.1), the default."""


@dataclass(frozen=True, slots=True)
class UnitBids:
    """The offers for one unit so far.

    Attributes:
        unit: as the user requests it; its `cpu_hour_cost` is the cap, the maximum price per core-hour asked.
        asked: asking price of the closed round, credits per core-hour asked.
        offers: those that meet the request, at most one from each resource, best first by the user's preference.
    """

    unit: RequestUnit
    asked: int
    offers: tuple[Offer, ...]

    @property
    def best_price(self) -> int:
        """Price of the best offer, credits per core-hour asked; the asking price without offers."""
        return price_for(self.unit, self.offers[0], self.offers[0].cpu_hour_cost) if self.offers else self.asked


@dataclass(frozen=True, slots=True)
class Bidding:
    """An auction after a closed round.

    Attributes:
        rounds_held: number of closed rounds.
        rounds_wanted: number of rounds in the user's options.
        units: offers for every unit.
    """

    rounds_held: int
    rounds_wanted: int
    units: tuple[UnitBids, ...]


@dataclass(frozen=True, slots=True)
class Price:
    """The price paid for a unit.

    Attributes:
        cost: minor units, at least the winning offer's cost and at most the cost of what the unit asks at the cap.
        set_by: the offer that sets it, shown to the winner; None without one.
    """

    cost: int
    set_by: Offer | None = None


class AuctionRule:
    """Base of all rules: one round of open bidding; the best offer by the user's ranking wins at its own price.

    Attributes:
        about: one line.
        sealed: whether bids are secret: calls show none, and the asking price is the same in every round.
        pays_offer: whether the price paid is the price offered. If not, offers must be signed, and `price` is called.
    """

    about: ClassVar[str] = ""
    sealed: ClassVar[bool] = False
    pays_offer: ClassVar[bool] = True

    def next_asks(self, bidding: Bidding) -> Mapping[int, int] | None:
        """Return the asking price of every unit, by number, for the next round; None ends the bidding.

        Args:
            bidding: the auction so far. Prices may fall from round to round, never rise.
        """
        return None

    def winners(self, bids: UnitBids) -> Sequence[Offer]:
        """Return the offers to accept for a unit, best first; the next one is tried after a refused hold.

        Args:
            bids: with at least one offer.
        """
        return bids.offers

    def price(self, bids: UnitBids, winner: Offer, remaining: Sequence[Offer]) -> Price:
        """Return the price for the winner; called only if `pays_offer` is False.

        Args:
            bids: for the unit.
            winner: the offer whose slot is held.
            remaining: valid offers behind it among `winners`, best first.
        """
        return Price(winner.cost)
