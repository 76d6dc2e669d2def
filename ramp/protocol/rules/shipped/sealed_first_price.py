"""Sealed first price: one round at the user's price, nobody sees others' bids, the offer is what is paid."""

from __future__ import annotations

from typing import ClassVar, Final

from ramp.protocol.rules.auction_rule import AuctionRule


class SealedFirstPrice(AuctionRule):
    """One sealed round, whatever number of rounds the user wants."""

    about: ClassVar[str] = "One sealed round; the price offered is paid."
    sealed: ClassVar[bool] = True


RULE: Final = SealedFirstPrice()
