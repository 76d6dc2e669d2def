"""Changes of a bought slot's size: what seller and bank say of an amendment (the amendment itself travels signed)."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Signed
from ramp.model.communicative_acts import Interaction, Performative, said
from ramp.model.instant import Duration, Instant
from ramp.model.seal import BY_BANK, BY_RESOURCE, BY_USER, Role, Seal


@said(Performative.CFP, interaction=Interaction.CONTRACT_NET, by=BY_USER)
@dataclass(frozen=True, slots=True)
class AmendmentCall:
    """CFP by the user: at what price may this slot have so many cores until that end?

    Attributes:
        agreement_id: what was bought.
        number: that an amendment of it would have.
        cores: from some seconds hence on; at least as many as now.
        until: the end; at least that of now.
        cpu_hour_cost: the price asked for what is added, credits per core hour; a higher one is not wanted.
    """

    agreement_id: str
    number: int
    cores: int
    until: Instant
    cpu_hour_cost: int


@said(Performative.PROPOSE, interaction=Interaction.CONTRACT_NET, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class AmendmentPriced:
    """PROPOSE by the resource: what was called for, at this price, as long as it says; nothing is set aside.

    Attributes:
        agreement_id: what was bought.
        number: as in the call.
        cpu_hour_cost: credits per core hour of what is added.
        valid_for: how long the resource agrees to that price, from its answer on.
        cores: as in the call, for calls of one number may differ.
        until: as in the call.
        state: digest of the state of the slot that this would be added to.
    """

    agreement_id: str
    number: int
    cpu_hour_cost: int
    valid_for: Duration
    cores: int
    until: Instant
    state: str


@said(Performative.CONFIRM, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class AmendmentFunded:
    """CONFIRM by the user to the resource: the bank has set the charge aside, so have the amendment posted.

    Attributes:
        agreement_id: of which agreement.
        number: of the amendment.
        order_id: the order.
    """

    agreement_id: str
    number: int
    order_id: str


@said(Performative.AGREE, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class AmendmentAgreed:
    """AGREE by the resource: at the instant that it names it takes back what is given up, and then has it posted.

    Of what is added it says that it is set aside on the machine, until the amendment may no longer be posted.
    """

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
    """AGREE by the bank to the resource, INFORM to the user: it holds from now on.

    Attributes:
        agreement_id: of which agreement.
        number: of the amendment.
        transfer_id: the rebate, or the payment of what was added.
        refund: minor units that went back.
        charge: minor units that were paid.
    """

    agreement_id: str
    number: int
    transfer_id: str
    refund: int
    charge: int = 0


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class AmendmentWithdrawal:
    """REQUEST by the user to the bank: void it, unless it is posted; the answer is final either way.

    To the resource, of what was to be added: its order is void, so give back what is set aside for it.
    """

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
