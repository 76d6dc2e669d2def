"""Journal records of resizes, which user and resource need to keep their promises after a crash."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import ContractChange, Signed
from ramp.model.contents import ChangePosted
from ramp.model.instant import Instant
from ramp.model.seal import Seal
from ramp.protocol.amending.asking import AmendmentOutcome


@dataclass(frozen=True, slots=True)
class AmendmentProposed:
    """User: an amendment is about to be proposed.

    `together` has the agreements of all amendments paid by the same order; it is empty if nothing is paid. All are
    recorded before any is proposed.
    """

    amendment: ContractChange
    at: Instant
    together: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AmendmentConcluded:
    """User: the bank's final answer to a proposed amendment, with its seal."""

    outcome: AmendmentOutcome
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class AmendmentReceived:
    """Resource: it accepts an amendment signed by the user.

    An addition is recorded before the machine is asked, so that a restarted resource can release it.
    """

    offer_id: str
    amendment: Signed
    at: Instant


@dataclass(frozen=True, slots=True)
class CapacityTaken:
    """Resource: the machine has released the cores, or the addition can be paid; the bank is asked next."""

    offer_id: str
    number: int
    at: Instant


@dataclass(frozen=True, slots=True)
class AmendmentSettled:
    """Resource: the bank has posted an amendment."""

    offer_id: str
    posted: ChangePosted
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class AmendmentDropped:
    """Resource: an amendment failed, and the slot is unchanged on the machine."""

    offer_id: str
    number: int
    code: str
    detail: str
    at: Instant


OwnAmendmentRecord = AmendmentProposed | AmendmentConcluded
"""Records of a user about resizes."""

SizeRecord = AmendmentReceived | CapacityTaken | AmendmentSettled | AmendmentDropped
"""Records of a resource about resizes of a slot."""


def document_name(agreement_id: str, number: int) -> str:
    """Return the name under which an amendment's documents are saved, beside those of its agreement."""
    return f"{agreement_id}.amendment-{number}"
