"""Changes of a bought slot's size: what seller and bank say of an amendment (the amendment itself travels signed)."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Signed
from ramp.model.communicative_acts import Interaction, Performative, said
from ramp.model.seal import BY_BANK, BY_RESOURCE, BY_USER, Role, Seal


@said(Performative.AGREE, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class AmendmentAgreed:
    """AGREE by the resource: at the instant that it names it takes back what is given up, and then has it posted."""

    agreement_id: str
    number: int


@said(Performative.REFUSE, interaction=Interaction.REQUEST, by=frozenset({Role.RESOURCE, Role.BANK}))
@dataclass(frozen=True, slots=True)
class AmendmentRefused:
    """REFUSE by the resource: it does nothing of the kind. By the bank, final: it is not posted, nor ever will be."""

    agreement_id: str
    number: int
    code: str
    detail: str = ""


@said(Performative.AGREE, Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class AmendmentPosted:
    """AGREE by the bank to the resource, INFORM to the user: it holds from now on; `refund` minor units went back."""

    agreement_id: str
    number: int
    transfer_id: str
    refund: int


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class AmendmentWithdrawal:
    """REQUEST by the user: void it, unless it is posted; the answer is final either way."""

    agreement_id: str
    number: int


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class Amended:
    """INFORM by the resource: the bank has posted it; with both signatures, and the bank's own word, as proof.

    Attributes:
        amendment: with both signatures.
        posted: what the bank said to the resource.
        posted_seal: the bank's seal on it.
    """

    amendment: Signed
    posted: AmendmentPosted
    posted_seal: Seal
