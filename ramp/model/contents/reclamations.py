"""Cores that a seller takes back by right: its word to the bank and to the buyer, and theirs to it."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Signed
from ramp.model.communicative_acts import Interaction, Performative, said
from ramp.model.instant import Instant
from ramp.model.seal import BY_BANK, BY_RESOURCE, BY_USER, Role, Seal


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class ReclamationNotice:
    """REQUEST by the resource to the bank: put on record that I take cores back, by the right in the agreement.

    Attributes:
        reclamation: signed by the resource.
        agreement: with both signatures, by which the bank judges.
        changes: all that was posted of the slot, in its order, signed as it is kept; of them the state follows.
    """

    reclamation: Signed
    agreement: Signed
    changes: tuple[Signed, ...] = ()


@said(Performative.AGREE, Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class ReclamationNoticed:
    """AGREE by the bank to the resource, INFORM to the user: it is by right, and on record since `noticed_at`.

    Attributes:
        agreement_id: of which agreement.
        number: of the reclamation.
        noticed_at: when the bank had it.
        reclamation: signed by the resource.
    """

    agreement_id: str
    number: int
    noticed_at: Instant
    reclamation: Signed


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class ReclamationAnnounced:
    """INFORM by the resource to the user: so many cores go at that time; by the bank's word, which says that by right.

    Attributes:
        noticed: what the bank said to the resource.
        noticed_seal: the bank's seal on it.
    """

    noticed: ReclamationNoticed
    noticed_seal: Seal


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class ReclamationHeard:
    """INFORM by the user to the resource: that it takes cores back, or has taken them, is on record here.

    Attributes:
        agreement_id: of which agreement.
        number: of the reclamation.
        posted: whether that it is posted is known, and not only that it is to come.
    """

    agreement_id: str
    number: int
    posted: bool


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class ReclamationTaken:
    """REQUEST by the resource to the bank: the machine has the cores back; post what was noticed."""

    agreement_id: str
    number: int


@said(Performative.AGREE, Performative.INFORM, interaction=Interaction.REQUEST, by=BY_BANK)
@dataclass(frozen=True, slots=True)
class ReclamationPosted:
    """AGREE by the bank to the resource, INFORM to the user: it holds, and so much went to the user.

    Attributes:
        agreement_id: of which agreement.
        number: of the reclamation.
        transfer_id: the bank's name for the transfer of both sums together.
        refund: minor units of the price that went back.
        compensation: minor units on top of that.
    """

    agreement_id: str
    number: int
    transfer_id: str
    refund: int
    compensation: int


@said(Performative.REFUSE, interaction=Interaction.REQUEST, by=frozenset({Role.RESOURCE, Role.BANK}))
@dataclass(frozen=True, slots=True)
class ReclamationRefused:
    """REFUSE by the bank: it is not posted now, and with most codes never will be. By the resource: it is given up."""

    agreement_id: str
    number: int
    code: str
    detail: str = ""


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class Reclaimed:
    """INFORM by the resource to the user: the bank has posted it; with the bank's own word as proof.

    Attributes:
        reclamation: signed by the resource.
        posted: what the bank said to the resource.
        posted_seal: the bank's seal on it.
    """

    reclamation: Signed
    posted: ReclamationPosted
    posted_seal: Seal


@said(Performative.REQUEST, interaction=Interaction.REQUEST, by=BY_USER)
@dataclass(frozen=True, slots=True)
class ReclamationQuery:
    """REQUEST by the user to the bank: what has become of it? Or: what was taken back of the slot as I know it?

    The second is answered with the document too, `ReclamationNoticed`, and `ReclamationPosted` where it is posted.

    Attributes:
        agreement_id: of which agreement.
        number: of the reclamation; with a state the first one that the user does not know.
        state: digest of the state that is asked for what has changed it; empty in the first question.
    """

    agreement_id: str
    number: int
    state: str = ""
