"""Payments of agreements."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.communicative_acts import Interaction, Performative, said
from ramp.model.seal import BY_BANK


@said(Performative.AGREE, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class PaymentMade:
    """AGREE by the bank: user debited, resource credited."""

    agreement_id: str
    transfer_id: str
    amount: int


@said(Performative.REFUSE, Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class PaymentRefused:
    """REFUSE or INFORM by the bank, final: this agreement is not paid, nor ever will be."""

    agreement_id: str
    code: str
    detail: str = ""


@said(Performative.QUERY_REF, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class PaymentQuery:
    """QUERY_REF to the bank by a party of it: what became of this agreement?

    Answered by `PaymentMade`, `RefundMade` or `PaymentRefused` (void, or not known); not at all while it is pending.
    """

    agreement_id: str
