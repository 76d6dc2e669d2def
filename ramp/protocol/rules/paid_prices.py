"""The price paid for each unit of an auction: as offered, or by its rule with a proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from ramp.model.agreement import PricePaid
from ramp.model.instant import Instant
from ramp.model.offer import Offer
from ramp.model.price_paid import stands_at
from ramp.model.seal import Seal
from ramp.protocol.rules.auction_rule import UnitBids
from ramp.protocol.rules.checked_rule import CheckedRule

RUNNER_UP_BYTES_MAX: Final = 50_000
"""Maximum bytes of a sealed proposal in a commitment (limit 90 000): fits 150 units beside an order of 150 lines."""


def passed_on_bytes(seal: Seal) -> int:
    """Return the bytes of a sealed message in a commitment, where its text is escaped twice."""
    once = escape(seal.text, {"\r": "&#13;"})
    return len(escape(once).encode())


@dataclass(frozen=True, slots=True)
class Priced:
    """The price paid for an offer.

    Attributes:
        cost: minor units.
        price: how it was found; None if it is the price offered.
    """

    cost: int
    price: PricePaid | None = None


class PaidPrices:
    """The prices of one auction.

    Args:
        rule: of the auction.
        bids: of units with offers that meet the request; other units are paid as offered.
        seals: of the proposals, by resource and id of the offer.
    """

    def __init__(self, rule: CheckedRule, bids: Mapping[int, UnitBids], seals: Mapping[tuple[str, str], Seal]) -> None:
        self._rule = rule
        self._bids = bids
        self._seals = seals

    def of(self, number: int, winner: Offer, behind: Sequence[Offer], now: Instant) -> Priced:
        """Return the price for an offer.

        Args:
            number: the unit's.
            winner: the offer.
            behind: offers that would be tried after it.
            now: the present, by which offers expire.

        Raises:
            RuleFailed: if the rule's answer is invalid.
        """
        bids = self._bids.get(number)
        if bids is None or self._rule.pays_offer:
            return Priced(winner.cost)
        standing = tuple(
            offer for offer in behind if (seal := self._seal_of(offer)) is not None and stands_at(offer, seal, now)
        )
        price = self._rule.price(bids, winner, standing)
        seal = None if price.set_by is None else self._seal_of(price.set_by)
        return Priced(price.cost, PricePaid(self._rule.name, price.set_by, seal))

    def _seal_of(self, offer: Offer) -> Seal | None:
        return self._seals.get((offer.resource, offer.offer_id))
