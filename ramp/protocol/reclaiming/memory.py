"""Journal records of reclamations: what resource and user must remember of them after a crash."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Reclamation, Signed
from ramp.model.contents import ReclamationNoticed, ReclamationPosted
from ramp.model.instant import Instant
from ramp.model.seal import Seal


@dataclass(frozen=True, slots=True)
class ReclamationDrawn:
    """Resource: cores of a sold slot are to be taken back; the bank is asked to note it.

    Attributes:
        offer_id: the slot.
        reclamation: what is taken.
        at: when.
        step: number of its first step at the machine.
    """

    offer_id: str
    reclamation: Reclamation
    at: Instant
    step: int


@dataclass(frozen=True, slots=True)
class ReclamationOnRecord:
    """Resource: the bank has had notice; the cores go at the instant that it names."""

    offer_id: str
    noticed: ReclamationNoticed
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class BuyerHeard:
    """Resource: the buyer says that it knows; what it proposes from now on ends the reclamation no more."""

    offer_id: str
    number: int
    at: Instant


@dataclass(frozen=True, slots=True)
class CoresTaken:
    """Resource: the machine has the cores back; the bank is asked to post it."""

    offer_id: str
    number: int
    at: Instant


@dataclass(frozen=True, slots=True)
class ReclamationSettled:
    """Resource: the bank has posted it."""

    offer_id: str
    posted: ReclamationPosted
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class ReclamationDropped:
    """Resource: it comes to nothing, and the machine has the slot as it was."""

    offer_id: str
    number: int
    code: str
    detail: str
    at: Instant


@dataclass(frozen=True, slots=True)
class NoticeHeard:
    """User: its seller will take cores back."""

    reclamation: Signed
    at: Instant


@dataclass(frozen=True, slots=True)
class ReclamationConcluded:
    """User: the bank's last word on a reclamation, or the seller's that it is given up.

    Attributes:
        agreement_id: of which agreement.
        number: of the reclamation.
        reclamation: signed by the resource; None where it is known by its announcement.
        code: why it came to nothing; empty where it is posted.
        detail: the same as a sentence.
        at: when.
    """

    agreement_id: str
    number: int
    reclamation: Signed | None
    code: str
    detail: str
    at: Instant


ReclaimingRecord = (
    ReclamationDrawn | ReclamationOnRecord | BuyerHeard | CoresTaken | ReclamationSettled | ReclamationDropped
)
"""What a resource keeps of what it takes back."""

TakenBackRecord = NoticeHeard | ReclamationConcluded
"""What a user keeps of what is taken back."""
