"""What is asked of ledger and machine, and ordered by the owner, where a seller takes cores back; and the answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model.agreement import Reclamation, Signed
from ramp.model.instant import Duration, Instant

TOO_EARLY: Final = "too_early"
"""The bank's code of what it does not post yet; every other refusal of it is final."""

STILL_OPEN: Final = "still_open"
"""The bank's code of what its buyer asks for and nothing is decided of."""

GAVE_WAY: Final = "gave_way"
"""Code of a reclamation that its seller gives up for a proposal of the buyer's that it has crossed."""


class Precedence(StrEnum):
    """When a seller takes cores back by itself; KOALA's words (CoreGRID TR-0092, section 3).

    Attributes:
        RUNNING: precedence to running applications: never.
        WAITING: precedence to waiting applications: when the next job of its own queue cannot be served otherwise.
    """

    RUNNING = "pra"
    WAITING = "pwa"


@dataclass(frozen=True, slots=True)
class NoteReclamation:
    """Ask the ledger to put a reclamation on record; answered by `ReclamationKnown`.

    Attributes:
        call_id: names the question.
        reclamation: what the resource does.
        of_agreement: whether the state that it changes is the slot as it was bought.
        notice: how long before it takes effect it must have come.
        evidence: the resource's sealed notice.
    """

    call_id: str
    reclamation: Reclamation
    of_agreement: bool
    notice: Duration
    evidence: str


@dataclass(frozen=True, slots=True)
class PostReclamation:
    """Ask the ledger to pay for what a resource says it has taken back; answered by `ReclamationKnown`."""

    call_id: str
    agreement_id: str
    number: int
    resource: str
    evidence: str


@dataclass(frozen=True, slots=True)
class LookUpReclamation:
    """Ask the ledger what has become of a reclamation, for its buyer; answered by `ReclamationKnown`.

    Attributes:
        call_id: names the question.
        agreement_id: of which agreement.
        number: of the reclamation.
        user: who asks.
        state: digest of the state that is asked for the reclamation that has changed it, or will, whatever its number;
            empty where the number says which.
    """

    call_id: str
    agreement_id: str
    number: int
    user: str
    state: str = ""


@dataclass(frozen=True, slots=True)
class ReclamationKnown:
    """The ledger's answer about a reclamation; with a code where it is void, or not on record.

    Attributes:
        call_id: of the question.
        agreement_id: of which agreement.
        number: of the reclamation.
        user: who has paid; empty where it is not on record.
        noticed_at: when the bank had notice of it; 0 likewise.
        transfer_id: of the refund, once it is posted; else empty.
        refund: minor units of the payment that went back.
        compensation: minor units on top.
        code: why it is void, or why nothing was done; else empty.
        detail: the same as a sentence.
        reclamation: as its seller has signed it; only to `LookUpReclamation` of a state.
    """

    call_id: str
    agreement_id: str
    number: int
    user: str = ""
    noticed_at: Instant = 0
    transfer_id: str = ""
    refund: int = 0
    compensation: int = 0
    code: str = ""
    detail: str = ""
    reclamation: Signed | None = None


@dataclass(frozen=True, slots=True)
class ReclaimOrdered:
    """The administrator of a resource wants cores of a sold slot back.

    Attributes:
        reservation: the machine's name for the slot, its agreement or its offer.
        cores: how many of them; None for as many as the agreement allows.
        max_cost: the most that refund and compensation may be together, minor units; None for whatever they are, at a
            compensation that the resource pays by itself.
    """

    reservation: str
    cores: int | None = None
    max_cost: int | None = None


@dataclass(frozen=True, slots=True)
class LookAtQueue:
    """Ask the plug-in how many cores the first job of the machine's own queue lacks; answered by `QueueSeen`."""


@dataclass(frozen=True, slots=True)
class QueueSeen:
    """The plug-in's answer to `LookAtQueue`.

    Attributes:
        missing: cores that are not free for it; 0 where nobody waits, or the machine cannot say.
    """

    missing: int = 0


AskAboutReclamation = NoteReclamation | PostReclamation | LookUpReclamation
"""What the ledger is asked."""
