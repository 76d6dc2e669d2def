"""Orders: the bank's vote on all units of a purchase, and what becomes of it (paper section 5.1.2)."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import CHANGE_MARK
from ramp.model.communicative_acts import Interaction, Performative, said
from ramp.model.contents.payments import PaymentMade
from ramp.model.instant import Duration, Instant
from ramp.model.seal import BY_BANK, BY_USER


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One agreement of an order, or one amendment that adds to what was bought.

    Attributes:
        agreement_id: which; of an amendment its key (`ramp.model.agreement.amendment_key`).
        resource: who is to be paid.
        cost: minor units.
        offer_id: the offer that is bought. It ties a resource's word about an offer to what has been paid: that another
            offer has failed brings no money back.
        amends: digest of the state that an amendment changes; empty of an agreement.
        becomes: digest of the state that it makes; empty of an agreement.
    """

    agreement_id: str
    resource: str
    cost: int
    offer_id: str = ""
    amends: str = ""
    becomes: str = ""

    @property
    def amended(self) -> tuple[str, int] | None:
        """Agreement and number of the amendment that it pays for; None where it pays for an agreement."""
        if not self.becomes:
            return None
        agreement_id, _, number = self.agreement_id.rpartition(CHANGE_MARK)
        return agreement_id, int(number) if number.isdecimal() and number.isascii() else 0


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class PaymentOrder:
    """REQUEST by the user: set these costs aside for me, all or none; asked when all slots are held.

    Attributes:
        order_id: unique; the bank's idempotency key.
        lines: one an agreement, in the order of the units.
        valid_until: by the bank's clock; then whatever has not been posted is void. The agreements hold as long.
    """

    order_id: str
    lines: tuple[OrderLine, ...]
    valid_until: Instant


@said(Performative.AGREE, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class FundsReserved:
    """AGREE by the bank, its vote yes: the costs are set aside under their agreement ids.

    Attributes:
        order_id: which order.
        user: whose money.
        lines: as ordered.
        valid_for: how long from the first sending of the order; a duration, for clocks differ.
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
class OrderRefused:
    """REFUSE by the bank, its vote no, final for this order; `code` is the ledger's (`insufficient_funds`, ...)."""

    order_id: str
    code: str
    detail: str = ""


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class OrderWithdrawal:
    """REQUEST by the user: void this order, unless it has been posted; also of an order that never arrived.

    Attributes:
        order_id: which.
        valid_until: that of the order; so long a void of an order not seen yet is remembered.
        reason: one sentence for people.
    """

    order_id: str
    valid_until: Instant
    reason: str


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class OrderPosted:
    """INFORM by the bank, final: the whole order is paid; `transfers` are the payments, in the order of the lines."""

    order_id: str
    transfers: tuple[PaymentMade, ...]


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class OrderVoided:
    """INFORM by the bank, final: nothing of the order is paid, nor ever will be.

    Attributes:
        order_id: which.
        code: why.
        detail: the same as a sentence.
        awaited: the lines whose countersigned agreement had not come: whom to pass over when going on.
    """

    order_id: str
    code: str
    detail: str = ""
    awaited: tuple[OrderLine, ...] = ()
