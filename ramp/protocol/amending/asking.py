"""What is asked of machine and ledger, and by the owner, where a bought slot changes its size; and the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.model.agreement import Amendment
from ramp.model.instant import Instant
from ramp.model.offer import Refusal
from ramp.model.slot import Reservation

QUOTED: Final = "quoted"
"""Code of a change that was only to be priced."""


@dataclass(frozen=True, slots=True)
class AgreementResized:
    """The owner wants a bought slot smaller or larger from now on.

    Attributes:
        agreement_id: what is changed.
        cores: that the slot shall have; None for as many as it has.
        until: its end; None for the one that it has.
        quote_only: only tell what would come back, or what it would cost.
        price: what may be paid for what is added, credits per core hour; None for what was asked when it was bought.
        max_cost: what may be paid for it in all, minor units; None where only the price counts.
        together: other agreements whose slots shall have the same, paid by one order, all or none; only to add.
    """

    agreement_id: str
    cores: int | None = None
    until: Instant | None = None
    quote_only: bool = False
    price: int | None = None
    max_cost: int | None = None
    together: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AmendmentOutcome:
    """How a change of size ended, or what it would give back or cost.

    Attributes:
        agreement_id: of which agreement.
        number: of the amendment; 0 where none was proposed.
        done: whether the bank has posted it.
        cores: of the slot from `effective_at` on.
        until: its end from then on.
        effective_at: from when on; 0 where nothing was proposed.
        refund: minor units that it has given back, or would.
        code: why it is not done, or `quoted`; empty where it is.
        detail: the same as a sentence.
        charge: minor units that it has cost, or would.
    """

    agreement_id: str
    number: int
    done: bool
    cores: int
    until: Instant
    effective_at: Instant = 0
    refund: int = 0
    code: str = ""
    detail: str = ""
    charge: int = 0


@dataclass(frozen=True, slots=True)
class ResizeSlot:
    """Ask the plug-in to give a firm slot another size from now on; answered by `SlotResized`.

    Attributes:
        key: of the slot.
        step: counts the slot's changes; what comes after one with a higher step is not done, for questions overtake
            each other.
        cores: from now on.
        until: its end from now on.
    """

    key: str
    step: int
    cores: int
    until: Instant


@dataclass(frozen=True, slots=True)
class SlotResized:
    """The plug-in's answer to `ResizeSlot`.

    Attributes:
        key: of the slot.
        step: of the question.
        answer: the slot as it is set aside now, or why it is not changed; None where nobody knows.
        doubt: why nobody knows, as a sentence.
        able: whether the machine can change what it has set aside at all.
    """

    key: str
    step: int
    answer: Reservation | Refusal | None
    doubt: str = ""
    able: bool = True


@dataclass(frozen=True, slots=True)
class PostAmendment:
    """Ask the ledger to give back what an amendment gives up, or to void it; answered by `AmendmentDecided`."""

    call_id: str
    amendment: Amendment
    evidence: str


@dataclass(frozen=True, slots=True)
class VoidAmendment:
    """Ask the ledger to void an amendment that is not posted, seen or not; answered by `AmendmentDecided`."""

    call_id: str
    agreement_id: str
    number: int
    user: str
    evidence: str


@dataclass(frozen=True, slots=True)
class AmendmentDecided:
    """The ledger's answer about an amendment; with a code where it is not posted, nor ever will be."""

    call_id: str
    agreement_id: str
    number: int
    transfer_id: str = ""
    refund: int = 0
    code: str = ""
    detail: str = ""


AmendingAnswer = SlotResized | AmendmentDecided
"""What machine and ledger answer."""
