"""The paper's rule (section 5.1.1): rounds of open bidding at the best price so far; the offered price is paid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from ramp.protocol.rules.auction_rule import AuctionRule, Bidding


class OpenRounds(AuctionRule):
    """The number of rounds in the user's options."""

    about: ClassVar[str] = "Rounds of open bidding, each at the best price so far; the price offered is paid (default)."

    def next_asks(self, bidding: Bidding) -> Mapping[int, int] | None:
        """Return the best price of every unit, or its asking price without offers."""
        if bidding.rounds_held >= bidding.rounds_wanted:
            return None
        return {bids.unit.number: bids.best_price for bids in bidding.units}


RULE: Final = OpenRounds()
