"""What people keep, signed: agreements, what changes or ends them, and the signed form they travel in.

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
"""Stands between an agreement's id and what names a change of its slot; so no agreement's id has one."""

ORDER_VALIDITY_MAX: Final[Duration] = 15 * MINUTE
"""The bank refuses orders that would keep money aside for longer than this from now on; a purchase takes seconds.

So no agreement that it pays was issued longer than this before its `valid_until`, whatever its buyer has written.
"""


@dataclass(frozen=True, slots=True)
class PricePaid:
    """How a price was found that is not simply the price offered.

    Attributes:
        rule: name of the auction rule.
        runner_up: the other offer that sets the price; None where there is none.
        seal: its resource's, on the proposal with which it was made; None where there is no such offer.
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
        units_total: how many agreements the order has in all (all or none of them are paid).
        user: the buying agent.
        resource: the selling agent.
        bank: the agent that settles it.
        request: the unit as the user asked for it (its own price limit, not a round's asking price).
        offer: the offer as accepted.
        reservation_id: the machine's name for the slot held.
        cost: what is paid, in minor units; equal to `offer.cost` where there is no `price`.
        issued_at: when the user decided.
        order_id: the payment order that it is a line of.
        valid_until: the bank posts nothing later than this, by its own clock; as long as the money is set aside.
        best_offer: the user approved an offer that does not meet the request.
        price: by which rule the cost was found; None where it is the price offered.
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
    """A user's wish to give a bought unit back.

    Attributes:
        cancellation_id: unique.
        agreement_id: what is cancelled.
        offer_id: the offer it came from, by which a resource that never saw the agreement knows the hold.
        user: who cancels.
        resource: who sold it.
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
    """A change of a bought slot's size while it stands: fewer cores, an earlier end, or more of either.

    Both parties sign it; it changes nothing before the bank has posted it. `ramp.model.sizes.amended` says what it is
    worth and when it fits the state that it changes.

    Attributes:
        agreement_id: what is changed.
        number: of the proposal, from 1; every proposal about one agreement has a higher one than those before.
        previous: digest of the state that it changes (`amended.state_digest` of the agreement, or of the amendment that
            was posted last).
        offer_id: the offer that the slot came from, by which its resource knows it.
        user: the buyer.
        resource: the seller.
        bank: who settles it.
        cores: of the slot from `effective_at` on.
        until: end of the slot from then on.
        effective_at: when the seller takes back what is given up, or from when on what is added counts as bought.
        refund: what the buyer gets back for it, in minor units; 0 where something is added.
        issued_at: when the buyer proposed it.
        valid_until: the bank posts nothing later than this, by its own clock.
        charge: what the buyer pays for what is added, in minor units; 0 where something is given up.
        cpu_hour_cost: the seller's price for what is added, credits per core hour.
        order_id: the payment order that it is a line of, where something is added; else empty.
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
        """Whether it adds to the slot, and is paid for."""
        return bool(self.order_id)

    @property
    def key(self) -> str:
        """What its payment or rebate is booked under at the bank."""
        return amendment_key(self.agreement_id, self.number)


def amendment_key(agreement_id: str, number: int) -> str:
    """The name of an amendment's payment or rebate; the agreement's id is all of it before the last mark."""
    return f"{agreement_id}{CHANGE_MARK}{number}"


Signable = Agreement | Cancellation | Amendment


@said(Performative.CANCEL, Performative.REQUEST, interaction=Interaction.REQUEST)
@dataclass(frozen=True, slots=True)
class Signed:
    """A signable body with its signatures.

    The protocol reads only `body`, which holds what the signatures cover and nothing else; the host's notary fills
    `document` and `signers` when it signs and when it has verified.

    Attributes:
        body: what is signed.
        signers: names of the verified signers, innermost first; empty before the first signature.
        document: the signed XML text as it travels; empty before the first signature.
    """

    body: Signable
    signers: tuple[str, ...] = ()
    document: str = ""
