"""Sealed first price: one round at the user's price with secret bids; the offered price is paid."""

from __future__ import annotations

from typing import ClassVar, Final

from ramp.protocol.rules.auction_rule import AuctionRule


class SealedFirstPrice(AuctionRule):
    """One sealed round, whatever the user's options."""

    about: ClassVar[str] = "One sealed round; the price offered is paid."
    sealed: ClassVar[bool] = True


RULE: Final = SealedFirstPrice()
