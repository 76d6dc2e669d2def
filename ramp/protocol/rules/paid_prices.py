"""What is paid for each unit of an auction: as it was offered, or as its rule says, with its proof."""

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
"""Most bytes of a sealed proposal in the winner's commitment, whose limit is 90 000 with all that goes along.

The answer to a request of 150 units fits, beside an order of 150 lines.
"""


def passed_on_bytes(seal: Seal) -> int:
    """Bytes of a sealed message in a commitment: as text within the signed agreement, which is text within it again."""
    once = escape(seal.text, {"\r": "&#13;"})
    return len(escape(once).encode())


@dataclass(frozen=True, slots=True)
class Priced:
    """What is paid for an offer.

    Attributes:
        cost: minor units.
        price: how it was found; None where it is the price offered.
    """

    cost: int
    price: PricePaid | None = None


class PaidPrices:
    """The prices of one auction.

    Args:
        rule: says what is paid.
        bids: of the units whose offers meet the request; all others are paid as offered.
        seals: of the proposals, by the resources and ids of their offers.
    """

    def __init__(self, rule: CheckedRule, bids: Mapping[int, UnitBids], seals: Mapping[tuple[str, str], Seal]) -> None:
        self._rule = rule
        self._bids = bids
        self._seals = seals

    def of(self, number: int, winner: Offer, behind: Sequence[Offer], now: Instant) -> Priced:
        """What is paid for an offer.

        Args:
            number: the unit's.
            winner: the offer.
            behind: the offers that would be tried after it.
            now: the present, by which offers lapse.

        Raises:
            RuleFailed: if the rule does not say what can be paid.
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
