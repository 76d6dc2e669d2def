"""A rule whose answers are checked, as rules may come from other packages; and the prices paid by it, with proof.

An exception or invalid answer becomes `RuleFailed`, which ends only the auction concerned. So no unit is paid below its
winner's offer or above its user's cap, whatever the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeVar
from xml.sax.saxutils import escape

from ramp.errors import ConfigurationError, RuleFailed, told
from ramp.model.agreement import PricePaid
from ramp.model.instant import Instant
from ramp.model.offer import Offer
from ramp.model.price_paid import stands_at
from ramp.model.seal import Seal
from ramp.model.sizes.moldable import cost_cap
from ramp.protocol.events import AuctionOptions
from ramp.protocol.rules.auction_rule import PAPER_RULE, AuctionRule, Bidding, Price, UnitBids
from ramp.text import one_line

ROUNDS_MAX: Final = 100
"""Maximum rounds of an auction."""

SHOWN_MAX: Final = 80
"""Maximum characters of an answer in an error message."""

RUNNER_UP_BYTES_MAX: Final = 50_000
"""Maximum bytes of a sealed proposal in a commitment (limit 90 000): fits 150 units beside an order of 150 lines."""

_Answer = TypeVar("_Answer")


class RuleFault(StrEnum):
    """How a rule can fail."""

    UNKNOWN = "rule_unknown"
    RAISED = "rule_raised"
    WRONG_ASK = "rule_wrong_ask"
    WRONG_WINNER = "rule_wrong_winner"
    WRONG_PRICE = "rule_wrong_price"


class CheckedRule:
    """A rule in use, under its name; `sealed` and `pays_offer` are as in `AuctionRule`."""

    def __init__(self, name: str, rule: AuctionRule) -> None:
        self.name = name
        self.sealed = self._guarded("sealed", lambda: rule.sealed is True)
        self.pays_offer = self._guarded("pays_offer", lambda: rule.pays_offer is True)
        self._rule = rule

    def next_asks(self, bidding: Bidding) -> dict[int, int] | None:
        """Return the asking prices of the next round, by unit; None if the bidding is over.

        Raises:
            RuleFailed: if the rule raises, misses a unit, raises a price, or never ends.
        """
        return self._guarded("next_asks", lambda: self._asks(bidding, self._rule.next_asks(bidding)))

    def winners(self, bids: UnitBids) -> tuple[Offer, ...]:
        """Return the offers to accept for a unit, best first.

        Raises:
            RuleFailed: if the rule raises, or names no offer, one twice, or one that was not made.
        """
        return self._guarded("winners", lambda: self._won(bids, self._rule.winners(bids)))

    def price(self, bids: UnitBids, winner: Offer, remaining: Sequence[Offer]) -> Price:
        """Return the price for the winner; `RuleFailed` if the rule raises, or its price is invalid."""
        if self.pays_offer:
            return Price(winner.cost)
        return self._guarded(
            "price", lambda: self._priced(bids, winner, remaining, self._rule.price(bids, winner, remaining))
        )

    # Answers may be objects of the guest, which can raise when compared or shown; no reference to them is kept.

    def _asks(self, bidding: Bidding, asks: object) -> dict[int, int] | None:
        if asks is None:
            return None
        before = {bids.unit.number: bids.asked for bids in bidding.units}
        said = dict(asks) if isinstance(asks, Mapping) else {}
        if said.keys() != before.keys():
            raise self._failed(RuleFault.WRONG_ASK, f"asks must have a price for each unit, got {_shown(asks)}")
        for number, most in before.items():
            ask = said[number]
            if type(ask) is not int or not 0 <= ask <= most:
                wrong = f"the ask for unit {number} must be 0 to {most}, got {_shown(ask)}"
                raise self._failed(RuleFault.WRONG_ASK, wrong)
            if self.sealed and ask != most:
                raise self._failed(
                    RuleFault.WRONG_ASK, "a sealed rule must not change the ask, which would reveal bids"
                )
        if bidding.rounds_held >= ROUNDS_MAX:
            raise self._failed(RuleFault.WRONG_ASK, f"rounds must be at most {ROUNDS_MAX}, the rule asks for more")
        return {number: said[number] for number in before}

    def _won(self, bids: UnitBids, won: object) -> tuple[Offer, ...]:
        if won is bids.offers:
            return bids.offers
        named = tuple(won) if isinstance(won, list | tuple) else ()
        if not named:
            raise self._failed(RuleFault.WRONG_WINNER, f"winners must be a list of offers, got {_shown(won)}")
        left = list(bids.offers)
        winners = []
        for offer in named:
            made = _same(offer, left)
            if made is None:
                shown = _shown(offer.offer_id if isinstance(offer, Offer) else offer)
                raise self._failed(RuleFault.WRONG_WINNER, f"winner {shown} was not offered, or is named twice")
            left.remove(made)
            winners.append(made)
        return tuple(winners)

    def _priced(self, bids: UnitBids, winner: Offer, remaining: Sequence[Offer], price: object) -> Price:
        if not isinstance(price, Price) or type(cost := price.cost) is not int:
            raise self._failed(RuleFault.WRONG_PRICE, f"the price must be a Price in minor units, got {_shown(price)}")
        most = cost_cap(bids.unit, winner.end - winner.start)
        if not winner.cost <= cost <= most:
            wrong = f"price of {winner.offer_id} must be {winner.cost} to {most} minor units, got {_shown(cost)}"
            raise self._failed(RuleFault.WRONG_PRICE, wrong)
        named = price.set_by
        if named is None:
            return Price(cost)
        set_by = _same(named, remaining)
        if set_by is None:
            raise self._failed(RuleFault.WRONG_PRICE, "the offer that sets the price is not among the remaining offers")
        return Price(cost, set_by)

    def _guarded(self, method: str, answer: Callable[[], _Answer]) -> _Answer:
        try:
            return answer()
        except _Found:
            raise
        except (Exception, SystemExit) as error:
            raise self._failed(RuleFault.RAISED, f"{method}: {told(error)}") from error

    def _failed(self, code: RuleFault, detail: str) -> RuleFailed:
        return _Found(code, self.name, detail)


class _Found(RuleFailed):
    """A failure found here; a rule may raise `RuleFailed` itself."""


def _same(named: object, among: Sequence[Offer]) -> Offer | None:
    """Return the offer that a rule names; an object of another type could claim to equal any."""
    return next((offer for offer in among if offer is named or (type(named) is Offer and offer == named)), None)


def _shown(value: object) -> str:
    try:
        return one_line(repr(value), SHOWN_MAX)
    except (Exception, SystemExit):
        return f"an unprintable {type(value).__name__}"


class RuleBook:
    """Rules by name.

    Args:
        find: returns the rule of a name, or raises `ConfigurationError`.
        default: name of the rule for requests without one.
    """

    def __init__(self, find: Callable[[str], AuctionRule], default: str = PAPER_RULE) -> None:
        self._find = find
        self._default = default

    def settled(self, options: AuctionOptions) -> AuctionOptions:
        """Return the options with the rule of the auction; the empty name means the paper's rule, as in records."""
        return options if options.rule or self._default == PAPER_RULE else replace(options, rule=self._default)

    def rule(self, options: AuctionOptions) -> CheckedRule:
        """Return the rule of settled options; `RuleFailed` if no rule has that name."""
        name = options.rule or PAPER_RULE
        try:
            # a rule by path (`FILE.py:Name`) uses its own name, as other parties lack the file
            return CheckedRule(name.rpartition(":")[2], self._find(name))
        except ConfigurationError as error:
            raise RuleFailed(RuleFault.UNKNOWN, name, error.reason) from error


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
        bids: of units with offers that meet the request; other units are paid as offered.
        seals: of the proposals, by resource and id of the offer.
    """

    def __init__(self, rule: CheckedRule, bids: Mapping[int, UnitBids], seals: Mapping[tuple[str, str], Seal]) -> None:
        self._rule = rule
        self._bids = bids
        self._seals = seals

    def of(self, number: int, winner: Offer, behind: Sequence[Offer], now: Instant) -> Priced:
        """Return the price for an offer.

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
