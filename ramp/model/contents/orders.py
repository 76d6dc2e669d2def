"""Orders: the bank's vote on all units of a purchase, and its result; payments (paper section 5.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.model.agreement import CHANGE_MARK
from ramp.model.communicative_acts import Content, Interaction, Performative, said
from ramp.model.instant import Duration, Instant
from ramp.model.seal import BY_BANK, BY_USER


@said(Performative.AGREE, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class PaymentMade(Content):
    """AGREE by the bank: user debited, resource credited."""

    agreement_id: str
    transfer_id: str
    amount: int


@said(Performative.REFUSE, Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class PaymentRefused(Content):
    """REFUSE or INFORM by the bank, final: this agreement is not paid, nor ever will be."""

    agreement_id: str
    code: str
    detail: str = ""


@said(Performative.QUERY_REF, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class PaymentQuery(Content):
    """QUERY_REF to the bank by a party of an agreement: was it paid?

    Answered by `PaymentMade`, `ChangePosted` or `PaymentRefused` (void, or not known); not at all while it is pending.
    """

    agreement_id: str


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One agreement of an order, or one amendment that adds to a slot.

    Attributes:
        agreement_id: its id; of an amendment its key (`ramp.model.agreement.change_key`).
        resource: the payee.
        cost: minor units.
        offer_id: the offer that is bought. It ties a resource's statement about an offer to the payment: that another
            offer has failed brings no refund.
        amends: digest of the state that an amendment changes; empty for an agreement.
        becomes: digest of the resulting state; empty for an agreement.
    """

    agreement_id: str
    resource: str
    cost: int
    offer_id: str = ""
    amends: str = ""
    becomes: str = ""

    @property
    def amended(self) -> tuple[str, int] | None:
        """Return agreement and number of the amendment that it pays for; None if it pays for an agreement."""
        if not self.becomes:
            return None
        agreement_id, _, number = self.agreement_id.rpartition(CHANGE_MARK)
        return agreement_id, int(number) if number.isdecimal() and number.isascii() else 0


class OrderState(StrEnum):
    """State of an order at the bank; only a reserved order changes again."""

    RESERVED = "reserved"
    POSTED = "posted"
    VOIDED = "voided"
    REFUSED = "refused"


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class PaymentOrder(Content):
    """REQUEST by the user: set these costs aside for me, all or none; sent when all slots are held.

    Attributes:
        order_id: unique; the bank's idempotency key.
        lines: one per agreement, in the order of the units.
        valid_until: by the bank's clock; unposted parts are then void. The agreements hold as long.
    """

    order_id: str
    lines: tuple[OrderLine, ...]
    valid_until: Instant


@said(Performative.AGREE, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class FundsReserved(Content):
    """AGREE by the bank, its vote yes: the costs are set aside under their agreement ids.

    Attributes:
        order_id: of the order.
        user: the payer.
        lines: as ordered.
        valid_for: how long from the first sending of the order; a duration, because clocks differ.
        valid_until: the same by the bank's clock.
        bank_time: the bank's clock.
    """

    order_id: str
    user: str
    lines: tuple[OrderLine, ...]
    valid_for: Duration
    valid_until: Instant
    bank_time: Instant


@said(Performative.REFUSE, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class OrderRefused(Content):
    """REFUSE by the bank, its vote no, final for this order; `code` is the ledger's (`insufficient_funds`, ...)."""

    order_id: str
    code: str
    detail: str = ""


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class OrderWithdrawal(Content):
    """REQUEST by the user: void this order, unless it has been posted; also of an order that never arrived.

    Attributes:
        order_id: of the order.
        valid_until: that of the order; until then the void of an unseen order is remembered.
        reason: one sentence for people.
    """

    order_id: str
    valid_until: Instant
    reason: str


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class OrderPosted(Content):
    """INFORM by the bank, final: the whole order is paid; `transfers` are the payments, in the order of the lines."""

    order_id: str
    transfers: tuple[PaymentMade, ...]


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class OrderVoided(Content):
    """INFORM by the bank, final: nothing of the order is paid, nor ever will be.

    Attributes:
        order_id: of the order.
        code: the reason.
        detail: the same as a sentence.
        awaited: the lines whose countersigned agreement is missing; pass over their sellers in the next attempt.
    """

    order_id: str
    code: str
    detail: str = ""
    awaited: tuple[OrderLine, ...] = ()
