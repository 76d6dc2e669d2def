"""Outcomes of requests and contract changes, and records of bidding rounds."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from ramp.model.contents import Bid
from ramp.model.instant import Duration, Instant, iso
from ramp.model.money import credits_text, per_core_hour
from ramp.model.offer import Offer, Refusal


class RequestStatus(StrEnum):
    """Every way a request ends; exactly one is set.

    COMMITTED: all units bought and paid. QUOTED: the auction stopped before accepting, as requested. NO_OFFERS: some
    unit had no acceptable offer. WITHDRAWN: the resources did not hold their offers. REJECTED: the user declined the
    offers or withdrew the request. FAILED: the commitment or payment failed, or the user agent was interrupted; nothing
    was paid. Exception: if a paid resource reports its own failure, all units are listed as paid, and that one is
    refunded or claimed.
    """

    COMMITTED = "committed"
    QUOTED = "quoted"
    NO_OFFERS = "no_offers"
    WITHDRAWN = "withdrawn"
    REJECTED = "rejected"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ResourceRefusal:
    """A refusal and its resource."""

    resource: str
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round of bidding.

    Attributes:
        round_number: from 1; the extra best-offer round has the number after the last.
        asked: asking price of each unit (unit number, credits per core hour).
        offers: in order of arrival.
        bids: the same at their prices per core-hour asked, by which they compare.
        refusals: in order of arrival; silent resources appear with `no_answer`.
        duration: from the calls until the round closed.
        best_offer: whether this was the extra round.
    """

    round_number: int
    asked: tuple[tuple[int, int], ...]
    offers: tuple[Offer, ...]
    bids: tuple[Bid, ...]
    refusals: tuple[ResourceRefusal, ...]
    duration: Duration
    best_offer: bool = False


@dataclass(frozen=True, slots=True)
class BoughtUnit:
    """One unit of the outcome: bought, or quoted (then the ids are empty).

    Attributes:
        cores_asked: requested cores, of which the offer may charge more.
        reservation_id: the resource's name for the slot.
        transfer_id: the bank's payment.
        meets_request: False for an approved best offer.
        paid: minor units; None if it is the price offered.
    """

    unit: int
    offer: Offer
    cores_asked: int
    agreement_id: str = ""
    reservation_id: str = ""
    transfer_id: str = ""
    meets_request: bool = True
    paid: int | None = None

    @property
    def cost(self) -> int:
        """Price paid for the unit, in minor units."""
        return self.offer.cost if self.paid is None else self.paid

    @property
    def price_paid(self) -> Decimal:
        """Price paid, credits per core-hour charged."""
        if self.paid is None:
            return Decimal(self.offer.cpu_hour_cost)
        return per_core_hour(self.paid, self.offer.cores, self.offer.end - self.offer.start)

    @property
    def charges_more(self) -> bool:
        """Whether more cores are charged than requested, as the machine sells only whole parts of itself."""
        return self.cores_asked < self.offer.cores


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """How a request ended.

    Attributes:
        reason: one sentence for people; empty when committed.
        units: bought or quoted; for `no_offers` the best offers that do not meet the request.
        started_at: when the request was submitted.
        duration: from submission to the end.
        rule: name of the auction rule; empty for the paper's.
        code: of a failed rule (`ramp.protocol.rules.checked_rule.RuleFault`), or empty.
        others: of a quote, the offers behind the best of each unit, best first.
        until: of a quote, when its offers can be bought no more; 0 where they cannot.
        name: the owner's name for the request.
    """

    request_id: str
    status: RequestStatus
    reason: str
    rounds: tuple[RoundRecord, ...]
    units: tuple[BoughtUnit, ...]
    started_at: Instant
    duration: Duration
    rule: str = ""
    code: str = ""
    others: tuple[BoughtUnit, ...] = ()
    until: Instant = 0
    name: str = ""

    def ranked(self, number: int) -> tuple[BoughtUnit, ...]:
        """Return the offers of a quote's unit, best first."""
        return tuple(each for each in (*self.units, *self.others) if each.unit == number)

    @property
    def cost(self) -> int:
        """Total cost in minor units; zero unless the request was committed."""
        return sum(unit.cost for unit in self.units) if self.status is RequestStatus.COMMITTED else 0


ALREADY_CANCELLED: Final = "already_cancelled"
"""Code of a repeated cancellation: it is done, and nothing is refunded again."""


REFUND_ORDERED: Final = "refund_ordered"
"""Code of a refund that the market's keeper ordered."""


QUOTED: Final = "quoted"
"""Code of a resize that was only quoted."""


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """How a change of a contract ended, or the quoted refund or cost of a resize.

    A slot that its seller has lost ends the agreement too, with the seller's code and detail. A repeated cancellation
    is done with its own code and refunds nothing.

    Attributes:
        number: of the amendment; 0 if none was proposed, or if the agreement ends.
        done: whether the bank has posted it.
        cores: of the slot from `effective_at` on.
        until: its end from then on.
        effective_at: start of the new size; 0 if nothing was proposed.
        refund: minor units refunded or quoted.
        code: why it is not done, or `quoted`; if it is done, why the agreement ended, or empty.
        detail: the same as a sentence.
        charge: minor units charged or quoted.
        ends: whether it is the end of the agreement.
    """

    agreement_id: str
    number: int
    done: bool
    cores: int = 0
    until: Instant = 0
    effective_at: Instant = 0
    refund: int = 0
    code: str = ""
    detail: str = ""
    charge: int = 0
    ends: bool = False

    @property
    def cause(self) -> str:
        """Why the seller gave the slot back; empty if its buyer did, or if the agreement continues."""
        by_seller = self.ends and self.done and self.code not in (ALREADY_CANCELLED, REFUND_ORDERED)
        return (self.detail or self.code) if by_seller else ""

    @property
    def kind(self) -> str:
        """The event that it is in logs: `resize`, `loss` or `cancellation`."""
        if not self.ends:
            return "resize"
        return "loss" if self.cause else "cancellation"

    @property
    def sentence(self) -> str:
        """What became of the agreement, with the credits moved."""
        back = f"{credits_text(self.refund)} credits refunded"
        if self.cause:
            how = f"lost by the seller: {self.cause}; {back}"
        elif not self.done:
            how = f"not {'cancelled' if self.ends else 'resized'}: {self.detail or self.code}"
        elif self.ends:
            how = f"cancelled{f' ({self.detail})' if self.detail else ''}, {back}"
        else:
            moved = f"{credits_text(self.charge)} credits paid" if self.charge else back
            how = f"has {self.cores} cores until {iso(self.until)} from {iso(self.effective_at)} on, {moved}"
        return f"{self.agreement_id} {how}"
