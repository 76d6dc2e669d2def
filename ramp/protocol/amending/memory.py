"""Journal records of changes of size: what user and resource must remember of them to keep their word after a crash."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Amendment, Signed
from ramp.model.contents import AmendmentPosted
from ramp.model.instant import Instant
from ramp.model.seal import Seal
from ramp.protocol.amending.asking import AmendmentOutcome


@dataclass(frozen=True, slots=True)
class AmendmentProposed:
    """User: an amendment is about to be proposed.

    Attributes:
        amendment: what is proposed.
        at: when.
        together: agreements whose amendments are paid by the same order, itself among them; empty where nothing is
            paid. All are on record before any is proposed.
    """

    amendment: Amendment
    at: Instant
    together: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AmendmentConcluded:
    """User: the bank's last word on a proposed amendment, with its seal."""

    outcome: AmendmentOutcome
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class AmendmentReceived:
    """Resource: an amendment that the user has signed and the resource agrees to; its instant may be to come.

    One that adds to a slot is on record before the machine is asked for more, so that it gives it back after a restart.

    Attributes:
        offer_id: the slot.
        amendment: signed by the user.
        at: when.
    """

    offer_id: str
    amendment: Signed
    at: Instant


@dataclass(frozen=True, slots=True)
class CapacityTaken:
    """Resource: the machine has given back what an amendment gives up, or what is added is to be paid: ask the bank."""

    offer_id: str
    number: int
    at: Instant


@dataclass(frozen=True, slots=True)
class AmendmentSettled:
    """Resource: the bank has posted an amendment."""

    offer_id: str
    posted: AmendmentPosted
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class AmendmentDropped:
    """Resource: an amendment comes to nothing, and the machine has the slot as it was."""

    offer_id: str
    number: int
    code: str
    detail: str
    at: Instant


OwnAmendmentRecord = AmendmentProposed | AmendmentConcluded
"""What a user keeps of the changes of what it has bought."""

SizeRecord = AmendmentReceived | CapacityTaken | AmendmentSettled | AmendmentDropped
"""What a resource keeps of the changes of a slot that it has sold."""
