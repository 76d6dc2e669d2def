"""Signed documents that people keep: agreements and their changes, and the signed form they travel in.

An agreement is the paper's dynamic service level agreement (section 5.2.1): RFQ unit, offer and reservation id in one
document that the user signs (section 5.1.1, step 8) and the resource countersigns (section 5.1.2, step 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.model.communicative_acts import Content, Interaction, Performative, said
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.seal import Seal

CHANGE_MARK: Final = "#"
"""Separates an agreement's id from the name of a change of its slot; agreement ids must not contain it."""

TERMINAL: Final = 0
"""Number of the change that ends an agreement; the others are numbered from 1."""

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
class ContractChange:
    """A change of a bought slot: fewer or more cores, an earlier or later end, or its end as a contract.

    Buyer and seller sign it; it takes effect when the bank has posted it. A change to no cores, a terminal one, gives
    the slot back; before the slot begins, the buyer's signature suffices for it. A terminal change with a code is the
    failure of the seller, whose signature suffices at any time. `ramp.model.sizes.amended` computes the value of other
    changes and checks them against the state that they change.

    Attributes:
        agreement_id: the changed agreement.
        number: of the proposal, from 1; it rises with every proposal about one agreement. `TERMINAL` ends it.
        offer_id: the offer that the slot came from, by which a resource that never saw the agreement knows it.
        user: the buyer.
        resource: the seller.
        bank: the agent that settles it.
        issued_at: when the buyer proposed it.
        previous: digest of the state that it changes (`amended.state_digest` of the agreement, or of the change that
            was posted last).
        cores: of the slot from `effective_at` on.
        until: end of the slot from then on.
        effective_at: when the seller takes back the reduction, or from when on the addition counts as bought.
        amount: what the buyer pays for it in minor units; below zero what the buyer gets back.
        valid_until: the bank posts nothing later than this, by its own clock.
        cpu_hour_cost: the seller's price for an addition, credits per core hour.
        order_id: the payment order that contains an addition; else empty.
        reason: of a terminal change, one sentence for people.
        code: why the seller has failed, if it ends the agreement; None for every other change.

    A terminal change has none of the values from `previous` to `order_id`: all that is left of the payments goes back.
    """

    agreement_id: str
    number: int
    offer_id: str
    user: str
    resource: str
    bank: str
    issued_at: Instant
    previous: str = ""
    cores: int = 0
    until: Instant = 0
    effective_at: Instant = 0
    amount: int = 0
    valid_until: Instant = 0
    cpu_hour_cost: int = 0
    order_id: str = ""
    reason: str = ""
    code: RefusalCode | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether it ends the agreement."""
        return self.number == TERMINAL

    @property
    def is_failure(self) -> bool:
        """Whether its seller ends the agreement because it cannot deliver the slot."""
        return self.code is not None

    @property
    def grows(self) -> bool:
        """Whether it adds to the slot."""
        return bool(self.order_id)

    @property
    def refund(self) -> int:
        """Return what the buyer gets back, in minor units."""
        return max(-self.amount, 0)

    @property
    def charge(self) -> int:
        """Return what the buyer pays, in minor units."""
        return max(self.amount, 0)

    @property
    def key(self) -> str:
        """Return the key of its transfer at the bank."""
        return change_key(self.agreement_id, self.number)


def end_of(agreement: Agreement, reason: str, at: Instant, code: RefusalCode | None = None) -> ContractChange:
    """Return the change that ends an agreement; with a code, the failure of its seller."""
    what = (agreement.agreement_id, TERMINAL, agreement.offer.offer_id)
    parties = (agreement.user, agreement.resource, agreement.bank)
    return ContractChange(*what, *parties, at, reason=reason, code=code)


def change_key(agreement_id: str, number: int) -> str:
    """Return the key of a change's payment or refund.

    The end of an agreement has the agreement's own id, other changes have their number after the last mark.
    """
    return agreement_id if number == TERMINAL else f"{agreement_id}{CHANGE_MARK}{number}"


def document_name(agreement_id: str, number: int) -> str:
    """Return the name under which an amendment's documents are saved, beside those of its agreement."""
    return f"{agreement_id}.amendment-{number}"


Signable = Agreement | ContractChange


@said(Performative.CANCEL, Performative.REQUEST, Performative.FAILURE, interaction=Interaction.REQUEST)
@dataclass(frozen=True, slots=True)
class Signed(Content):
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

    @property
    def change(self) -> ContractChange:
        """The body of a signed change."""
        assert isinstance(self.body, ContractChange)
        return self.body

    @property
    def next_signer(self) -> str:
        """Return who signs it next: the user, then the resource; the resource alone if it has failed; else empty."""
        body = self.body
        if isinstance(body, ContractChange) and body.is_failure:
            return "" if self.signers else body.resource
        return (body.user, body.resource, "")[len(self.signers)]
