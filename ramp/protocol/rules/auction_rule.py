"""What an auction rule is: it says what the next round asks, who wins, and what is paid.

A rule is pure and keeps nothing: it is asked about one auction at a time, with all that there is to know. Shipped rules
are one file each in `ramp.protocol.rules.shipped`, with a constant `RULE`; those of others come by the entry point
group `ramp.auction_rules` or by their place. Whatever a rule answers is checked (`ramp.protocol.rules.checked_rule`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from ramp.model.offer import Offer
from ramp.model.request import RequestUnit

PAPER_RULE: Final = "open-rounds"
"""Name of the paper's rule (section 5.1.1), the default."""


@dataclass(frozen=True, slots=True)
class UnitBids:
    """What has been offered for one unit so far.

    Attributes:
        unit: as the user wants it; its `cpu_hour_cost` is the cap, the most that may be paid a core hour.
        asked: asking price of the round that has closed, credits per core hour.
        offers: those that meet the request, at most one a resource, best first by the user's preference.
    """

    unit: RequestUnit
    asked: int
    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class Bidding:
    """An auction when a round has closed.

    Attributes:
        rounds_held: rounds that have closed.
        rounds_wanted: rounds that the user wants.
        units: what there is of every unit.
    """

    rounds_held: int
    rounds_wanted: int
    units: tuple[UnitBids, ...]


@dataclass(frozen=True, slots=True)
class Price:
    """What is paid for a unit.

    Attributes:
        cost: minor units, at least the winning offer's cost and at most that of its slot at the cap.
        set_by: the offer that sets it, to be shown to the winner; None where none does.
    """

    cost: int
    set_by: Offer | None = None


class AuctionRule:
    """Base of all rules: one round of open bidding, the user's ranking wins, the price offered is paid.

    Attributes:
        about: one line.
        sealed: whether bids are secret: calls carry none, and the asking price is the same in every round.
        pays_offer: whether the price paid is the price offered. Where it is not, offers have to be signed, and
            `price` is asked.
    """

    about: ClassVar[str] = ""
    sealed: ClassVar[bool] = False
    pays_offer: ClassVar[bool] = True

    def next_asks(self, bidding: Bidding) -> Mapping[int, int] | None:
        """Asking price of every unit, by its number, in the next round; None ends the bidding.

        Args:
            bidding: the auction so far. Prices may fall from round to round, never rise.
        """
        return None

    def winners(self, bids: UnitBids) -> Sequence[Offer]:
        """The offers to accept for a unit, best first: the next one is tried where a hold is refused.

        Args:
            bids: what has been offered, at least one offer.
        """
        return bids.offers

    def price(self, bids: UnitBids, winner: Offer, remaining: Sequence[Offer]) -> Price:
        """What the winner is paid; asked only where `pays_offer` is False.

        Args:
            bids: what has been offered.
            winner: whose slot is held.
            remaining: of `winners` those behind it that still stand, best first.
        """
        return Price(winner.cost)
