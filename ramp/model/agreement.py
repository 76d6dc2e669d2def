"""Signed documents that people keep: agreements, amendments and cancellations, and the signed form they travel in.

An agreement is the paper's dynamic service level agreement (section 5.2.1): RFQ unit, offer and reservation id in one
document that the user signs (section 5.1.1, step 8) and the resource countersigns (section 5.1.2, step 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.model.communicative_acts import Interaction, Performative, said
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit
from ramp.model.seal import Seal

CHANGE_MARK: Final = "#"
"""Separates an agreement's id from the name of a change of its slot; agreement ids must not contain it."""

ORDER_VALIDITY_MAX: Final[Duration] = 15 * MINUTE
"""The bank refuses orders that would reserve money for longer than this from now on; a purchase takes seconds.

So a paid agreement was issued at most this long before its `valid_until`, whatever its buyer has written.
"""


@dataclass(frozen=True, slots=True)
class PricePaid:
    """The origin of a price that differs from the price offered.

    Attributes:
        rule: name of the auction rule.
        runner_up: the other offer that sets the price; None without one.
        seal: its resource's, on the proposal with that offer; None without one.
    """

    rule: str
    runner_up: Offer | None = None
    seal: Seal | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """One bought unit.

    Attributes:
        agreement_id: unique; the bank's idempotency key.
        request_id: the auction.
        units_total: number of agreements in the order (all or none of them are paid).
        user: the buying agent.
        resource: the selling agent.
        bank: the agent that settles it.
        request: the unit as the user asked for it (its own price limit, not a round's asking price).
        offer: the offer as accepted.
        reservation_id: the machine's name for the slot held.
        cost: the amount to pay, in minor units; equal to `offer.cost` without a `price`.
        issued_at: when the user decided.
        order_id: the payment order that contains it.
        valid_until: the bank posts nothing later than this, by its own clock; as long as the money is set aside.
        best_offer: whether the user approved an offer that does not meet the request.
        price: the rule that gave the cost; None if it is the price offered.
    """

    agreement_id: str
    request_id: str
    units_total: int
    user: str
    resource: str
    bank: str
    request: RequestUnit
    offer: Offer
    reservation_id: str
    cost: int
    issued_at: Instant
    order_id: str
    valid_until: Instant
    best_offer: bool = False
    price: PricePaid | None = None


@dataclass(frozen=True, slots=True)
class Cancellation:
    """A user's request to give a bought unit back.

    Attributes:
        cancellation_id: unique.
        agreement_id: the agreement to cancel.
        offer_id: the offer it came from, by which a resource that never saw the agreement knows the hold.
        user: the buyer.
        resource: the seller.
        reason: one sentence for people.
        issued_at: when.
    """

    cancellation_id: str
    agreement_id: str
    offer_id: str
    user: str
    resource: str
    reason: str
    issued_at: Instant


@dataclass(frozen=True, slots=True)
class Amendment:
    """A change of a bought slot's size: fewer cores, an earlier end, or more of either.

    Both parties sign it; it takes effect when the bank has posted it. `ramp.model.sizes.amended` computes its value and
    checks it against the state that it changes.

    Attributes:
        agreement_id: the changed agreement.
        number: of the proposal, from 1; it rises with every proposal about one agreement.
        previous: digest of the state that it changes (`amended.state_digest` of the agreement, or of the amendment that
            was posted last).
        offer_id: the offer that the slot came from, by which its resource knows it.
        user: the buyer.
        resource: the seller.
        bank: the agent that settles it.
        cores: of the slot from `effective_at` on.
        until: end of the slot from then on.
        effective_at: when the seller takes back the reduction, or from when on the addition counts as bought.
        refund: credited to the buyer, in minor units; 0 for additions.
        issued_at: when the buyer proposed it.
        valid_until: the bank posts nothing later than this, by its own clock.
        charge: paid by the buyer for the addition, in minor units; 0 for reductions.
        cpu_hour_cost: the seller's price for the addition, credits per core hour.
        order_id: the payment order that contains an addition; else empty.
    """

    agreement_id: str
    number: int
    previous: str
    offer_id: str
    user: str
    resource: str
    bank: str
    cores: int
    until: Instant
    effective_at: Instant
    refund: int
    issued_at: Instant
    valid_until: Instant
    charge: int = 0
    cpu_hour_cost: int = 0
    order_id: str = ""

    @property
    def grows(self) -> bool:
        """Whether it adds to the slot."""
        return bool(self.order_id)

    @property
    def key(self) -> str:
        """Return the key of its payment or refund at the bank."""
        return amendment_key(self.agreement_id, self.number)


def amendment_key(agreement_id: str, number: int) -> str:
    """Return the key of an amendment's payment or refund; the text before its last mark is the agreement's id."""
    return f"{agreement_id}{CHANGE_MARK}{number}"


Signable = Agreement | Cancellation | Amendment


@said(Performative.CANCEL, Performative.REQUEST, interaction=Interaction.REQUEST)
@dataclass(frozen=True, slots=True)
class Signed:
    """A signable body with its signatures.

    The protocol reads only `body`, which holds exactly the signed content; the host's notary fills `document` and
    `signers` when it signs or has verified.

    Attributes:
        body: the signed content.
        signers: names of the verified signers, innermost first; empty before the first signature.
        document: the signed XML text as it travels; empty before the first signature.
    """

    body: Signable
    signers: tuple[str, ...] = ()
    document: str = ""
