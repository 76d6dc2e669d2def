"""What is said of changes of a bought slot (which travel signed), and of moves to other places."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import TERMINAL, Signed
from ramp.model.communicative_acts import Content, Interaction, Performative, said
from ramp.model.instant import Duration, Instant
from ramp.model.seal import BY_BANK, BY_RESOURCE, BY_TRADER, BY_USER, Role, Seal


@said(Performative.CFP, interaction=Interaction.CONTRACT_NET, by=BY_USER)
@dataclass(frozen=True, slots=True)
class ChangeCall(Content):
    """CFP by the user: the price of more cores or a later end is wanted.

    Attributes:
        agreement_id: of the slot.
        number: for a change of it.
        cores: from some seconds hence on; at least as many as now.
        until: the end; at least that of now.
        cpu_hour_cost: maximum price of the addition, credits per core hour.
    """

    agreement_id: str
    number: int
    cores: int
    until: Instant
    cpu_hour_cost: int


@said(Performative.PROPOSE, interaction=Interaction.CONTRACT_NET, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class ChangePriced(Content):
    """PROPOSE by the resource: a price for the addition; nothing is set aside.

    Attributes:
        agreement_id: of the slot.
        number: as in the call.
        cpu_hour_cost: credits per core hour of the addition.
        valid_for: how long the price holds, from its answer on.
        cores: as in the call, because calls of one number may differ.
        until: as in the call.
        state: digest of the state of the slot before the addition.
    """

    agreement_id: str
    number: int
    cpu_hour_cost: int
    valid_for: Duration
    cores: int
    until: Instant
    state: str


@said(Performative.AGREE, Performative.CONFIRM, interaction=Interaction.REQUEST, by=BY_TRADER)
@dataclass(frozen=True, slots=True)
class ChangeAgreed(Content):
    """AGREE by the resource: it will take back a reduction at the instant stated, then have it posted.

    An addition is set aside on the machine until the change may no longer be posted. CONFIRM by the user: the bank has
    set the charge aside, so have the addition posted.
    """

    agreement_id: str
    number: int


@said(Performative.REFUSE, interaction=Interaction.REQUEST, by=frozenset({Role.RESOURCE, Role.BANK}))
@dataclass(frozen=True, slots=True)
class ChangeRefused(Content):
    """REFUSE: the resource changes nothing; or the bank, finally: the change is not posted, nor ever will be.

    A terminal change may be asked for again.
    """

    agreement_id: str
    number: int
    code: str
    detail: str = ""


@said(Performative.AGREE, Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class ChangePosted(Content):
    """AGREE by the bank to the party that asked, INFORM to the other: the change holds from now on.

    Attributes:
        agreement_id: of the slot.
        number: of the change; `TERMINAL` if the agreement has ended.
        transfer_id: the payment of an addition, or the refund.
        amount: minor units paid by the buyer; below zero what the buyer got back.
        ordered_for: the reason of the market's keeper, if it ordered the refund; empty otherwise.
    """

    agreement_id: str
    number: int
    transfer_id: str
    amount: int
    ordered_for: str = ""

    @property
    def is_terminal(self) -> bool:
        """Whether the agreement has ended."""
        return self.number == TERMINAL

    @property
    def refund(self) -> int:
        """Return what the buyer got back, in minor units."""
        return max(-self.amount, 0)


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class ChangeWithdrawal(Content):
    """REQUEST by the user to the bank: void it, unless it is posted; the answer is final either way.

    To the resource: the order of an addition is void, so release the reservation for it.
    """

    agreement_id: str
    number: int


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class ChangeDone(Content):
    """INFORM by the resource: the bank has posted the change; with both signatures and the bank's answer, as proof.

    Attributes:
        change: with both signatures.
        posted: the bank's answer to the resource.
        posted_seal: the bank's seal on it.
    """

    change: Signed
    posted: ChangePosted
    posted_seal: Seal


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=frozenset({Role.RESOURCE}))
@dataclass(frozen=True, slots=True)
class SlotMoved(Content):
    """INFORM: a slot has other places or another reservation than its agreement names; times, cores and price stay.

    Repeated until it is acknowledged, as long as the slot lasts.

    Attributes:
        agreement_id: of the slot.
        reservation_id: its present reservation on the machine.
        placement: its present place, in the machine's words, as in an offer.
        moved_at: when, by the machine's own record; of two messages about one slot the later one counts.
    """

    agreement_id: str
    reservation_id: str
    placement: str
    moved_at: Instant


@said(Performative.CONFIRM, interaction=Interaction.REQUEST, by=frozenset({Role.USER}))
@dataclass(frozen=True, slots=True)
class SlotMoveHeard(Content):
    """CONFIRM: the buyer has recorded that move, or a later one.

    Attributes:
        agreement_id: of the slot.
        moved_at: as in the message.
    """

    agreement_id: str
    moved_at: Instant
