"""Giving back what was bought or what has failed, and the money for it."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.communicative_acts import Interaction, Performative, said
from ramp.model.contents.commitment import Failed
from ramp.model.seal import BY_BANK, BY_RESOURCE, BY_USER, Seal


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class RefundClaim:
    """REQUEST by the user: the resource itself says that the paid unit cannot be had.

    Attributes:
        failed: what the resource said.
        failed_seal: its seal on it.
    """

    failed: Failed
    failed_seal: Seal


@said(Performative.AGREE, Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class RefundMade:
    """AGREE to the resource and INFORM to the user: the payment is reversed (or never was: amount 0)."""

    agreement_id: str
    transfer_id: str
    amount: int


@said(Performative.REFUSE, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class RefundRefused:
    """REFUSE by the bank: nothing was reversed."""

    agreement_id: str
    code: str
    detail: str = ""


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class CancellationDone:
    """INFORM: the agreement is cancelled; `refund` minor units went back."""

    agreement_id: str
    refund: int


@said(Performative.REFUSE, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class CancellationRefused:
    """REFUSE: the agreement stands; `code` says why (`started`, `unknown_agreement`, `bad_signature`)."""

    agreement_id: str
    code: str
    detail: str = ""
