"""A rule whose answers are looked at before they are believed: rules of other packages are guests.

Whatever a rule raises or answers that cannot be becomes `RuleFailed`, which ends the auction it was asked about, and
nothing else. So no unit is paid below its winner's offer or above its user's cap, whatever the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from ramp.errors import RuleFailed
from ramp.model.offer import Offer
from ramp.model.price_paid import cap_cost
from ramp.protocol.rules.auction_rule import AuctionRule, Bidding, Price, UnitBids

ROUNDS_MAX: Final = 100
"""So many rounds an auction may have at most."""

_Answer = TypeVar("_Answer")


class RuleFault(StrEnum):
    """How a rule can fail."""

    UNKNOWN = "rule_unknown"
    RAISED = "rule_raised"
    WRONG_ASK = "rule_wrong_ask"
    WRONG_WINNER = "rule_wrong_winner"
    WRONG_PRICE = "rule_wrong_price"


class CheckedRule:
    """A rule in use.

    Args:
        name: under which it is chosen.
        rule: the rule.

    Attributes:
        name: under which it is chosen.
        sealed: see `AuctionRule`.
        pays_offer: see `AuctionRule`.
    """

    def __init__(self, name: str, rule: AuctionRule) -> None:
        self.name = name
        self.sealed = rule.sealed is True
        self.pays_offer = rule.pays_offer is True
        self._rule = rule

    def next_asks(self, bidding: Bidding) -> dict[int, int] | None:
        """Asking prices of the next round, by unit; None where the bidding is over.

        Raises:
            RuleFailed: if the rule raises, or asks for something else, for more than before, or without end.
        """
        asks = self._asked("next_asks", lambda: self._rule.next_asks(bidding))
        if asks is None:
            return None
        before = {bids.unit.number: bids.asked for bids in bidding.units}
        if not isinstance(asks, Mapping) or set(asks) != set(before):
            raise self._failed(RuleFault.WRONG_ASK, f"it asks {asks!r:.80}; right would be a price for each unit")
        for number, ask in asks.items():
            if isinstance(ask, bool) or not isinstance(ask, int) or not 0 <= ask <= before[number]:
                wrong = f"it asks {ask!r:.40} for unit {number}; right would be 0 to {before[number]}"
                raise self._failed(RuleFault.WRONG_ASK, wrong)
            if self.sealed and ask != before[number]:
                raise self._failed(RuleFault.WRONG_ASK, "it is sealed and asks another price, which tells of bids")
        if bidding.rounds_held >= ROUNDS_MAX:
            raise self._failed(RuleFault.WRONG_ASK, f"it wants more than {ROUNDS_MAX} rounds")
        return dict(asks)

    def winners(self, bids: UnitBids) -> tuple[Offer, ...]:
        """The offers to accept for a unit, best first.

        Raises:
            RuleFailed: if the rule raises, or names none, one twice, or one that was not made.
        """
        won: object = self._asked("winners", lambda: self._rule.winners(bids))
        if not isinstance(won, list | tuple) or not won:
            raise self._failed(RuleFault.WRONG_WINNER, f"it lets win {won!r:.40}; right would be a list of offers")
        for index, offer in enumerate(won):
            if not isinstance(offer, Offer) or offer not in bids.offers or offer in won[:index]:
                wrong = f"it lets win {getattr(offer, 'offer_id', offer)!r:.40}, which was not offered, or twice"
                raise self._failed(RuleFault.WRONG_WINNER, wrong)
        return tuple(won)

    def price(self, bids: UnitBids, winner: Offer, remaining: Sequence[Offer]) -> Price:
        """What the winner is paid.

        Raises:
            RuleFailed: if the rule raises, or names what is no price for this offer.
        """
        if self.pays_offer:
            return Price(winner.cost)
        price = self._asked("price", lambda: self._rule.price(bids, winner, remaining))
        if not isinstance(price, Price) or isinstance(price.cost, bool) or not isinstance(price.cost, int):
            raise self._failed(RuleFault.WRONG_PRICE, f"it says {price!r:.60}; right would be a Price in minor units")
        most = cap_cost(bids.unit, winner)
        if not winner.cost <= price.cost <= most:
            wrong = f"{price.cost} minor units for {winner.offer_id}; right would be {winner.cost} to {most}"
            raise self._failed(RuleFault.WRONG_PRICE, wrong)
        if price.set_by is not None and price.set_by not in remaining:
            raise self._failed(RuleFault.WRONG_PRICE, "the offer that sets its price is none of those that remain")
        return price

    def _asked(self, method: str, ask: Callable[[], _Answer]) -> _Answer:
        try:
            return ask()
        except Exception as error:
            raise self._failed(RuleFault.RAISED, f"{method}: {type(error).__name__}: {error}") from error

    def _failed(self, code: RuleFault, detail: str) -> RuleFailed:
        return RuleFailed(code, self.name, detail)
